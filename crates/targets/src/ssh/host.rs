//! A machine that is reached by a link: asking it, copying to it, starting an agent on it.

use super::answer::{Answer, Life, Parcels};
use super::link::{Link, Session};
use super::parcel::Parcel;
use super::script::{AGENT, Script};
use super::trouble::{SshError, last_words};
use agent::{AgentError, Client};
use std::time::{Duration, Instant};

/// The time for an answer that takes no work, a slow login included.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);
/// The time for copying: what is copied has some fifty MB, and lines may be slow.
const COPYING: Duration = Duration::from_secs(1800);

/// Who is told what goes on in sentences.
pub type Say = Box<dyn FnMut(&str)>;

/// The other machine.
pub(crate) struct Host {
    pub(crate) link: Link,
    say: Say,
}

/// An agent that has been greeted, and the call of ssh through which it is reached.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) session: Session,
    pub(crate) client: Client,
    /// The boot in which it runs.
    pub(crate) life: Life,
    /// All that the machine answered before.
    pub(crate) answer: Answer,
}

/// Why there is no agent.
#[derive(Debug)]
pub(crate) enum NoAgent {
    Ssh(SshError),
    Agent(AgentError),
}

impl From<SshError> for NoAgent {
    fn from(error: SshError) -> NoAgent {
        NoAgent::Ssh(error)
    }
}

impl Host {
    pub(crate) fn new(link: Link, say: Say) -> Host {
        Host { link, say }
    }

    /// The machine, as the user calls it.
    pub(crate) fn name(&self) -> String {
        self.link.host().into()
    }

    /// Tells the user something.
    pub(crate) fn say(&mut self, text: &str) {
        (self.say)(text);
    }

    /// Runs a script that takes no time.
    pub(crate) fn ask(&self, script: &Script) -> Result<Answer, SshError> {
        self.link.ask(script, Vec::new(), ANSWER)
    }

    /// The boot that it is in, and the whole answer.
    pub(crate) fn state(&self, patience: Duration) -> Result<(Life, Answer), SshError> {
        let answer = self.link.ask(&Script::state(), Vec::new(), patience)?;
        Ok((self.life(&answer)?, answer))
    }

    /// Copies a parcel, unless it is there and whole.
    pub(crate) fn bring(&mut self, parcel: &Parcel) -> Result<(), SshError> {
        let found = self.ask(&Script::look(&parcel.name, parcel.sums()))?;
        if found.parcel() == Some(Parcels::Whole) {
            return Ok(());
        }
        self.check(&found)?;
        self.copy(parcel, found.parcel() == Some(Parcels::Torn))
    }

    /// Starts an agent from the capsule in `parcel` for `run`, copying it first if need be.
    pub(crate) fn start_agent(
        &mut self,
        parcel: &Parcel,
        loader: &str,
        run: &str,
    ) -> Result<Connection, NoAgent> {
        let script = Script::start_agent(&parcel.name, loader, run, parcel.sums());
        let mut copied = false;
        loop {
            let mut session = self.link.open(&script)?;
            let ends_so = format!("\n{AGENT}\n").into_bytes();
            let there = session.listen(Instant::now() + ANSWER, |heard| heard.ends_with(&ends_so))?;
            let answer = Answer::read(&session.heard());
            if let (true, Some(answer)) = (there, &answer) {
                let life = self.life(answer)?;
                return self.greet(session, life, answer.clone());
            }
            session.end(answer.as_ref())?;
            let answer = answer.unwrap_or_default();
            self.check(&answer)?;
            match answer.parcel() {
                Some(Parcels::Whole) => {
                    let said = last_words(&answer.others);
                    return Err(SshError::NotRunning { host: self.name(), said }.into());
                }
                Some(state) if !copied => self.copy(parcel, state == Parcels::Torn)?,
                Some(_) => return Err(SshError::Torn { host: self.name(), what: parcel.what }.into()),
                None => {
                    let said = last_words(&answer.others);
                    let doing = "starting an agent";
                    return Err(SshError::Failed { host: self.name(), doing, said }.into());
                }
            }
            copied = true;
        }
    }

    fn greet(&mut self, mut session: Session, life: Life, answer: Answer) -> Result<Connection, NoAgent> {
        match session.greet() {
            Ok(client) => {
                for remark in &answer.remarks {
                    self.say(&format!("{}: {remark}", self.name()));
                }
                Ok(Connection { session, client, life, answer })
            }
            // ssh's own words say more than a stream that has ended.
            Err(AgentError::Died { doing }) => match session.end(Some(&answer)) {
                Err(error) => Err(error.into()),
                Ok(()) => Err(NoAgent::Agent(AgentError::Died { doing })),
            },
            Err(error) => Err(NoAgent::Agent(error)),
        }
    }

    fn copy(&mut self, parcel: &Parcel, torn: bool) -> Result<(), SshError> {
        let why = if torn { ", since what lies there is damaged" } else { "" };
        let mb = parcel.bytes() as f64 / 1e6;
        self.say(&format!("copying {} ({mb:.0} MB) to {}{why}", parcel.what, self.name()));
        let tar = parcel.tar().map_err(SshError::Client)?;
        let taken = self.link.ask(&Script::install(&parcel.name, parcel.sums()), tar, COPYING)?;
        match taken.parcel() {
            Some(Parcels::Whole) => Ok(()),
            _ => Err(SshError::Torn { host: self.name(), what: parcel.what }),
        }
    }

    fn life(&self, answer: &Answer) -> Result<Life, SshError> {
        answer.life().ok_or_else(|| SshError::Failed {
            host: self.name(),
            doing: "saying which kernel it runs",
            said: last_words(&answer.others),
        })
    }

    /// Whether this binary can run there at all.
    fn check(&self, answer: &Answer) -> Result<(), SshError> {
        let ours = format!("Linux on {}", std::env::consts::ARCH);
        if let (Some(system), Some(processor)) = (answer.get("system"), answer.get("processor")) {
            let found = format!("{system} on {}", in_rusts_words(processor));
            if found != ours {
                return Err(SshError::OtherSystem { host: self.name(), found, ours });
            }
        }
        match answer.lacks() {
            programs if programs.is_empty() => Ok(()),
            programs => Err(SshError::Lacks { host: self.name(), programs }),
        }
    }
}

/// A processor that `uname -m` names otherwise than Rust does.
fn in_rusts_words(machine: &str) -> &str {
    match machine {
        "i386" | "i486" | "i586" | "i686" => "x86",
        "ppc64" | "ppc64le" => "powerpc64",
        other => other,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::parcel::ParcelFile;
    use super::*;
    use agent::Stop;
    use std::cell::RefCell;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::rc::Rc;

    /// A machine that is this one, with a home of its own and programs that stand in for those of root. What ssh would hand
    /// to a login shell goes to sh.
    pub(crate) struct Stage {
        pub(crate) home: tempfile::TempDir,
        pub(crate) said: Rc<RefCell<Vec<String>>>,
    }

    impl Stage {
        pub(crate) fn new() -> Stage {
            let home = tempfile::tempdir().unwrap();
            fs::create_dir(home.path().join("bin")).unwrap();
            let stage = Stage { home, said: Rc::default() };
            stage.program("sudo", "shift; exec \"$@\"");
            stage
        }

        pub(crate) fn host(&self) -> Host {
            let home = format!("HOME={}", self.home.path().display());
            let path = format!("PATH={}/bin:/usr/bin:/bin", self.home.path().display());
            // Once it is gone it stays so.
            let login = "if [ -f \"$HOME/gone\" ]; then echo 'port 22: Connection refused' >&2; exit 255; fi; \
                         exec sh -c \"$0\"";
            let command = ["env", "-u", "XDG_CACHE_HOME", &home, &path, "sh", "-c", login];
            let said = Rc::clone(&self.said);
            let say = move |text: &str| said.borrow_mut().push(text.into());
            Host::new(Link::by(&command, Stop::default()), Box::new(say))
        }

        /// Where kduel keeps things there.
        pub(crate) fn cache(&self) -> PathBuf {
            self.home.path().join(".cache/kduel")
        }

        /// A program that takes the place of the machine's own.
        pub(crate) fn program(&self, name: &str, text: &str) {
            program(&self.home.path().join("bin").join(name), text);
        }
    }

    fn program(path: &Path, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn parcel() -> Parcel {
        let file = |name: &str, executable, bytes: &[u8]| ParcelFile {
            name: name.into(),
            executable,
            bytes: bytes.into(),
        };
        let loader = b"#!/bin/sh\necho \"$@\" >> \"$HOME/loader\"; echo cannot run; exit 127\n";
        let files = vec![file("kduel", true, &[7; 100_000]), file("ld.so", true, loader)];
        Parcel::new("0.1.0-abc".into(), "kduel", files)
    }

    #[test]
    fn a_parcel_is_copied_once_and_again_when_it_is_damaged() {
        let stage = Stage::new();
        let mut host = stage.host();
        host.bring(&parcel()).unwrap();
        host.bring(&parcel()).unwrap();
        assert_eq!(stage.said.borrow().as_slice(), ["copying kduel (0 MB) to box"]);
        let copy = stage.cache().join("0.1.0-abc/kduel");
        assert_eq!(fs::read(&copy).unwrap(), [7; 100_000]);
        fs::write(&copy, [7; 99_999]).unwrap();
        host.bring(&parcel()).unwrap();
        assert_eq!(fs::read(&copy).unwrap(), [7; 100_000]);
        assert!(stage.said.borrow()[1].contains("damaged"), "{:?}", stage.said);
        let beside: Vec<_> = fs::read_dir(stage.cache()).unwrap().collect();
        assert_eq!(beside.len(), 1, "nothing else is left: {beside:?}");
    }

    #[test]
    fn what_does_not_arrive_whole_is_told() {
        let stage = Stage::new();
        // A full disk, as tar sees it, and one that loses a byte silently.
        stage.program("tar", "cat > /dev/null; echo 'tar: kduel: No space left on device' >&2; exit 2");
        let error = stage.host().bring(&parcel()).unwrap_err().to_string();
        assert!(error.contains("No space left"), "{error}");
        stage.program("tar", "command -p tar \"$@\"; echo >> \"$5/kduel\"");
        let error = stage.host().bring(&parcel()).unwrap_err();
        assert!(matches!(error, SshError::Torn { .. }), "{error}");
        assert_eq!(fs::read_dir(stage.cache()).unwrap().count(), 0, "and nothing is left of it");
    }

    #[test]
    fn a_capsule_that_does_not_run_says_why() {
        let stage = Stage::new();
        let error = stage.host().start_agent(&parcel(), "ld.so", "run-1").unwrap_err();
        let NoAgent::Ssh(error) = error else { panic!("{error:?}") };
        assert!(matches!(&error, SshError::NotRunning { said, .. } if said == "cannot run"), "{error}");
        let calls = fs::read_to_string(stage.home.path().join("loader")).unwrap();
        let directory = stage.cache().join("0.1.0-abc");
        let directory = directory.display();
        assert_eq!(calls, format!("--library-path {directory} {directory}/kduel recover --run run-1\n"));
    }

    #[test]
    fn a_machine_that_cannot_run_it_is_told_before_anything_is_copied() {
        let stage = Stage::new();
        stage.program("uname", "if [ \"$1\" = -s ]; then echo Linux; else echo sparc64; fi");
        let error = stage.host().start_agent(&parcel(), "ld.so", "run-1").unwrap_err();
        let NoAgent::Ssh(error) = error else { panic!("{error:?}") };
        assert!(error.to_string().contains("box is Linux on sparc64"), "{error}");
        assert!(!stage.cache().exists());
    }

    #[test]
    fn an_agent_that_dies_at_once_is_no_riddle() {
        let stage = Stage::new();
        let mut parcel = parcel();
        let loader = b"#!/bin/sh\ncase \"$*\" in (*recover*) echo kduel: put back x; exit 0;; esac\necho no agent >&2; exit 3\n";
        let file = ParcelFile { name: "ld.so".into(), executable: true, bytes: loader.to_vec() };
        let binary = ParcelFile { name: "kduel".into(), executable: true, bytes: vec![1] };
        parcel = Parcel::new(parcel.name, "kduel", vec![binary, file]);
        let error = stage.host().start_agent(&parcel, "ld.so", "run-1").unwrap_err();
        let NoAgent::Ssh(error) = error else { panic!("{error:?}") };
        assert!(error.to_string().contains("no agent"), "{error}");
    }
}
