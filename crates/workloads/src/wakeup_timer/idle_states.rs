//! Whether CPUs may enter deeper idle states meanwhile.

use crate::shared::Semantics;
use crate::{Failure, Trial};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

const DEVICE: &str = "/dev/cpu_dma_latency";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// They may, as the machine has it.
    Leave,
    /// They may not, where this user can say so.
    HoldIfAllowed,
    /// They may not.
    Hold,
}

impl Wish {
    /// What the word means.
    pub fn new(word: &str, semantics: Semantics) -> Wish {
        match (word, semantics) {
            ("hold", _) => Wish::Hold,
            ("auto", Semantics::Original) => Wish::HoldIfAllowed,
            _ => Wish::Leave,
        }
    }
}

/// The kernel's promise, which holds until this is dropped.
#[derive(Debug)]
pub enum IdleStates {
    /// Nothing was asked of it.
    Left,
    /// CPUs stay out of deeper idle states as long as this file is open.
    Held { _until_closed: File },
    /// It was not to be had.
    NotHeld(io::Error),
}

impl IdleStates {
    /// What `wish` asks for.
    ///
    /// # Errors
    /// When it must be held, and cannot.
    pub fn new(wish: Wish) -> Result<IdleStates, Failure> {
        if wish == Wish::Leave {
            return Ok(IdleStates::Left);
        }
        let hold = || -> io::Result<File> {
            let mut device = OpenOptions::new().write(true).open(DEVICE)?;
            // The longest time in microseconds that leaving an idle state may take.
            device.write_all(&0_i32.to_ne_bytes())?;
            Ok(device)
        };
        match hold() {
            Ok(device) => Ok(IdleStates::Held { _until_closed: device }),
            Err(error) if wish == Wish::HoldIfAllowed => Ok(IdleStates::NotHeld(error)),
            Err(error) => Err(Failure::Refused(format!(
                "{DEVICE} cannot be written: {error}; it needs root, or take idle-states=leave"
            ))),
        }
    }

    /// Says in `trial` how it is.
    pub fn note(self, trial: &mut Trial) -> IdleStates {
        match &self {
            IdleStates::Left => {}
            IdleStates::Held { .. } => {
                trial.note(
                    "CPUs were kept out of deeper idle states while it was measured, as cyclictest does",
                );
            }
            IdleStates::NotHeld(error) => trial.note(format!(
                "CPUs may have entered deeper idle states, as {DEVICE} could not be written ({error})"
            )),
        }
        self
    }
}
