//! Counters of the kernel's performance events, opened to see whether they count.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read as _};
use std::os::fd::FromRawFd as _;
use std::time::{Duration, Instant};

/// How long a counter is given something to count.
const WORK: Duration = Duration::from_millis(2);

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const READ_TIME_ENABLED: u64 = 1;
const READ_TIME_RUNNING: u64 = 2;
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Cycles of the CPU.
    Cycles,
    /// Instructions that retired.
    Instructions,
    /// Nanoseconds, by a timer: what profiles fall back to without a PMU.
    CpuClock,
}

/// Whose work is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// That of this thread in user mode.
    UserMode,
    /// That of this thread, in the kernel too.
    KernelMode,
    /// That of every task on a CPU.
    Machine,
}

/// What a counter counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// The count.
    pub value: u64,
    /// For how long it had a counter of the hardware, in nanoseconds.
    pub running_ns: u64,
}

/// The first form of the kernel's `perf_event_attr`, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// Counts `event` over two milliseconds of work.
///
/// # Errors
/// What the kernel says when it does not open or read such a counter.
pub fn count(event: Event, watched: Watched) -> io::Result<Counted> {
    let mut counter = open(event, watched)?;
    let start = Instant::now();
    let mut turns = 0_u64;
    while start.elapsed() < WORK {
        turns = black_box(turns.wrapping_mul(3).wrapping_add(1));
    }
    // The count, the time it was enabled and the time it ran; a read of less is refused.
    let mut bytes = [0; 24];
    counter.read_exact(&mut bytes)?;
    let word = |first: usize| bytes[first..first + 8].try_into().map_or(0, u64::from_ne_bytes);
    Ok(Counted { value: word(0), running_ns: word(16) })
}

fn open(event: Event, watched: Watched) -> io::Result<File> {
    let (kind, config) = match event {
        Event::Cycles => (TYPE_HARDWARE, 0),
        Event::Instructions => (TYPE_HARDWARE, 1),
        Event::CpuClock => (TYPE_SOFTWARE, 0),
    };
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        read_format: READ_TIME_ENABLED | READ_TIME_RUNNING,
        flags: if watched == Watched::UserMode { EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR } else { 0 },
        ..Attributes::default()
    };
    let (task, cpu): (libc::c_int, libc::c_int) = match watched {
        Watched::UserMode | Watched::KernelMode => (0, -1),
        Watched::Machine => (-1, rustix::thread::sched_getcpu() as libc::c_int),
    };
    let no_group: libc::c_int = -1;
    // SAFETY: the kernel reads `size` bytes, all of the live value, and takes numbers otherwise.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, task, cpu, no_group, CLOSE_ON_EXEC)
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it and nobody else owns it.
    Ok(unsafe { File::from_raw_fd(descriptor as i32) })
}
