use std::hint::black_box;

/// Work that costs processor time and touches no memory: `hold` units inside a section, `think` units outside.
pub trait Work: Copy {
    /// The work of a section.
    fn hold(&mut self);
    /// The work between two sections.
    fn think(&mut self);
}

/// No work: the loop holds not even a test for it.
#[derive(Clone, Copy)]
pub struct Idle;

impl Work for Idle {
    #[inline(always)]
    fn hold(&mut self) {}

    #[inline(always)]
    fn think(&mut self) {}
}

/// So many units of each.
#[derive(Clone, Copy)]
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
/// so about six cycles. Compilers put nothing shorter in the place of a chain of shifts and exclusive-ors, and
/// `black_box` has the result stored before whatever follows: on x86 a later store, such as the one that releases a
/// lock, cannot become visible before it.
#[inline(always)]
fn units(mut state: u64, count: u64) -> u64 {
    if count == 0 {
        return state;
    }
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state)
}
