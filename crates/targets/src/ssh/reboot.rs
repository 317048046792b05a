//! Changing the kernel of a machine: load or choose it, go down, wait, and look at what came up.

use super::answer::{Left, Life};
use super::host::{ANSWER, Host};
use super::kernels::{Choice, Kernels, Way, command_line};
use super::script::Script;
use super::trouble::{SshError, Trouble};
use experiment::BootSpec;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a machine that goes down is left alone between two questions whether it is back.
const PAUSE: Duration = Duration::from_secs(1);
/// The time for one such question.
const QUESTION: Duration = Duration::from_secs(20);
/// How long services may take to start before trials begin all the same.
const SETTLING: Duration = Duration::from_secs(150);

/// What the reboots of one machine share.
#[derive(Debug)]
pub(crate) struct Reboots {
    patience: Duration,
    /// The kernel that ran before the first reboot, to which the machine returns.
    first: Option<Life>,
    /// Whether it may have left that kernel.
    away: bool,
    kernels: Kernels,
    /// What came up at the first boot of each entry: its later boots have to be the same.
    entries: BTreeMap<String, Life>,
}

/// A kernel that came up.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) life: Life,
    /// When the machine was told to go down.
    pub(crate) went_at: Instant,
    pub(crate) choice: Choice,
    pub(crate) remarks: Vec<String>,
}

impl Reboots {
    /// Of a machine that may take `patience` to come back.
    pub(crate) fn new(patience: Duration) -> Reboots {
        Reboots { patience, first: None, away: false, kernels: Kernels::default(), entries: BTreeMap::new() }
    }

    /// Finds the kernel that is asked for, for all boots that follow. A file here is copied to the machine.
    pub(crate) fn look(&mut self, host: &mut Host, spec: &BootSpec) -> Result<(), SshError> {
        let (_, first) = self.begin(host)?;
        self.kernels.find(host, &first, spec.kernel.as_deref()).map(drop)
    }

    /// Boots what is asked for.
    pub(crate) fn boot(&mut self, host: &mut Host, spec: &BootSpec) -> Result<Arrival, SshError> {
        let (now, first) = self.begin(host)?;
        let choice = self.kernels.find(host, &first, spec.kernel.as_deref())?;
        let line = self.arm(host, &choice, &first, &spec.append)?;
        let next_release = choice.release.clone().unwrap_or_default();
        let left =
            |boot: &str| Left { first: first.clone(), boot: boot.into(), next_release: next_release.clone() };
        let gone = self.go(host, &choice, &left(&now.boot));
        if gone.is_err() {
            disarm(host, &choice.way);
        }
        let (life, went_at) = gone?;
        let left = left(&life.boot);
        self.patiently(host, went_at, |host| write_left(host, &left))?;
        let mut remarks = choice.remarks.clone();
        let differs = match &choice.way {
            Way::Kexec { .. } => choice.differs_from(&life, line.as_deref()),
            Way::Entry(entry) => {
                if first.differs_from(&life).is_none() {
                    remarks.push(format!(
                        "the boot entry {entry} is the kernel that {} ran before; if it should be another: does its boot \
                         loader take saved entries (GRUB_DEFAULT=saved)?",
                        host.name()
                    ));
                }
                self.entries.entry(entry.clone()).or_insert_with(|| life.clone()).differs_from(&life)
            }
        };
        if let Some(differs) = differs {
            return Err(SshError::OtherKernel { host: host.name(), asked: choice.name, differs });
        }
        remarks.extend(self.patiently(host, went_at, settle)?);
        Ok(Arrival { life, went_at, choice, remarks })
    }

    /// Lets the machine go back to the kernel that it ran first, and says so if it cannot be seen there. Does not wait for
    /// it where `hurried`.
    pub(crate) fn go_home(&mut self, host: &mut Host, hurried: bool) -> Result<(), SshError> {
        // Tried once: whoever has been told that it failed has to look after the machine.
        let was_away = std::mem::take(&mut self.away);
        let Some(first) = self.first.clone().filter(|_| was_away) else { return Ok(()) };
        let began = Instant::now();
        let (now, _) = host.state(ANSWER)?;
        if first.differs_from(&now).is_some() {
            host.say(&format!("{} reboots into its own kernel {}", host.name(), first.release));
            leave(host, false)?;
            if hurried {
                host.say(&format!("kduel does not wait until {} is back", host.name()));
                return Ok(());
            }
            let came = self.wait(host, &now.boot, began)?;
            if let Some(differs) = first.differs_from(&came) {
                let asked = format!("its own kernel {} again", first.release);
                return Err(SshError::OtherKernel { host: host.name(), asked, differs });
            }
        }
        self.patiently(host, began, |host| host.ask(&Script::remove_left()).map(|_| ()))
    }

    /// The boot that the machine is in, and its first kernel.
    fn begin(&mut self, host: &mut Host) -> Result<(Life, Life), SshError> {
        let (now, answer) = host.state(ANSWER)?;
        if let Some(first) = &self.first {
            return Ok((now, first.clone()));
        }
        let first = match answer.left().and_then(|left| left.abandoned_in(&now)) {
            Some(left) => {
                host.say(&left_behind(&host.name(), &now, &left.first));
                self.away = true;
                left.first
            }
            None => now.clone(),
        };
        self.first = Some(first.clone());
        Ok((now, first))
    }

    /// Makes the choice that of the next boot, and says with which command line where that is known.
    fn arm(
        &self,
        host: &Host,
        choice: &Choice,
        first: &Life,
        append: &[String],
    ) -> Result<Option<String>, SshError> {
        let ways = host.ask(&Script::ways())?;
        if !ways.says_yes("root") {
            return Err(SshError::NoPrivilege { host: host.name() });
        }
        match &choice.way {
            Way::Kexec { image, initramfs } => {
                let why = match (ways.says_yes("kexec"), ways.get("kexec_disabled")) {
                    (false, _) => Some("the program kexec is not there (Debian: kexec-tools)"),
                    (_, Some("none")) => Some("its kernel was built without it (CONFIG_KEXEC)"),
                    (_, Some("1")) => Some("kernel.kexec_load_disabled is 1 until the next boot"),
                    _ => None,
                };
                if let Some(why) = why {
                    return Err(SshError::NoKexec { host: host.name(), why });
                }
                let line = command_line(&first.command_line, append);
                host.ask(&Script::load(image, initramfs, &line))?;
                Ok(Some(line))
            }
            Way::Entry(entry) if !append.is_empty() => Err(SshError::AppendToEntry { entry: entry.clone() }),
            Way::Entry(_) if !ways.says_yes("entries") => Err(SshError::NoEntries { host: host.name() }),
            Way::Entry(entry) => {
                host.ask(&Script::choose_entry(entry))?;
                Ok(None)
            }
        }
    }

    /// Lets the machine go down to the choice that was made, and waits for what comes up. `left` is written there before. Gives
    /// also when it was told to go.
    fn go(&mut self, host: &mut Host, choice: &Choice, left: &Left) -> Result<(Life, Instant), SshError> {
        write_left(host, left)?;
        self.away = true;
        host.say(&format!("{} goes down to boot {}", host.name(), choice.name));
        let went_at = Instant::now();
        leave(host, matches!(choice.way, Way::Kexec { .. }))?;
        Ok((self.wait(host, &left.boot, went_at)?, went_at))
    }

    /// Asks a machine that has just come up, and whose network and sshd may come and go for a while.
    fn patiently<T>(
        &self,
        host: &Host,
        went_at: Instant,
        ask: impl Fn(&Host) -> Result<T, SshError>,
    ) -> Result<T, SshError> {
        loop {
            match ask(host) {
                Err(error) if !error.is_final() && went_at.elapsed() < self.patience => {
                    host.link.pause(PAUSE)?;
                }
                done => return done,
            }
        }
    }

    /// Waits until the machine answers from another boot than `old`.
    fn wait(&self, host: &mut Host, old: &str, went_at: Instant) -> Result<Life, SshError> {
        let mut last = None;
        let mut minutes_told = 0;
        while went_at.elapsed() < self.patience {
            host.link.pause(PAUSE)?;
            match host.state(QUESTION) {
                Ok((life, _)) if life.boot != old => return Ok(life),
                Ok(_) => {}
                // A command may fail there as long as not everything is mounted.
                Err(error) if error.is_final() && !matches!(error, SshError::Failed { .. }) => {
                    return Err(error);
                }
                Err(error) => last = Some(error.to_string()),
            }
            let minutes = went_at.elapsed().as_secs() / 60;
            if minutes > minutes_told {
                minutes_told = minutes;
                host.say(&format!("{} has been away for {minutes} min", host.name()));
            }
        }
        let (host, waited_s) = (host.name(), went_at.elapsed().as_secs());
        Err(match last {
            Some(last) => SshError::NotBack { host, waited_s, last },
            None => SshError::StillUp { host, waited_s },
        })
    }
}

/// What a user must know of a machine that a killed run has left in another kernel.
pub(crate) fn left_behind(host: &str, now: &Life, first: &Life) -> String {
    format!(
        "{host} runs {}, which a run that was killed has booted there; its own kernel is {}",
        now.release, first.release
    )
}

fn write_left(host: &Host, left: &Left) -> Result<(), SshError> {
    host.link.ask(&Script::write_left(), left.text().into_bytes(), ANSWER).map(|_| ())
}

/// Takes back the choice of the next boot on a machine that has not gone there, as far as it can be reached: whoever reboots it
/// next means its own kernel.
fn disarm(host: &Host, way: &Way) {
    let script = match way {
        Way::Kexec { .. } => Script::unload(),
        Way::Entry(_) => Script::unchoose_entry(),
    };
    // There is already an error to tell.
    let _ = host.link.unstoppable().ask(&script, Vec::new(), ANSWER);
}

/// Tells the machine to go down.
fn leave(host: &Host, by_kexec: bool) -> Result<(), SshError> {
    let script = if by_kexec { Script::leave_by_kexec() } else { Script::leave_by_reboot() };
    match host.ask(&script) {
        // A machine that goes down cannot always say goodbye.
        Ok(_) | Err(SshError::Silent { .. }) => Ok(()),
        Err(SshError::Link { trouble: Trouble::Lost | Trouble::Other, .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Lets the machine start its services to the end. Says so when it does not come to that.
fn settle(host: &Host) -> Result<Option<String>, SshError> {
    let answer = host.link.ask(&Script::settle(), Vec::new(), SETTLING)?;
    Ok(match answer.get("settled") {
        None | Some("running" | "degraded") => None,
        Some(state) => Some(format!(
            "{} had not started all its services when trials began (systemd said `{state}`)",
            host.name()
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::super::host::tests::Stage;
    use super::*;

    fn spec(kernel: &str, append: &[&str]) -> BootSpec {
        BootSpec {
            kernel: Some(kernel.into()),
            append: append.iter().map(|word| word.to_string()).collect(),
            ..BootSpec::default()
        }
    }

    /// A machine that is root's, with an image on it. It never goes down, since what it says of its boot is the truth.
    fn stage() -> Stage {
        let stage = Stage::new();
        stage.program("kexec", "echo \"kexec $*\" >> \"$HOME/log\"");
        stage.program("reboot", "echo reboot >> \"$HOME/log\"");
        stage.program("systemctl", "echo \"systemctl $*\" >> \"$HOME/log\"");
        stage.program("sync", "");
        // The sbin directories come after these.
        stage.program(
            "cat",
            "case \"$1\" in (*kexec_load_disabled) echo 0;; (*) command -p cat \"$@\";; esac",
        );
        std::fs::write(stage.home.path().join("bzImage"), [0; 4096]).unwrap();
        stage
    }

    /// What the programs of root were asked to do, once it holds what is wanted: they are called a second later.
    fn log_of(stage: &Stage, wanted: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let log = std::fs::read_to_string(stage.home.path().join("log")).unwrap_or_default();
            if wanted(&log) {
                return log;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_machine_that_does_not_come_back_is_told_with_the_last_that_was_heard() {
        let stage = stage();
        let go = "case \"$*\" in (-e|kexec|reboot) touch \"$HOME/gone\";; esac";
        stage.program("kexec", go);
        stage.program("systemctl", go);
        let given = format!("host:{}", stage.home.path().join("bzImage").display());
        let mut reboots = Reboots::new(Duration::from_secs(4));
        let error = reboots.boot(&mut stage.host(), &spec(&given, &[])).unwrap_err();
        assert!(matches!(error, SshError::NotBack { .. }), "{error}");
        assert!(error.to_string().contains("Connection refused"), "{error}");
        let error = reboots.go_home(&mut stage.host(), false).unwrap_err();
        assert!(matches!(error, SshError::Link { .. }), "it is told once more where it was left: {error}");
    }

    #[test]
    fn a_machine_that_stays_up_is_told_and_goes_home_without_a_reboot() {
        let stage = stage();
        let mut host = stage.host();
        let given = format!("host:{}", stage.home.path().join("bzImage").display());
        let mut reboots = Reboots::new(Duration::from_secs(2));
        let error = reboots.boot(&mut host, &spec(&given, &["preempt=full"])).unwrap_err();
        assert!(matches!(error, SshError::StillUp { .. }), "{error}");
        let log = log_of(&stage, |log| log.contains("kexec -e") || log.contains("systemctl kexec"));
        let loaded = log.lines().next().unwrap();
        assert!(loaded.starts_with("kexec -l ") && loaded.contains("--command-line="), "{log}");
        assert!(loaded.contains(" preempt=full"), "{log}");
        // A run that is killed now would find its way back.
        let left = std::fs::read_to_string(stage.cache().join("left")).unwrap();
        assert!(left.contains("first_boot="), "{left}");
        // And whoever reboots the machine does not get the kernel that it did not go to.
        log_of(&stage, |log| log.contains("kexec -u\n"));
        reboots.go_home(&mut host, false).unwrap();
        assert!(!stage.cache().join("left").exists());
    }

    #[test]
    fn what_cannot_be_is_told_before_the_machine_goes_down() {
        let stage = stage();
        let given = format!("host:{}", stage.home.path().join("bzImage").display());
        let asked = |spec: &BootSpec| {
            Reboots::new(Duration::ZERO).boot(&mut stage.host(), spec).unwrap_err().to_string()
        };
        let error = asked(&spec("entry:old", &["quiet"]));
        assert!(error.contains("boot arguments"), "{error}");
        stage.program("kexec", "echo 'kexec: no memory' >&2; exit 1");
        let error = asked(&spec(&given, &[]));
        assert!(error.contains("no memory"), "{error}");
        stage.program(
            "cat",
            "case \"$1\" in (*kexec_load_disabled) exit 1;; (*) command -p cat \"$@\";; esac",
        );
        let error = asked(&spec(&given, &[]));
        assert!(error.contains("CONFIG_KEXEC"), "{error}");
        stage.program(
            "cat",
            "case \"$1\" in (*kexec_load_disabled) echo 1;; (*) command -p cat \"$@\";; esac",
        );
        let error = asked(&spec(&given, &[]));
        assert!(error.contains("kexec_load_disabled is 1"), "{error}");
        stage.program("sudo", "echo a password is required >&2; exit 1");
        stage.program("id", "echo 1000");
        let error = asked(&spec(&given, &[]));
        assert!(error.contains("sudo"), "{error}");
        assert!(!stage.cache().join("left").exists(), "and so nothing is left written");
    }

    #[test]
    fn an_entry_is_chosen_for_once() {
        let stage = stage();
        stage.program("bootctl", "[ \"$1\" = is-installed ] && exit 1; echo wrong >> \"$HOME/log\"");
        stage.program("grub-reboot", "echo \"grub-reboot $1\" >> \"$HOME/log\"");
        stage.program("grub-editenv", "echo \"grub-editenv $*\" >> \"$HOME/log\"");
        let mut reboots = Reboots::new(Duration::ZERO);
        let error =
            reboots.boot(&mut stage.host(), &spec("entry:Advanced options>Linux 7", &[])).unwrap_err();
        assert!(matches!(error, SshError::StillUp { .. }), "{error}");
        let log = log_of(&stage, |log| log.contains("\nreboot\n") || log.contains("systemctl reboot"));
        assert!(log.starts_with("grub-reboot Advanced options>Linux 7\nkexec -u\n"), "{log}");
        assert!(log.contains("\ngrub-editenv - unset next_entry\n"), "it has not gone there: {log}");
    }

    #[test]
    fn a_machine_that_a_killed_run_left_elsewhere_goes_back() {
        let stage = stage();
        let mut host = stage.host();
        let (now, _) = host.state(ANSWER).unwrap();
        let own = Life { boot: "before".into(), release: "5.0-own".into(), ..now.clone() };
        let left = Left { first: own, boot: now.boot.clone(), next_release: String::new() };
        host.link.ask(&Script::write_left(), left.text().into_bytes(), ANSWER).unwrap();
        let mut reboots = Reboots::new(Duration::ZERO);
        // It cannot boot its own kernel, of which there is no image here, but it knows which it is.
        let error = reboots.boot(&mut host, &BootSpec::default()).unwrap_err().to_string();
        assert!(error.contains("5.0-own"), "{error}");
        assert!(stage.said.borrow()[0].contains("its own kernel is 5.0-own"), "{:?}", stage.said);
        reboots.go_home(&mut host, true).unwrap();
        log_of(&stage, |log| log.contains("reboot"));
    }
}
