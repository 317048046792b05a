//! What the kernel that runs this does.

use rseq_slice::{Absent, Counts, Place, Slice, is_registered, sizes};
use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The extension of this thread; none, with a word on why, where this kernel has it not.
fn enable() -> Option<Slice> {
    match Slice::enable() {
        Ok(slice) => Some(slice),
        Err(absent) => {
            println!("skipped: {absent}");
            None
        }
    }
}

/// The kernel's word on whether this is a kernel with the extension, on another way than that of the crate.
fn debugfs_has_it() -> Option<bool> {
    let mounted = std::fs::exists("/sys/kernel/debug/sched").is_ok_and(|there| there);
    mounted.then(|| std::fs::exists("/sys/kernel/debug/rseq/slice_ext_nsec").is_ok_and(|there| there))
}

#[test]
fn l5_with_or_without_the_extension_libc_has_its_area_again() {
    let before = is_registered();
    let enabled = Slice::enable();
    match &enabled {
        Ok(slice) => {
            println!("{slice:?}, {:?}", sizes());
            assert_eq!(is_registered(), Ok(true));
            assert_eq!(slice.place() == Place::Libc, sizes().libc_suffices());
            assert_ne!(debugfs_has_it(), Some(false));
        }
        Err(absent) => {
            println!("{absent}");
            assert_eq!(is_registered(), before);
            match absent {
                Absent::TooOld => assert!(sizes().kernel_bytes.unwrap_or(0) < 33),
                Absent::NotBuilt => assert_ne!(debugfs_has_it(), Some(true)),
                Absent::TurnedOff => {
                    let words = std::fs::read_to_string("/proc/cmdline").unwrap();
                    assert!(words.contains("rseq_slice_ext="), "{words}");
                }
                _ => {}
            }
        }
    }
    drop(enabled);
    assert_eq!(is_registered(), before);
    // And it is kept up to date: glibc reads the CPU there.
    for _ in 0..1000 {
        assert!(cpu() >= 0);
    }
}

fn cpu() -> i32 {
    // SAFETY: the call gives only a number.
    unsafe { libc::sched_getcpu() }
}

#[test]
fn the_extension_can_be_had_again_and_only_once_at_a_time() {
    for _ in 0..3 {
        let Some(slice) = enable() else { return };
        if slice.place() == Place::Own {
            assert_eq!(Slice::enable().unwrap_err(), Absent::Taken);
        }
        slice.during(|| ());
    }
}

/// Not only a grant takes a request away: so does a move to another CPU without one. Whoever took that for a revoked grant
/// would claim grants where there were none.
#[test]
fn l5_a_move_to_another_cpu_loses_the_request_and_is_no_grant() {
    let Some(slice) = enable() else { return };
    if thread::available_parallelism().unwrap().get() < 2 {
        println!("skipped: there is no other CPU");
        return;
    }
    let there = cpu() as usize;
    let moved = (0..20).filter(|turn| {
        slice.during(|| {
            let before = cpu();
            pin((there + turn) % 2);
            cpu() != before
        })
    });
    let moved = moved.count() as u64;
    assert!(slice.counts().lost >= moved.min(10), "{moved} moves: {:?}", slice.counts());
}

/// Lets this thread run on one CPU only, if it may.
fn pin(cpu: usize) {
    // SAFETY: a set of CPUs is a set of bits, of which none is set at first.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number lies within the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is one, and 0 is the calling thread.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
}

/// More threads than CPUs, all of which are nearly always in a section: some of them must be preempted there.
#[test]
fn l4_this_kernel_grants_what_is_requested() {
    let Some(slice) = enable() else { return };
    drop(slice);
    let stop = AtomicBool::new(false);
    let threads = 2 * thread::available_parallelism().unwrap().get();
    let deadline = Instant::now() + Duration::from_secs(60);
    let counts: Vec<Counts> = thread::scope(|scope| {
        let work = || {
            let slice = Slice::enable().unwrap();
            while !stop.load(Ordering::Relaxed) && Instant::now() < deadline {
                slice.during(|| (0..200).for_each(|_| std::hint::spin_loop()));
                if slice.counts().yields > 0 {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            slice.counts()
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let sum = |of: fn(&Counts) -> u64| counts.iter().map(of).sum::<u64>();
    assert!(sum(|counts| counts.yields) > 0, "{counts:?}");
    assert!(sum(|counts| counts.grants) >= sum(|counts| counts.yields));
}

#[test]
fn libcs_registration_is_told_apart_by_behaviour() {
    const CHILD: &str = "RSEQ_SLICE_TEST_CHILD";
    if env::var_os(CHILD).is_some() {
        println!("registered: {:?}, libc has {:?}", is_registered().unwrap(), sizes().libc_bytes);
        return;
    }
    if is_registered() != Ok(true) || sizes().libc_bytes.is_none() {
        println!("skipped: this libc registers no area here");
        return;
    }
    let with = |tunable: &str| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["libcs_registration_is_told_apart_by_behaviour", "--exact", "--nocapture"]);
        command.env(CHILD, "1").env("GLIBC_TUNABLES", format!("glibc.pthread.rseq={tunable}"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let off = with("0");
    assert!(off.contains("registered: false, libc has None"), "{off}");
    let on = with("1");
    assert!(on.contains("registered: true, libc has Some"), "{on}");
}
