//! Why a process failed, in memory that it shares with the one that started it.

use crate::Failure;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

/// What the first process said that failed.
#[derive(Debug)]
pub struct Complaint {
    state: AtomicU32,
    /// The place of its kind in [`KINDS`], or [`INVARIANT`].
    kind: AtomicUsize,
    text: [AtomicU8; TEXT_BYTES],
}

const TEXT_BYTES: usize = 480;

/// The kinds of failure that a workload knows.
const KINDS: [experiment::Failure; 5] = [
    experiment::Failure::Refused,
    experiment::Failure::Invariant,
    experiment::Failure::Spawn,
    experiment::Failure::Signal,
    experiment::Failure::Exit,
];

/// Stands for [`Failure::Invariant`] itself, beyond all places in [`KINDS`].
const INVARIANT: usize = KINDS.len();

const NONE: u32 = 0;
const WRITING: u32 = 1;
const WRITTEN: u32 = 2;

impl Default for Complaint {
    fn default() -> Self {
        Complaint {
            state: AtomicU32::new(NONE),
            kind: AtomicUsize::new(0),
            text: std::array::from_fn(|_| AtomicU8::new(0)),
        }
    }
}

impl Complaint {
    /// Leaves a failure, unless there is one already.
    pub fn write(&self, failure: &Failure) {
        if self.state.compare_exchange(NONE, WRITING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        let place = |kind| KINDS.iter().position(|known| *known == kind).unwrap_or_default();
        let (kind, text) = match failure {
            // Its words are put before it again.
            Failure::Invariant(text) => (INVARIANT, text.clone()),
            other => (place(other.kind()), other.to_string()),
        };
        self.kind.store(kind, Ordering::Relaxed);
        for (place, byte) in self.text.iter().zip(text.bytes()) {
            place.store(byte, Ordering::Relaxed);
        }
        self.state.store(WRITTEN, Ordering::Release);
    }

    /// The failure that was left.
    pub fn read(&self) -> Option<Failure> {
        if self.state.load(Ordering::Acquire) != WRITTEN {
            return None;
        }
        let bytes: Vec<u8> =
            self.text.iter().map(|byte| byte.load(Ordering::Relaxed)).take_while(|byte| *byte != 0).collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Some(match KINDS.get(self.kind.load(Ordering::Relaxed)) {
            None => Failure::Invariant(text),
            Some(experiment::Failure::Refused) => Failure::Refused(text),
            Some(kind) => Failure::Told { kind: *kind, why: text },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_its_kind_and_its_words() {
        let command = |by_signal| Failure::Command {
            line: "true".into(),
            how: "left with status 3".into(),
            said: "nothing".into(),
            by_signal,
        };
        for failure in [
            Failure::Invariant("a lost message".into()),
            Failure::Refused("no room".into()),
            Failure::Spawn { nth: 3, count: 5, why: "EAGAIN".into() },
            command(true),
            command(false),
            command(false).of("the load"),
            Failure::Invariant("a lost message".into()).of("the load"),
        ] {
            let complaint = Complaint::default();
            assert!(complaint.read().is_none());
            complaint.write(&failure);
            complaint.write(&Failure::Refused("the second is not kept".into()));
            let read = complaint.read().unwrap();
            assert_eq!((read.kind(), read.to_string()), (failure.kind(), failure.to_string()));
        }
    }
}
