//! The coordinator's end of the stream.

use crate::lines::{Lines, wait_readable};
use crate::wire::{Done, Event, Hello, PROTOCOL, Request, TrialRequest, Work};
use experiment::{Facts, Knob};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
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
    to: OwnedFd,
    from: OwnedFd,
    lines: Lines,
    stop: Stop,
}

impl Client {
    /// Greets the agent behind these two descriptors.
    ///
    /// # Errors
    /// When it does not answer or is of another build.
    pub fn greet(to: OwnedFd, from: OwnedFd, stop: Stop) -> Result<Client, AgentError> {
        let mut client = Client { to, from, lines: Lines::default(), stop };
        let doing = "being greeted";
        let ours = Hello::ours();
        client.send(&Request::Hello(ours.clone()))?;
        match client.answer(doing, ANSWER)? {
            Event::Hello(theirs) if theirs == ours && theirs.protocol == PROTOCOL => Ok(client),
            Event::Hello(theirs) => Err(AgentError::Build { theirs: theirs.build, ours: ours.build }),
            other => Err(out_of_place(doing, &other)),
        }
    }

    /// What stands against turning these knobs and doing this work there, one sentence each.
    ///
    /// # Errors
    /// When the agent fails.
    pub fn check(&mut self, knobs: &[Knob], work: Vec<Work>) -> Result<Vec<String>, AgentError> {
        let doing = "checking what is asked";
        self.send(&Request::Check { knobs: knobs.to_vec(), work })?;
        match self.answer(doing, ANSWER)? {
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
        match self.answer(doing, ANSWER)? {
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
        match self.answer(doing, ANSWER)? {
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
        let patience = Duration::from_secs_f64(request.deadline_s) + GRACE;
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
        let mut line = serde_json::to_vec(request).map_err(std::io::Error::from)?;
        line.push(b'\n');
        let mut pipe = std::fs::File::from(self.to.try_clone()?);
        pipe.write_all(&line).map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => AgentError::Died { doing: "being asked" },
            _ => AgentError::Stream(error),
        })
    }

    fn answer(&mut self, doing: &'static str, patience: Duration) -> Result<Event, AgentError> {
        let asked_at = Instant::now();
        loop {
            if let Some(line) = self.lines.next() {
                return serde_json::from_slice(&line)
                    .map_err(|_| AgentError::Garbled { doing, line: excerpt(&line) });
            }
            if self.stop.asked() {
                return Err(AgentError::Stopped);
            }
            if asked_at.elapsed() > patience {
                return Err(AgentError::Silent { doing, waited: patience });
            }
            let ready = wait_readable(&[self.from.as_fd()], Instant::now() + GLANCE)?;
            if ready.contains(&true) && !self.lines.fill(self.from.as_fd())? {
                return match self.lines.rest() {
                    [] => Err(AgentError::Died { doing }),
                    rest => Err(AgentError::Garbled { doing, line: excerpt(rest) }),
                };
            }
        }
    }
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
    fn a_stop_is_seen_while_waiting() {
        let (_agent_in, to) = pipe().unwrap();
        let (from, _agent_out) = pipe().unwrap();
        let stop = Stop::default();
        stop.ask();
        assert!(matches!(Client::greet(to, from, stop), Err(AgentError::Stopped)));
    }
}
