//! The agent: answers requests until it is told to leave or the stream ends.

use crate::child::{Ended, Trial};
use crate::program::Program;
use crate::requests::Requests;
use crate::trial;
use crate::wire::{Done, Event, Hello, Request, TrialRequest, Work, be_of_build};
use experiment::{Failure, Knob};
use machine::{Root, Undo};
use rustix::stdio::stdout;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use thiserror::Error;

/// What ends an agent other than being told to leave.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The stream failed.
    #[error("the stream to the coordinator failed: {0}")]
    Stream(#[from] io::Error),
    /// A line that is none of the protocol.
    #[error("not understood: {0}")]
    Garbled(String),
    /// Something that was changed could not be put back. The undo journal keeps it.
    #[error("could not put back what was changed: {0}")]
    Undo(String),
}

/// Serves standard input and output until the coordinator says so, its stream ends, or SIGTERM or SIGHUP comes.
/// Whatever happened, the machine's knobs are put back before it returns. `undo` is the directory of undo journals.
///
/// # Errors
/// When the stream fails, or something cannot be put back.
pub fn serve(undo: &Path) -> Result<(), ServeError> {
    serve_requests(Agent::new(Requests::from_stream(), undo, Program::Itself, None)?)
}

/// As [`serve`], with all requests in the file `script`, for a machine to which nothing can be said.
///
/// # Errors
/// As [`serve`], and when the script cannot be read.
pub(crate) fn serve_script(script: &Path, undo: &Path) -> Result<(), ServeError> {
    serve_requests(Agent::new(Requests::from_script(script)?, undo, Program::Itself, None)?)
}

/// As [`serve`], in a process that was started by the loader in `directory`, that of a capsule, on a machine that is not
/// the coordinator's.
///
/// # Errors
/// As [`serve`].
pub fn serve_from_capsule(undo: &Path, directory: &Path) -> Result<(), ServeError> {
    // The coordinator's token names a process of another machine, so nobody here could see whether it is alive. An
    // own one lets the next agent here end what this one leaves should it be killed.
    let token = machine::new_token(&Root::real()).ok();
    let program = Program::Capsule(directory.into());
    be_of_build(program.build_id());
    serve_requests(Agent::new(Requests::from_stream(), undo, program, token)?)
}

fn serve_requests(mut agent: Agent) -> Result<(), ServeError> {
    let served = match agent.serve() {
        // A coordinator that was killed while an answer was under way is a stream that has ended.
        Err(ServeError::Stream(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        served => served,
    };
    // What stays changed outlasts the stream, so it is what must be told.
    agent.put_back().map_err(ServeError::Undo).and(served)
}

struct Agent {
    root: Root,
    program: Program,
    /// What marks the processes of trials here, where that is not the coordinator's token.
    token: Option<String>,
    undo: Undo,
    requests: Requests,
    leave: Arc<AtomicBool>,
}

impl Agent {
    fn new(
        requests: Requests,
        undo: &Path,
        program: Program,
        token: Option<String>,
    ) -> Result<Agent, ServeError> {
        let leave = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&leave))?;
        }
        // What a trial leaves behind is handed to the agent, which ends and counts it.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(io::Error::from)?;
        let undo = Undo::new(undo).map_err(|error| ServeError::Undo(error.to_string()))?;
        Ok(Agent { root: Root::real(), program, token, undo, requests, leave })
    }

    fn serve(&mut self) -> Result<(), ServeError> {
        while let Some(line) = self.requests.next(&self.leave)? {
            let request: Request = serde_json::from_slice(&line).map_err(|error| {
                ServeError::Garbled(format!("{error}: {}", String::from_utf8_lossy(&line)))
            })?;
            match request {
                Request::Hello(_) => say(&Event::Hello(Hello::ours()))?,
                Request::Check { knobs, work } => {
                    let problems = self.check(&knobs, &work);
                    say(&Event::Checked { problems })?;
                }
                Request::Prepare { knobs } => {
                    match machine::knobs::turn_to(&self.root, &knobs, &mut self.undo) {
                        Ok(()) => say(&Event::Ready)?,
                        Err(error) => say(&Event::Refused { why: error.to_string() })?,
                    }
                }
                Request::Facts => say(&Event::Facts(Box::new(machine::facts(&self.root))))?,
                Request::Trial(request) => match self.trial(*request)? {
                    Ended::Done(done) => say(&Event::Done(done))?,
                    Ended::ToldToLeave => return Ok(()),
                },
                Request::Shutdown => return Ok(()),
            }
        }
        Ok(())
    }

    /// What stands against the knobs, and against the work with the knobs turned: one of them may be what makes room for it.
    fn check(&mut self, knobs: &[Knob], work: &[Work]) -> Vec<String> {
        let of_knobs = machine::knobs::check(&self.root, knobs);
        let turns = of_knobs.is_empty();
        let mut problems: Vec<String> = of_knobs.iter().map(ToString::to_string).collect();
        for work in work {
            let turned = if turns { self.turn_for(knobs, work) } else { Ok(()) };
            let Err(problem) = turned.and_then(|()| trial::check(work)) else { continue };
            // Most problems are the same at every point.
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        // What cannot be put back now is tried again, and told, before the next knob is turned and at the end.
        self.undo.rewind();
        problems
    }

    fn put_back(&mut self) -> Result<(), String> {
        let recovery = self.undo.restore();
        if recovery.failed.is_empty() {
            return Ok(());
        }
        Err(recovery.failed.iter().map(ToString::to_string).collect::<Vec<String>>().join("; "))
    }

    /// Turns the machine's knobs to those of the variant and to what the work itself needs.
    fn turn_for(&mut self, knobs: &[Knob], work: &Work) -> Result<(), String> {
        let mut all = knobs.to_vec();
        // What the variant says goes before what its work needs.
        all.extend(
            trial::knobs(work)?
                .into_iter()
                .filter(|needed| knobs.iter().all(|knob| knob.scope != needed.scope)),
        );
        machine::knobs::turn_to(&self.root, &all, &mut self.undo).map_err(|error| error.to_string())
    }

    fn trial(&mut self, mut request: TrialRequest) -> Result<Ended, ServeError> {
        if let Err(why) = self.turn_for(&request.knobs, &request.work) {
            return Ok(Ended::Done(Box::new(Done::missing(Failure::Knob, why))));
        }
        if let Some(token) = &self.token {
            request.token.clone_from(token);
        }
        let trial = match Trial::start(&request, &self.program) {
            Ok(trial) => trial,
            Err(done) => return Ok(Ended::Done(done)),
        };
        say(&Event::Started { pid: trial.pid() })?;
        Ok(trial.watch(&mut self.requests, &self.leave)?)
    }
}

pub(crate) fn say(event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    File::from(stdout().as_fd().try_clone_to_owned()?).write_all(&line)
}
