//! The coordinator's end of the stream.

use crate::lines::{Lines, wait_readable};
use crate::wire::{Done, Event, Hello, PROTOCOL, Request, TrialRequest, Work};
use experiment::{Facts, Knob};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;

/// The time that an agent has for anything that is not a trial.
const ANSWER: Duration = Duration::from_secs(30);
/// The time that an agent has beyond a trial's deadline to kill it and say so.
const GRACE: Duration = Duration::from_secs(15);
/// How often a waiting coordinator looks whether it was told to stop. A signal ends its sleep, unless it comes just
/// before; each look takes a CPU from the trial that is measured, so they are few.
const GLANCE: Duration = Duration::from_secs(1);
/// How often the file is looked at to which an agent writes that works from a script.
const GLANCE_AT_FILE: Duration = Duration::from_millis(20);

/// Whether to stop: set once, by a signal or a user, and seen wherever the coordinator waits.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks for the stop.
    pub fn ask(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it was asked for.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The flag itself, for a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// What can go wrong between coordinator and agent. After any of these but `Refused` the agent must be abandoned.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The stream ended.
    #[error("the agent died while it was {doing}")]
    Died {
        /// What it was asked to do.
        doing: &'static str,
    },
    /// Nothing came for too long.
    #[error("the agent has been silent for {} s while it was {doing}", waited.as_secs())]
    Silent {
        /// What it was asked to do.
        doing: &'static str,
        /// For how long.
        waited: Duration,
    },
    /// A line that is none of the protocol, or not in its place.
    #[error("the agent said something that is not understood while it was {doing}: {line}")]
    Garbled {
        /// What it was asked to do.
        doing: &'static str,
        /// The start of what it said.
        line: String,
    },
    /// The other end is another build.
    #[error("the agent is build {theirs}, this is build {ours}; both ends must be one build")]
    Build {
        /// Theirs.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// The agent could not do what was asked, and said why.
    #[error("{0}")]
    Refused(String),
    /// An agent that works from a script was asked something else than what the script has next.
    #[error("the agent reads from a script that goes on with {next}; it cannot be asked {asked} now")]
    OffScript {
        /// The start of the request.
        asked: String,
        /// The start of the one that was to come.
        next: String,
    },
    /// The stream could not be used.
    #[error("the stream to the agent failed: {0}")]
    Stream(#[from] std::io::Error),
    /// The coordinator was told to stop.
    #[error("stopped")]
    Stopped,
}

/// An agent, as the coordinator sees it.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    lines: Lines,
    stop: Stop,
    slowness: u32,
}

#[derive(Debug)]
enum Stream {
    /// A request goes out when it is made.
    Live { to: OwnedFd, from: OwnedFd },
    /// The agent has all requests from its start, and writes its answers to a file.
    Script { requests: VecDeque<Request>, answers: File, ended: OwnedFd },
}

impl Client {
    /// Greets the agent behind these two descriptors.
    ///
    /// # Errors
    /// When it does not answer or is of another build.
    pub fn greet(to: OwnedFd, from: OwnedFd, stop: Stop) -> Result<Client, AgentError> {
        let mut client = Client::over(to, from, stop);
        client.hello()?;
        Ok(client)
    }

    /// An agent behind these two descriptors that may not be there yet, and has to be greeted when it is.
    pub fn over(to: OwnedFd, from: OwnedFd, stop: Stop) -> Client {
        Client { stream: Stream::Live { to, from }, lines: Lines::default(), stop, slowness: 1 }
    }

    /// An agent that has its requests from a script: [`script`] of `requests`. It writes to the file `answers`;
    /// `ended` is readable when nobody will write there any more. It has to be greeted.
    pub fn scripted(requests: &[Request], answers: File, ended: OwnedFd, stop: Stop) -> Client {
        let stream = Stream::Script { requests: script(requests).into(), answers, ended };
        Client { stream, lines: Lines::default(), stop, slowness: 1 }
    }

    /// Waits so many times longer for every answer: the agent's machine is emulated.
    #[must_use]
    pub fn slowed(self, slowness: u32) -> Client {
        Client { slowness, ..self }
    }

    /// Greets the agent.
    ///
    /// # Errors
    /// When it does not answer or is of another build.
    pub fn hello(&mut self) -> Result<(), AgentError> {
        let doing = "being greeted";
        let ours = Hello::ours();
        self.send(&Request::Hello(ours.clone()))?;
        match self.answer(doing, ANSWER * self.slowness)? {
            Event::Hello(theirs) if theirs == ours && theirs.protocol == PROTOCOL => Ok(()),
            Event::Hello(theirs) => Err(AgentError::Build { theirs: theirs.build, ours: ours.build }),
            other => Err(out_of_place(doing, &other)),
        }
    }

    /// Waits for the first word of a virtual machine, at most until then: its remarks. None while it has not spoken.
    ///
    /// # Errors
    /// When it will not speak any more, or says something else.
    pub fn first_word(&mut self, until: Instant) -> Result<Option<Vec<String>>, AgentError> {
        let doing = "starting";
        match self.hear(doing, until)? {
            Some(Event::Up { remarks }) => Ok(Some(remarks)),
            Some(other) => Err(out_of_place(doing, &other)),
            None => Ok(None),
        }
    }

    /// What stands against turning these knobs and doing this work there, one sentence each.
    ///
    /// # Errors
    /// When the agent fails.
    pub fn check(&mut self, knobs: &[Knob], work: Vec<Work>) -> Result<Vec<String>, AgentError> {
        let doing = "checking what is asked";
        self.send(&Request::Check { knobs: knobs.to_vec(), work })?;
        match self.answer(doing, ANSWER * self.slowness)? {
            Event::Checked { problems } => Ok(problems),
            other => Err(out_of_place(doing, &other)),
        }
    }

    /// Turns the machine's knobs to just these.
    ///
    /// # Errors
    /// When one cannot be turned, or the agent fails.
    pub fn prepare(&mut self, knobs: &[Knob]) -> Result<(), AgentError> {
        let doing = "turning knobs";
        self.send(&Request::Prepare { knobs: knobs.to_vec() })?;
        match self.answer(doing, ANSWER * self.slowness)? {
            Event::Ready => Ok(()),
            Event::Refused { why } => Err(AgentError::Refused(why)),
            other => Err(out_of_place(doing, &other)),
        }
    }

    /// What machine it is on.
    ///
    /// # Errors
    /// When the agent fails.
    pub fn facts(&mut self) -> Result<Facts, AgentError> {
        let doing = "reading facts";
        self.send(&Request::Facts)?;
        match self.answer(doing, ANSWER * self.slowness)? {
            Event::Facts(facts) => Ok(*facts),
            other => Err(out_of_place(doing, &other)),
        }
    }

    /// Runs one trial.
    ///
    /// # Errors
    /// When the agent fails. A trial that fails is no error: it is [`Done`] with a missing outcome.
    pub fn trial(&mut self, request: &TrialRequest) -> Result<Done, AgentError> {
        let doing = "running a trial";
        self.send(&Request::Trial(Box::new(request.clone())))?;
        let deadline = Duration::from_secs_f64(request.deadline_s);
        let patience = match &self.stream {
            Stream::Live { .. } => deadline + GRACE * self.slowness,
            // Its clock is not ours.
            Stream::Script { .. } => (deadline + GRACE) * self.slowness,
        };
        match self.answer(doing, patience)? {
            Event::Started { .. } => {}
            Event::Done(done) => return Ok(*done),
            other => return Err(out_of_place(doing, &other)),
        }
        match self.answer(doing, patience)? {
            Event::Done(done) => Ok(*done),
            other => Err(out_of_place(doing, &other)),
        }
    }

    /// Asks the agent to put everything back and leave. It does the same when the stream ends.
    pub fn shutdown(mut self) {
        // An agent that is gone already has nothing left to be asked.
        let _ = self.send(&Request::Shutdown);
    }

    fn send(&mut self, request: &Request) -> Result<(), AgentError> {
        match &mut self.stream {
            Stream::Live { to, .. } => {
                let line = line(request)?;
                let mut pipe = File::from(to.try_clone()?);
                pipe.write_all(&line).map_err(|error| match error.kind() {
                    std::io::ErrorKind::BrokenPipe => AgentError::Died { doing: "being asked" },
                    _ => AgentError::Stream(error),
                })
            }
            Stream::Script { requests, .. } => match requests.pop_front() {
                Some(next) if next == *request => Ok(()),
                next => Err(AgentError::OffScript {
                    asked: excerpt(&line(request)?),
                    next: match next {
                        Some(next) => excerpt(&line(&next)?),
                        None => "has come to its end".into(),
                    },
                }),
            },
        }
    }

    fn answer(&mut self, doing: &'static str, patience: Duration) -> Result<Event, AgentError> {
        let until = Instant::now() + patience;
        loop {
            if let Some(event) = self.hear(doing, until)? {
                return Ok(event);
            }
            if Instant::now() >= until {
                return Err(AgentError::Silent { doing, waited: patience });
            }
        }
    }

    /// The next event, if it comes until then; none also when nothing has come for a while.
    fn hear(&mut self, doing: &'static str, until: Instant) -> Result<Option<Event>, AgentError> {
        if let Some(event) = self.heard(doing)? {
            return Ok(Some(event));
        }
        if self.stop.asked() {
            return Err(AgentError::Stopped);
        }
        let more = match &self.stream {
            Stream::Live { from, .. } => {
                let ready = wait_readable(&[from.as_fd()], until.min(Instant::now() + GLANCE))?;
                !ready.contains(&true) || fill(&mut self.lines, from.as_fd())?
            }
            Stream::Script { answers, ended, .. } => {
                // Looked at first: what is written before the end is then in the file.
                let over = wait_readable(&[ended.as_fd()], Instant::now())?.contains(&true);
                let found = fill(&mut self.lines, answers.as_fd())?;
                if !found && !over {
                    wait_readable(&[ended.as_fd()], until.min(Instant::now() + GLANCE_AT_FILE))?;
                }
                found || !over
            }
        };
        match (more, self.lines.rest()) {
            (true, _) => self.heard(doing),
            (false, []) => Err(AgentError::Died { doing }),
            (false, rest) => Err(AgentError::Garbled { doing, line: excerpt(rest) }),
        }
    }

    /// The next event among what is here already.
    fn heard(&mut self, doing: &'static str) -> Result<Option<Event>, AgentError> {
        let Some(line) = self.lines.next() else { return Ok(None) };
        match serde_json::from_slice(&line) {
            Ok(event) => Ok(Some(event)),
            Err(_) => Err(AgentError::Garbled { doing, line: excerpt(&line) }),
        }
    }
}

/// All that an agent reads that works from a script: these requests between the greeting and the shutdown.
pub fn script(requests: &[Request]) -> Vec<Request> {
    let mut script = vec![Request::Hello(Hello::ours())];
    script.extend_from_slice(requests);
    script.push(Request::Shutdown);
    script
}

/// As [`Lines::fill`]. A socket whose other end was closed with something unread in it has ended, too.
fn fill(lines: &mut Lines, from: BorrowedFd<'_>) -> Result<bool, AgentError> {
    match lines.fill(from) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(false),
        filled => Ok(filled?),
    }
}

fn line(request: &Request) -> Result<Vec<u8>, AgentError> {
    let mut line = serde_json::to_vec(request).map_err(std::io::Error::from)?;
    line.push(b'\n');
    Ok(line)
}

fn out_of_place(doing: &'static str, event: &Event) -> AgentError {
    let line = serde_json::to_vec(event).unwrap_or_default();
    AgentError::Garbled { doing, line: excerpt(&line) }
}

fn excerpt(line: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(line).chars().take(120).collect();
    text.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;
    use std::thread;

    /// A client whose agent answers its greeting and then says `lines` and leaves.
    fn against(lines: &'static [u8]) -> Result<Client, AgentError> {
        let (agent_in, to) = pipe().unwrap();
        let (from, agent_out) = pipe().unwrap();
        thread::spawn(move || {
            let mut greeting = [0; 4096];
            rustix::io::read(&agent_in, &mut greeting).unwrap();
            rustix::io::write(&agent_out, lines).unwrap();
        });
        Client::greet(to, from, Stop::default())
    }

    #[test]
    fn strangers_and_dead_streams_have_names() {
        assert!(matches!(against(b"hello?\n"), Err(AgentError::Garbled { .. })));
        assert!(matches!(against(b"Segmentation"), Err(AgentError::Garbled { .. })));
        assert!(matches!(against(b""), Err(AgentError::Died { .. })));
        let other = b"{\"event\":\"hello\",\"protocol\":1,\"build\":\"0.0.1-0\"}\n";
        assert!(matches!(against(other), Err(AgentError::Build { .. })));
    }

    #[test]
    fn a_script_is_followed_to_the_letter_and_its_answers_are_read_from_a_file() {
        let answers = tempfile();
        let (ended, lives) = pipe().unwrap();
        let say = |event: &Event| {
            let line = serde_json::to_string(event).unwrap() + "\n";
            std::fs::File::options().append(true).open(&answers).unwrap().write_all(line.as_bytes()).unwrap();
        };
        let requests = [Request::Prepare { knobs: Vec::new() }, Request::Facts];
        let from = File::open(&answers).unwrap();
        let mut client = Client::scripted(&requests, from, ended, Stop::default()).slowed(2);
        let soon = || Instant::now() + Duration::from_millis(1);
        assert_eq!(client.first_word(soon()).unwrap(), None, "nothing is written yet");
        say(&Event::Up { remarks: vec!["no debugfs".into()] });
        assert_eq!(client.first_word(soon()).unwrap().unwrap(), ["no debugfs"]);
        say(&Event::Hello(Hello::ours()));
        client.hello().unwrap();
        let error = client.facts().unwrap_err();
        assert!(matches!(error, AgentError::OffScript { .. }), "{error}");
        assert!(error.to_string().contains("prepare"), "{error}");
        say(&Event::Facts(Box::default()));
        client.facts().unwrap();
        assert!(matches!(client.facts().unwrap_err(), AgentError::OffScript { .. }), "shutdown was next");
        drop(lives);
        assert!(matches!(client.first_word(soon()), Err(AgentError::Died { .. })));
        std::fs::remove_file(&answers).unwrap();
    }

    fn tempfile() -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("kduel-answers-{}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        path
    }

    #[test]
    fn a_stop_is_seen_while_waiting() {
        let (_agent_in, to) = pipe().unwrap();
        let (from, _agent_out) = pipe().unwrap();
        let stop = Stop::default();
        stop.ask();
        assert!(matches!(Client::greet(to, from, stop), Err(AgentError::Stopped)));
    }
}
