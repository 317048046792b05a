//! Every lock under threads that want it at once, through the registry, as programs use it.

// Helpers of tests may fail like tests.
#![allow(clippy::unwrap_used)]

use locks::{Clh, Guarded, Lock, Mcs, Visitor, names, visit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Calls a generic function with every lock.
macro_rules! with_every_lock {
    ($function:ident) => {
        struct Every;

        impl Visitor for Every {
            type Output = ();

            fn visit<L: Lock>(self) {
                $function::<L>();
            }
        }

        for name in names() {
            visit(name, Every).unwrap();
        }
    };
}

/// Threads that add to a plain counter under a lock, `each` times; `rest` is what they do between two sections.
fn count<L: Lock>(threads: u64, each: u64, rest: impl Fn(u64) + Sync) -> u64 {
    let guarded = Guarded::<L, u64>::new(0).unwrap();
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut context = L::Context::default();
                start.wait();
                for turn in 0..each {
                    guarded.with(&mut context, |counter| {
                        // Read and written in two steps that the optimiser must keep apart.
                        let value = std::hint::black_box(*counter);
                        *counter = value + 1;
                    });
                    rest(turn);
                }
            });
        }
    });
    guarded.into_inner()
}

fn no_section_is_lost_on<L: Lock>() {
    // On two CPUs, two threads meet in every state of a lock without waiting for the scheduler.
    assert_eq!(count::<L>(2, 2_000, |_| ()), 4_000, "{}", L::NAME);
}

#[test]
fn no_section_is_lost() {
    with_every_lock!(no_section_is_lost_on);
}

fn nobody_sleeps_for_ever_on<L: Lock>() {
    // More threads than CPUs, so that owners and waiters are preempted and sleepers exist. A lost wake-up hangs here.
    assert_eq!(
        count::<L>(8, 50, |turn| if turn % 3 == 0 {
            thread::yield_now()
        }),
        400,
        "{}",
        L::NAME
    );
}

#[test]
fn nobody_sleeps_for_ever_with_more_threads_than_cpus() {
    with_every_lock!(nobody_sleeps_for_ever_on);
}

fn at_most_one_is_inside_of<L: Lock>() {
    let guarded = Guarded::<L, ()>::new(()).unwrap();
    let inside = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut context = L::Context::default();
                for _ in 0..50 {
                    guarded.with(&mut context, |()| {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "{}", L::NAME);
                        // Whoever is let in by mistake gets the CPU to show it.
                        thread::yield_now();
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1, "{}", L::NAME);
                    });
                }
            });
        }
    });
}

#[test]
fn at_most_one_is_inside() {
    with_every_lock!(at_most_one_is_inside_of);
}

fn is_released_by_a_panic_in<L: Lock>() {
    let guarded = Guarded::<L, u32>::new(0).unwrap();
    let mut context = L::Context::default();
    let section =
        AssertUnwindSafe(|| guarded.with(&mut context, |_| std::panic::resume_unwind(Box::new(()))));
    assert!(catch_unwind(section).is_err());
    assert_eq!(guarded.with(&mut context, |value| *value + 1), 1, "{}", L::NAME);
}

#[test]
fn a_panic_releases_the_lock() {
    with_every_lock!(is_released_by_a_panic_in);
}

fn fits_beside_a_counter<L: Lock>() {
    #[repr(align(128))]
    struct Line<L>(Guarded<L, u64>);
    let line = Line::<L>(Guarded::new(0).unwrap());
    let start = std::ptr::from_ref(&line) as usize;
    let mut end = 0;
    line.0.with(&mut L::Context::default(), |counter| {
        end = std::ptr::from_ref(counter) as usize + size_of::<u64>()
    });
    assert!(end - start <= 64, "{}: the counter ends at byte {}", L::NAME, end - start);
}

#[test]
fn lock_and_counter_fit_one_cache_line() {
    with_every_lock!(fits_beside_a_counter);
}

/// Contexts outlive locks and serve several, and locks outlive contexts: queue nodes wander between them, and each
/// must be freed once. Meant for a memory checker as well.
fn nodes_wander<L: Lock>() {
    let long_lived = Guarded::<L, u64>::new(0).unwrap();
    let mut context = L::Context::default();
    for _ in 0..3 {
        let short_lived = Guarded::<L, u64>::new(0).unwrap();
        let mut other = L::Context::default();
        for _ in 0..2 {
            long_lived.with(&mut context, |value| *value += 1);
            short_lived.with(&mut context, |value| *value += 1);
            short_lived.with(&mut other, |value| *value += 1);
            long_lived.with(&mut other, |value| *value += 1);
        }
        assert_eq!(short_lived.into_inner(), 4);
    }
    // One lock inside another, as programs nest them, each with a context of its own.
    let mut inner = L::Context::default();
    let nested = Guarded::<L, u64>::new(0).unwrap();
    long_lived.with(&mut context, |_| nested.with(&mut inner, |value| *value += 1));
    assert_eq!(long_lived.into_inner(), 12);
}

#[test]
fn queue_nodes_are_freed_once() {
    nodes_wander::<Mcs>();
    nodes_wander::<Clh>();
}

#[test]
fn names_are_unique_and_known() {
    let mut seen = names();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), names().len());
    struct Name;
    impl Visitor for Name {
        type Output = &'static str;
        fn visit<L: Lock>(self) -> &'static str {
            L::NAME
        }
    }
    for name in names() {
        assert_eq!(visit(name, Name), Ok(name));
    }
    assert_eq!(visit("no-such-lock", Name).unwrap_err().to_string(), "no lock is called `no-such-lock`");
}
