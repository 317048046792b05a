//! Who is how important.

use crate::Failure;
use experiment::{Knob, Scope};

/// What a thread is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Holds the lock most of the time, and is the least important.
    Owner,
    /// Needs the lock now and then, and is the most important.
    Waiter,
    /// Needs the CPU, and is in between.
    Hog,
}

/// By what the three differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priorities {
    /// Nice values: any user may lower them.
    Nice,
    /// The owner is an ordinary thread, the others have real-time priorities, the lowest that there are: threads of the
    /// kernel stand above them.
    Fifo,
}

impl Priorities {
    /// Gives the calling thread the priority of its role.
    ///
    /// # Errors
    /// When this user may not have it; the error says what would allow it.
    pub fn take(self, role: Role) -> Result<(), Failure> {
        let (scope, value) = match (self, role) {
            // What the trial has, unless a knob says otherwise.
            (Priorities::Nice, Role::Waiter) | (Priorities::Fifo, Role::Owner) => return Ok(()),
            (Priorities::Nice, Role::Hog) => (Scope::Nice, "10"),
            (Priorities::Nice, Role::Owner) => (Scope::Nice, "19"),
            (Priorities::Fifo, Role::Hog) => (Scope::Policy, "fifo:1"),
            (Priorities::Fifo, Role::Waiter) => (Scope::Policy, "fifo:2"),
        };
        let knob = Knob { scope, value: value.into() };
        machine::apply_to_self(&[knob]).map_err(|problem| {
            Failure::Refused(format!("the {role:?} cannot have its priority: {problem}").to_lowercase())
        })
    }
}
