//! Locks in user space.

use super::path::Path;
use super::round::burn;
use crate::Failure;
use crate::clock::now_ns;
use crate::times::Times;
use locks::{Guarded, Lock};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A lock of the crate `locks`, which the owner holds for a fixed processor time.
pub struct Futex<L> {
    shared: Guarded<L, Protected>,
    /// Who is in a section: [`OWNER`], [`WAITER`] or [`NOBODY`].
    inside: AtomicU32,
    hold: Duration,
}

/// What the lock protects.
#[derive(Default)]
struct Protected {
    sections: u64,
    /// Sections that began or ended while another one had not ended.
    overlaps: u64,
}

const NOBODY: u32 = 0;
const OWNER: u32 = 1;
const WAITER: u32 = 2;

impl<L: Lock> Futex<L> {
    /// The lock, held for `hold` each time.
    pub fn new(hold: Duration) -> Result<Futex<L>, Failure> {
        let shared =
            Guarded::new(Protected::default()).map_err(|error| Failure::Refused(error.to_string()))?;
        Ok(Futex { shared, inside: AtomicU32::new(NOBODY), hold })
    }

    /// One section under the lock; returns when it began.
    fn section(&self, context: &mut L::Context, who: u32, work: impl FnOnce()) -> u64 {
        self.shared.with(context, |protected| {
            let has_ns = now_ns();
            let before = self.inside.swap(who, Ordering::Relaxed);
            protected.sections += 1;
            work();
            let after = self.inside.swap(NOBODY, Ordering::Relaxed);
            protected.overlaps += u64::from(before != NOBODY || after != who);
            has_ns
        })
    }
}

impl<L: Lock> Path for Futex<L> {
    fn owner(&self) -> impl FnMut(&mut Times) -> Result<(), Failure> {
        let mut context = L::Context::default();
        move |holds| {
            let has_ns = self.section(&mut context, OWNER, || burn(self.hold, u64::MAX));
            holds.record(now_ns().saturating_sub(has_ns));
            Ok(())
        }
    }

    fn waiter(&self) -> impl FnMut() -> Result<u64, Failure> {
        let mut context = L::Context::default();
        move || {
            let wants_ns = now_ns();
            let has_ns = self.section(&mut context, WAITER, || ());
            Ok(has_ns.saturating_sub(wants_ns))
        }
    }

    fn check(self, holds: u64, waits: u64) -> Result<(), Failure> {
        let Protected { sections, overlaps } = self.shared.into_inner();
        if overlaps > 0 {
            return Err(Failure::Invariant(format!("{overlaps} sections overlapped under the lock")));
        }
        if sections != holds + waits {
            return Err(Failure::Invariant(format!(
                "owner and waiter did {} sections, but the counter under the lock came to {sections}",
                holds + waits
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::priority::Priorities;
    use super::super::round::Plan;
    use super::*;
    use crate::no_lock::NoLock;
    use locks::Futex3State;

    fn plan() -> Plan {
        Plan {
            cpus: machine::cpus::allowed().unwrap().to_vec()[..1].to_vec(),
            hogs: 1,
            time: Duration::from_millis(40),
            interval: Duration::from_micros(200),
            rest: Duration::ZERO,
            hog_run: Duration::from_millis(1),
            priorities: Priorities::Nice,
        }
    }

    #[test]
    fn a_lock_that_keeps_nobody_out_is_an_invariant_failure() {
        let hold = Duration::from_millis(2);
        let caught = (0..20).any(|_| {
            let path = Futex::<NoLock>::new(hold).unwrap();
            matches!(plan().play(path), Err(Failure::Invariant(why)) if why.contains("overlapped"))
        });
        assert!(caught);
        plan().play(Futex::<Futex3State>::new(hold).unwrap()).unwrap();
    }

    #[test]
    fn a_section_that_was_not_counted_is_an_invariant_failure() {
        let path = Futex::<Futex3State>::new(Duration::ZERO).unwrap();
        path.owner()(&mut Times::default()).unwrap();
        path.waiter()().unwrap();
        let error = path.check(1, 2).unwrap_err().to_string();
        assert!(error.contains("did 3 sections, but the counter under the lock came to 2"), "{error}");
    }
}
