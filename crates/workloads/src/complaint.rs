//! Why a process failed, in memory that it shares with the one that started it.

use crate::Failure;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// What the first process said that failed.
#[derive(Debug)]
pub struct Complaint {
    state: AtomicU32,
    /// Whether it is one of an invariant; of what cannot be done otherwise.
    invariant: AtomicU32,
    text: [AtomicU8; TEXT_BYTES],
}

const TEXT_BYTES: usize = 480;

const NONE: u32 = 0;
const WRITING: u32 = 1;
const WRITTEN: u32 = 2;

impl Default for Complaint {
    fn default() -> Self {
        Complaint {
            state: AtomicU32::new(NONE),
            invariant: AtomicU32::new(0),
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
        let text = match failure {
            Failure::Invariant(text) => {
                self.invariant.store(1, Ordering::Relaxed);
                text.clone()
            }
            other => other.to_string(),
        };
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
        Some(match self.invariant.load(Ordering::Relaxed) {
            0 => Failure::Refused(text),
            _ => Failure::Invariant(text),
        })
    }
}
