//! How ssh is called, and what becomes of the call.

use super::answer::Answer;
use super::script::Script;
use super::trouble::{SshError, Trouble, last_words};
use agent::{AgentError, Client, Stop};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Options that nobody may change: nobody is there to answer a question, and a connection that is shared with others, or does
/// something else beside, outlives what it was made for.
const FIXED: [&str; 7] = [
    "BatchMode=yes",
    "ControlMaster=no",
    "ControlPath=none",
    "RemoteCommand=none",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "EscapeChar=none",
];
/// Options of which the user may know better: after ten seconds without an answer to the first packet, or thirty without a
/// sign of life later on, the machine counts as gone.
const USUAL: [&str; 3] = ["ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=6"];
/// The status with which ssh leaves when the failure is its own.
pub(crate) const FAILURE_OF_SSH: i32 = 255;
/// How often a stop is looked for.
const GLANCE: Duration = Duration::from_millis(200);
/// The time that ssh has to leave after its stream has ended.
const FAREWELL: Duration = Duration::from_secs(5);
/// The time in which the last words of a program that has left are waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// More of what a machine says beside its answers is not kept.
const WORDS_KEPT: usize = 64 << 10;
/// No answer is longer.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The way to a machine.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    host: String,
    /// The command to which a line for the login shell is added.
    command: Vec<OsString>,
    stop: Stop,
}

impl Link {
    /// By ssh, with `further` arguments for it.
    pub(crate) fn new(host: &str, further: &[String], stop: Stop) -> Link {
        let mut command: Vec<OsString> = ["ssh", "-T", "-x", "-a"].map(OsString::from).into();
        // Of several values for one option ssh takes the first.
        command.extend(FIXED.iter().flat_map(|option| ["-o", *option]).map(OsString::from));
        command.extend(further.iter().map(OsString::from));
        command.extend(USUAL.iter().flat_map(|option| ["-o", *option]).map(OsString::from));
        command.extend(["--", host].map(OsString::from));
        Link { host: host.into(), command, stop }
    }

    /// By another program that hands its last argument to a shell: for tests.
    #[cfg(test)]
    pub(crate) fn by(command: &[&str], stop: Stop) -> Link {
        Link { host: "box".into(), command: command.iter().map(OsString::from).collect(), stop }
    }

    /// The machine, as the user calls it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The same way for one who does not stop: a machine must be left in order even when a run is stopped.
    pub(crate) fn unstoppable(&self) -> Link {
        Link { stop: Stop::default(), ..self.clone() }
    }

    /// Waits, unless a stop is asked for.
    pub(crate) fn pause(&self, duration: Duration) -> Result<(), SshError> {
        let until = Instant::now() + duration;
        while Instant::now() < until {
            if self.stop.asked() {
                return Err(SshError::Stopped);
            }
            std::thread::sleep(GLANCE.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Runs a script to its end, with `input` on its standard input.
    pub(crate) fn ask(
        &self,
        script: &Script,
        input: Vec<u8>,
        patience: Duration,
    ) -> Result<Answer, SshError> {
        let mut session = self.open(script)?;
        session.feed(input);
        session.listen(Instant::now() + patience, |_| false)?;
        let answer = Answer::read(&session.heard());
        session.end(answer.as_ref())?;
        answer.ok_or_else(|| SshError::Failed {
            host: self.host.clone(),
            doing: script.doing,
            said: "nothing that kduel understands; does its login shell run `sh -c`?".into(),
        })
    }

    /// Starts a script.
    pub(crate) fn open(&self, script: &Script) -> Result<Session, SshError> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(SshError::Client(io::ErrorKind::NotFound.into()));
        };
        let mut child = Command::new(program)
            .args(arguments)
            .arg(script.line())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A terminal's Ctrl-C is for the coordinator.
            .process_group(0)
            .spawn()
            .map_err(SshError::Client)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(words)) = pipes else {
            return Err(SshError::Client(io::Error::other("its pipes are missing")));
        };
        Ok(Session {
            host: self.host.clone(),
            doing: script.doing,
            stop: self.stop.clone(),
            child,
            to: Some(to),
            from,
            heard: Vec::new(),
            words: in_background(words),
        })
    }
}

/// Takes in what a program says beside its answers, so that it never waits for a reader.
fn in_background(mut from: impl io::Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut kept = 0;
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            kept += read;
            if kept <= WORDS_KEPT && send.send(chunk[..read].to_vec()).is_err() {
                break;
            }
        }
    });
    receive
}

/// One call of ssh. Dropping it ends the call.
#[derive(Debug)]
pub(crate) struct Session {
    host: String,
    doing: &'static str,
    stop: Stop,
    child: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
    heard: Vec<u8>,
    words: Receiver<Vec<u8>>,
}

impl Session {
    /// Writes all of `input` and ends the stream, beside what else is done.
    fn feed(&mut self, input: Vec<u8>) {
        if let Some(mut to) = self.to.take() {
            // Whoever does not read to the end says why by other means.
            std::thread::spawn(move || {
                let _ = to.write_all(&input);
            });
        }
    }

    /// What was heard so far.
    pub(crate) fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard).into_owned()
    }

    /// Listens until `enough` says so of what was heard, or the stream ends; says whether it was enough.
    pub(crate) fn listen(
        &mut self,
        until: Instant,
        enough: impl Fn(&[u8]) -> bool,
    ) -> Result<bool, SshError> {
        let began = Instant::now();
        let mut chunk = [0; 4096];
        loop {
            if enough(&self.heard) {
                return Ok(true);
            }
            if self.stop.asked() {
                return Err(SshError::Stopped);
            }
            if self.heard.len() > ANSWER_BYTES_MAX {
                let said = "more than any answer has".into();
                return Err(SshError::Failed { host: self.host.clone(), doing: self.doing, said });
            }
            let now = Instant::now();
            if now >= until {
                let waited_s = began.elapsed().as_secs();
                return Err(SshError::Silent { host: self.host.clone(), doing: self.doing, waited_s });
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: GLANCE.min(until - now).as_nanos() as i64 };
            let mut polled = [PollFd::new(&self.from, PollFlags::IN)];
            match poll(&mut polled, Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(SshError::Client(error.into())),
            }
            match self.from.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(read) => self.heard.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SshError::Client(error)),
            }
        }
    }

    /// Waits for ssh to leave after the stream has ended, and says what went wrong. `answer` is what came before.
    pub(crate) fn end(mut self, answer: Option<&Answer>) -> Result<(), SshError> {
        let status = self.wait(FAREWELL);
        let words = self.words();
        let said = last_words(&words);
        match status.and_then(|status| status.code()) {
            Some(0) => Ok(()),
            Some(FAILURE_OF_SSH) => {
                Err(SshError::Link { host: self.host.clone(), trouble: Trouble::of(&words), said })
            }
            _ => {
                let beside = answer.map_or(String::new(), |answer| last_words(&answer.others));
                let said = [beside, said].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>();
                Err(SshError::Failed { host: self.host.clone(), doing: self.doing, said: said.join(" | ") })
            }
        }
    }

    /// Greets the agent that now has the stream.
    pub(crate) fn greet(&mut self) -> Result<Client, AgentError> {
        let Some(to) = self.to.take() else {
            return Err(AgentError::Died { doing: "being greeted" });
        };
        Client::greet(to.into(), self.from.as_fd().try_clone_to_owned()?, self.stop.clone())
    }

    /// Waits for ssh to leave; none when it had to be killed.
    pub(crate) fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.to = None;
        let status = self.status_within(patience);
        if status.is_none() {
            self.kill();
        }
        status
    }

    /// How ssh left, if it does so in time.
    fn status_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if began.elapsed() < patience => std::thread::sleep(Duration::from_millis(2)),
                status => return status.ok().flatten(),
            }
        }
    }

    /// Why the stream has ended, or is silent, as far as ssh tells.
    pub(crate) fn cause(&mut self) -> Option<String> {
        let words = self.words();
        let said = last_words(&words);
        match self.status_within(LAST_WORDS) {
            Some(status) if status.code() == Some(FAILURE_OF_SSH) => {
                let trouble = Trouble::of(&words);
                Some(SshError::Link { host: self.host.clone(), trouble, said }.to_string())
            }
            _ => Some(said).filter(|said| !said.is_empty()),
        }
    }

    /// What ssh and the programs there have said beside their answers. Whole only when ssh has left.
    pub(crate) fn words(&mut self) -> String {
        let until = Instant::now() + LAST_WORDS;
        let mut words = Vec::new();
        while let Ok(chunk) = self.words.recv_timeout(until.saturating_duration_since(Instant::now())) {
            words.extend(chunk);
        }
        String::from_utf8_lossy(&words).into_owned()
    }

    fn kill(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(command: &[&str], patience_ms: u64) -> Result<Answer, SshError> {
        Link::by(command, Stop::default()).ask(
            &Script::state(),
            Vec::new(),
            Duration::from_millis(patience_ms),
        )
    }

    #[test]
    fn a_script_is_answered() {
        let answer = asked(&["sh", "-c"], 10_000).unwrap();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        assert_eq!(answer.life().unwrap().boot, boot.trim());
    }

    #[test]
    fn every_way_to_fail_has_a_name() {
        let refused = "echo 'ssh: connect to host box port 22: Connection refused' >&2; exit 255; :";
        let error = asked(&["sh", "-c", refused], 10_000).unwrap_err();
        assert!(matches!(&error, SshError::Link { trouble: Trouble::Refused, .. }), "{error}");
        assert!(error.to_string().contains("is sshd running"), "{error}");
        let error = asked(&["sh", "-c", "echo no shell for you >&2; exit 1; :"], 10_000).unwrap_err();
        assert!(matches!(&error, SshError::Failed { said, .. } if said == "no shell for you"), "{error}");
        let error = asked(&["sh", "-c", "echo hello; :"], 10_000).unwrap_err();
        assert!(matches!(&error, SshError::Failed { .. }), "{error}");
        let error = asked(&["sh", "-c", "sleep 60; :"], 300).unwrap_err();
        assert!(matches!(&error, SshError::Silent { .. }), "{error}");
        let error = asked(&["/nowhere/ssh"], 300).unwrap_err();
        assert!(error.to_string().contains("openssh-client"), "{error}");
        let error = asked(&["sh", "-c", "yes; :"], 60_000).unwrap_err();
        assert!(error.to_string().contains("more than any answer"), "{error}");
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let stop = Stop::default();
        stop.ask();
        let link = Link::by(&["sh", "-c", "sleep 60; :"], stop);
        let asked = link.ask(&Script::state(), Vec::new(), Duration::from_secs(60));
        assert!(matches!(asked, Err(SshError::Stopped)), "{asked:?}");
        assert!(matches!(link.pause(Duration::from_secs(60)), Err(SshError::Stopped)));
        assert!(link.unstoppable().pause(Duration::ZERO).is_ok());
    }

    #[test]
    fn the_user_may_change_what_is_usual_and_not_what_is_fixed() {
        let further = ["-p".to_string(), "2222".to_string()];
        let link = Link::new("box", &further, Stop::default());
        let words: Vec<&str> = link.command.iter().map(|word| word.to_str().unwrap()).collect();
        let place = |word: &str| words.iter().position(|found| *found == word).unwrap();
        assert!(place("BatchMode=yes") < place("2222") && place("2222") < place("ConnectTimeout=10"));
        assert_eq!(words[words.len() - 2..], ["--", "box"]);
    }
}
