//! The four loops. This file uses nothing of the crate, so that a test can compile it by itself and read the assembly.

/// The four loops with one way to store.
#[derive(Debug)]
pub struct Kernels {
    /// c = a
    pub copy: fn(a: &[f64], c: &mut [f64]),
    /// b = scalar c
    pub scale: fn(b: &mut [f64], c: &[f64], scalar: f64),
    /// c = a + b
    pub add: fn(a: &[f64], b: &[f64], c: &mut [f64]),
    /// a = b + scalar c
    pub triad: fn(a: &mut [f64], b: &[f64], c: &[f64], scalar: f64),
}

/// With plain stores.
pub static THROUGH_CACHES: Kernels = kernels::<ThroughCaches>();

/// With non-temporal stores.
#[cfg(target_arch = "x86_64")]
pub static PAST_CACHES: Kernels = kernels::<PastCaches>();

const fn kernels<S: Store>() -> Kernels {
    Kernels { copy: copy::<S>, scale: scale::<S>, add: add::<S>, triad: triad::<S> }
}

#[inline(never)]
fn copy<S: Store>(a: &[f64], c: &mut [f64]) {
    for (c, a) in c.iter_mut().zip(a) {
        S::store(c, *a);
    }
    S::finish();
}

#[inline(never)]
fn scale<S: Store>(b: &mut [f64], c: &[f64], scalar: f64) {
    for (b, c) in b.iter_mut().zip(c) {
        S::store(b, scalar * *c);
    }
    S::finish();
}

#[inline(never)]
fn add<S: Store>(a: &[f64], b: &[f64], c: &mut [f64]) {
    for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
        S::store(c, *a + *b);
    }
    S::finish();
}

#[inline(never)]
fn triad<S: Store>(a: &mut [f64], b: &[f64], c: &[f64], scalar: f64) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        S::store(a, *b + scalar * *c);
    }
    S::finish();
}

/// a = 1 and b = 2 element by element, and then c = 0: the order in which gcc compiles the original's one loop. It decides
/// which pages of the arrays lie beside one another in memory.
pub fn first_touch(a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
    for (a, b) in a.iter_mut().zip(b) {
        ThroughCaches::store(a, 1.0);
        ThroughCaches::store(b, 2.0);
    }
    c.fill(0.0);
}

/// How a loop stores.
trait Store {
    fn store(place: &mut f64, value: f64);

    /// Makes the stores so far visible before anything that follows.
    fn finish() {}
}

struct ThroughCaches;

impl Store for ThroughCaches {
    #[inline(always)]
    fn store(place: &mut f64, value: f64) {
        *place = value;
        // Without this the compiler makes Copy a call of memcpy, which stores past the caches when much is copied, and
        // does several elements at once in all loops. `gcc -O2 -fopenmp` does one at a time.
        // SAFETY: It is no instruction.
        unsafe { std::arch::asm!("", options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "x86_64")]
struct PastCaches;

#[cfg(target_arch = "x86_64")]
impl Store for PastCaches {
    #[inline(always)]
    fn store(place: &mut f64, value: f64) {
        let place: *mut f64 = place;
        // SAFETY: The place is a valid and aligned f64, which is as large as an i64, and all bits of which mean
        // something. SSE2 is part of x86-64. `finish` fences before anybody else reads.
        unsafe { std::arch::x86_64::_mm_stream_si64(place.cast(), value.to_bits() as i64) };
    }

    #[inline(always)]
    fn finish() {
        // SAFETY: SSE is part of x86-64.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
}
