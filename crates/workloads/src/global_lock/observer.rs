use crate::clock;
use stats::Histogram;

/// What is recorded about each section. A kind of recording is a type, so that the loop of the kind that records
/// nothing holds nothing for it.
pub trait Observer {
    /// Whether it records nothing.
    const IS_OFF: bool = false;
    /// What is kept beside the counter, under the lock.
    type Shared: Default + Send;

    /// The observer of thread `index`.
    fn new(index: usize) -> Self;

    /// Before the lock is asked for.
    fn wants(&mut self);

    /// As the first act in the section.
    fn has(&mut self, shared: &mut Self::Shared);

    /// After the lock was given back.
    fn left(&mut self);

    /// How long this thread waited for its sections, in nanoseconds.
    fn waits(self) -> Option<Histogram>;

    /// What was kept under the lock.
    fn owners(shared: &Self::Shared) -> Option<Owners>;
}

/// Records nothing.
pub struct Off;

impl Observer for Off {
    const IS_OFF: bool = true;
    type Shared = ();

    #[inline(always)]
    fn new(_: usize) -> Off {
        Off
    }

    #[inline(always)]
    fn wants(&mut self) {}

    #[inline(always)]
    fn has(&mut self, (): &mut ()) {}

    #[inline(always)]
    fn left(&mut self) {}

    fn waits(self) -> Option<Histogram> {
        None
    }

    fn owners((): &()) -> Option<Owners> {
        None
    }
}

/// Who owned the lock, in runs of sections of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owners {
    /// The last owner, from 1; 0 before the first.
    last: usize,
    /// Sections of the last owner since it got the lock from another.
    run: u64,
    /// The longest such run.
    pub longest_run: u64,
    /// How often the lock went from one thread to another.
    pub hand_offs: u64,
}

impl Owners {
    #[inline(always)]
    fn count(&mut self, owner: usize) {
        if self.last == owner {
            self.run += 1;
        } else {
            self.hand_offs += u64::from(self.last != 0);
            self.last = owner;
            self.run = 1;
        }
        self.longest_run = self.longest_run.max(self.run);
    }
}

/// Records who owns the lock.
pub struct ByOwner {
    me: usize,
}

impl Observer for ByOwner {
    type Shared = Owners;

    fn new(index: usize) -> ByOwner {
        ByOwner { me: index + 1 }
    }

    #[inline(always)]
    fn wants(&mut self) {}

    #[inline(always)]
    fn has(&mut self, shared: &mut Owners) {
        shared.count(self.me);
    }

    #[inline(always)]
    fn left(&mut self) {}

    fn waits(self) -> Option<Histogram> {
        None
    }

    fn owners(shared: &Owners) -> Option<Owners> {
        Some(*shared)
    }
}

/// Records how long each section was waited for, by two readings of the clock, of which the second lies under the
/// lock.
pub struct ByWait {
    since_ns: u64,
    waited_ns: u64,
    waits: Histogram,
}

impl Observer for ByWait {
    type Shared = ();

    fn new(_: usize) -> ByWait {
        ByWait { since_ns: 0, waited_ns: 0, waits: Histogram::new() }
    }

    #[inline(always)]
    fn wants(&mut self) {
        self.since_ns = clock::now_ns();
    }

    #[inline(always)]
    fn has(&mut self, (): &mut ()) {
        self.waited_ns = clock::now_ns().saturating_sub(self.since_ns);
    }

    #[inline(always)]
    fn left(&mut self) {
        self.waits.record(self.waited_ns);
    }

    fn waits(self) -> Option<Histogram> {
        Some(self.waits)
    }

    fn owners((): &()) -> Option<Owners> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_counted_in_runs() {
        let mut owners = Owners::default();
        for owner in [1, 1, 2, 2, 2, 1] {
            owners.count(owner);
        }
        assert_eq!((owners.longest_run, owners.hand_offs), (3, 2));
    }
}
