use std::hint::black_box;

/// Work that costs processor time and touches no memory: `hold` units inside a section, `think` units outside.
pub trait Work {
    /// The work of a section.
    fn hold(&mut self);
    /// The work between two sections.
    fn think(&mut self);
}

/// No work: the loop holds not even a test for it.
pub struct Idle;

impl Work for Idle {
    #[inline(always)]
    fn hold(&mut self) {}

    #[inline(always)]
    fn think(&mut self) {}
}

/// So many units of each.
pub struct Units {
    /// Units inside.
    pub hold: u64,
    /// Units outside.
    pub think: u64,
    /// What the units work on; differs from thread to thread and is never 0.
    pub state: u64,
}

impl Work for Units {
    #[inline(always)]
    fn hold(&mut self) {
        self.state = units(self.state, self.hold);
    }

    #[inline(always)]
    fn think(&mut self) {
        self.state = units(self.state, self.think);
    }
}

/// One unit is a step of a xorshift generator: six instructions, each of which needs the result of the one before,
/// so about six cycles. Shifts and exclusive-ors of one value have no closed form that a compiler could put in the
/// loop's place, and `black_box` pins the result to this side of whatever follows.
#[inline(always)]
fn units(mut state: u64, count: u64) -> u64 {
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state)
}
