//! What the two ends say to each other: one JSON object per line.

use crate::program::Program;
use experiment::{Facts, Failure, Knob, Outcome, Params, Point, Usage};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// The version of the protocol. Ends of different versions part at the hello.
pub const PROTOCOL: u32 = 1;

/// The first line from either side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the protocol.
    pub protocol: u32,
    /// The build that speaks; both ends must be of one build.
    pub build: String,
}

impl Hello {
    /// The hello of this build.
    pub fn ours() -> Hello {
        Hello { protocol: PROTOCOL, build: build_id().into() }
    }
}

static BUILD: OnceLock<String> = OnceLock::new();

/// The id of this build: its version and the checksum of its binary, wherever that lies. Symbols do not count, since
/// they are left behind where the binary is sent elsewhere.
pub fn build_id() -> &'static str {
    BUILD.get_or_init(|| Program::Itself.build_id())
}

/// For a process that knows its build otherwise: whoever put the binary there knows it and spares an emulated machine the
/// checksum, or the kernel takes the loader for the program.
pub(crate) fn be_of_build(id: String) {
    // Set already only if it was asked for before, and then it is the same.
    let _ = BUILD.set(id);
}

/// From the coordinator to the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "request")]
pub enum Request {
    /// The coordinator's hello.
    Hello(Hello),
    /// Can these knobs be turned here, and this work be done when they are? They go back at once. Answered by
    /// `checked`.
    Check {
        /// The knobs of one variant.
        knobs: Vec<Knob>,
        /// What the variant is to run.
        work: Vec<Work>,
    },
    /// Turn the machine's knobs to just these: what was turned before and is not among them goes back. Answered by
    /// `ready` or `refused`.
    Prepare {
        /// The knobs of one variant.
        knobs: Vec<Knob>,
    },
    /// Run one trial. Answered by `started`, then `done`.
    Trial(Box<TrialRequest>),
    /// What machine is this? Answered by `facts`.
    Facts,
    /// Put everything back and leave.
    Shutdown,
}

/// What a trial does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The workload's name.
    pub workload: String,
    /// All its parameters.
    pub params: Params,
    /// The point.
    pub point: Point,
}

/// One trial to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRequest {
    /// Marks every process of the trial, so that none can be lost.
    pub token: String,
    /// What it does.
    pub work: Work,
    /// The variant's knobs; those of the machine are already turned.
    pub knobs: Vec<Knob>,
    /// The seed for the trial's random choices; the same for every variant of a block.
    pub seed: u64,
    /// The length of a variable that shifts the stack; drawn anew for each trial.
    pub padding_bytes: usize,
    /// Seconds after which the trial is killed.
    pub deadline_s: f64,
}

/// From the agent to the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "event")]
pub enum Event {
    /// The first word of a virtual machine, before it is greeted: its kernel runs and the agent is about to listen.
    Up {
        /// What this kernel does not have, and what did not work, one sentence each.
        remarks: Vec<String>,
    },
    /// The agent's hello.
    Hello(Hello),
    /// What stands against the knobs and the work, one sentence each; empty when nothing does.
    Checked {
        /// The problems.
        problems: Vec<String>,
    },
    /// Prepared.
    Ready,
    /// Could not be prepared; what was turned has gone back.
    Refused {
        /// Why.
        why: String,
    },
    /// What machine this is.
    Facts(Box<Facts>),
    /// A trial has a process.
    Started {
        /// Its process id, which is also its process group.
        pid: i32,
    },
    /// A trial is over.
    Done(Box<Done>),
}

/// The end of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// What came of it.
    pub outcome: Outcome,
    /// What it used.
    pub usage: Usage,
    /// Lines that the kernel logged meanwhile.
    pub kernel_log: Vec<String>,
    /// From the request to the end of its last process, in nanoseconds.
    pub elapsed_ns: u64,
}

impl Done {
    /// The end of a trial that never got a process.
    pub(crate) fn missing(failure: Failure, why: String) -> Done {
        Done {
            outcome: Outcome::Missing { failure, why },
            usage: Usage::default(),
            kernel_log: Vec::new(),
            elapsed_ns: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_its_line() {
        let requests = [
            Request::Hello(Hello::ours()),
            Request::Check { knobs: vec![Knob::parse("nice", "3").unwrap()], work: Vec::new() },
            Request::Facts,
            Request::Shutdown,
        ];
        for request in requests {
            let line = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), request, "{line}");
        }
        let done = Done {
            outcome: Outcome::Missing { failure: experiment::Failure::Hang, why: "x\ny".into() },
            usage: Usage { steal_ns: Some(7), ..Usage::default() },
            kernel_log: vec!["line".into()],
            elapsed_ns: 5,
        };
        for event in [Event::Ready, Event::Started { pid: 7 }, Event::Done(Box::new(done))] {
            let line = serde_json::to_string(&event).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event, "{line}");
        }
    }
}
