//! The ring of one thread, with the file and the buffers that belong to it.

use super::queues::Queues;
use super::{Plan, Target};
use crate::Failure;
use rustix::io::Errno;
use rustix::io_uring::{IoringSetupFlags, iovec};
use rustix::process::{Resource, getrlimit};
use std::cell::UnsafeCell;
use std::fs::{self, File};
use std::os::fd::AsFd;

/// Buffers that the kernel registers with a ring at most.
pub const MOST_BUFFERS: u32 = 16_384;
/// Bytes of buffers that a thread has at most.
const MOST_BYTES: u64 = 1 << 30;
const PAGE_BYTES: usize = 4096;

/// The set-up flags from the oldest to the newest. Where the kernel says EINVAL, it is asked again without the newest.
const FLAGS: [(IoringSetupFlags, &str); 5] = [
    (IoringSetupFlags::CQSIZE, "CQSIZE (Linux 5.5)"),
    (IoringSetupFlags::COOP_TASKRUN, "COOP_TASKRUN (5.19)"),
    (IoringSetupFlags::SINGLE_ISSUER, "SINGLE_ISSUER (6.0)"),
    (IoringSetupFlags::DEFER_TASKRUN, "DEFER_TASKRUN (6.1)"),
    (IoringSetupFlags::NO_SQARRAY, "NO_SQARRAY (6.6)"),
];

/// A ring, and what its operations use.
pub struct Ring {
    /// Its queues.
    pub queues: Queues,
    /// What it lacks, in sentences.
    pub notes: Vec<String>,
    /// The file that is read.
    pub file: Option<File>,
    buffers: Vec<Page>,
    /// Bytes from one buffer to the next.
    stride: usize,
}

/// Memory that the kernel writes to. Nothing here reads it.
#[repr(C, align(4096))]
struct Page(UnsafeCell<[u8; PAGE_BYTES]>);

impl Ring {
    /// The ring of the calling thread, which alone may use it, on `target` as `plan` wants it.
    ///
    /// # Errors
    /// When the kernel refuses a part of it; the error says what would change that.
    pub fn new(plan: &Plan, target: &Target) -> Result<Ring, Failure> {
        let (mut queues, note) = set_up(plan)?;
        let mut notes = Vec::from_iter(note);
        // A kernel before 5.18 has no such thing, and the ring works without.
        if plan.registered_ring
            && let Err(error) = queues.register_ring()
        {
            notes.push(format!("the ring could not be registered, which needs Linux 5.18: {error}"));
        }
        let file = target.file()?;
        let (stride, bytes) = (stride(plan), buffer_bytes(plan));
        if file.is_some() && bytes > MOST_BYTES {
            return Err(Failure::Refused(format!(
                "depth={} reads of bs={} need {bytes} bytes per thread, and {MOST_BYTES} is the most; take less of one",
                plan.depth, plan.bs
            )));
        }
        let pages = if file.is_some() { bytes as usize / PAGE_BYTES } else { 0 };
        let buffers = (0..pages).map(|_| Page(UnsafeCell::new([0; PAGE_BYTES]))).collect();
        let ring = Ring { queues, notes, file, buffers, stride };
        ring.register(plan)?;
        Ok(ring)
    }

    fn register(&self, plan: &Plan) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        if plan.registered_files {
            let registered = self.queues.register_file(file.as_fd());
            registered.map_err(|error| refused("the file could not be registered", error))?;
        }
        if plan.fixed_buffers {
            let vectors: Vec<iovec> = (0..plan.depth as usize)
                .map(|index| iovec { iov_base: self.buffer(index).cast(), iov_len: plan.bs as usize })
                .collect();
            // SAFETY: the queues are dropped before the buffers. See also `leave_buffers`.
            let registered = unsafe { self.queues.register_buffers(&vectors) };
            registered.map_err(|error| refused("the buffers could not be registered", error))?;
        }
        Ok(())
    }

    /// The `index`-th buffer.
    pub fn buffer(&self, index: usize) -> *mut u8 {
        let first = self.buffers.as_ptr().cast::<u8>().cast_mut();
        first.wrapping_add(index * self.stride)
    }

    /// Bytes from one buffer to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Forgets the buffers, so that they are there for operations that are still in flight.
    pub fn leave_buffers(&mut self) {
        std::mem::forget(std::mem::take(&mut self.buffers));
    }
}

/// Bytes from one buffer to the next.
fn stride(plan: &Plan) -> usize {
    (plan.bs as usize).next_multiple_of(PAGE_BYTES)
}

/// Bytes of all buffers of a thread that reads.
pub fn buffer_bytes(plan: &Plan) -> u64 {
    stride(plan) as u64 * u64::from(plan.depth)
}

/// Queues with as many of the flags as the kernel takes, and what is to be said of those that it does not.
fn set_up(plan: &Plan) -> Result<(Queues, Option<String>), Failure> {
    let polled = if plan.polled { IoringSetupFlags::IOPOLL } else { IoringSetupFlags::empty() };
    let mut taken = FLAGS.len();
    loop {
        let (with, without) = FLAGS.split_at(taken);
        let flags = with.iter().fold(polled, |flags, (flag, _)| flags | *flag);
        match Queues::new(plan.depth, flags) {
            Ok(queues) => {
                let names: Vec<&str> = without.iter().map(|(_, name)| *name).collect();
                let note = (!names.is_empty()).then(|| format!("this kernel has no {}", names.join(", no ")));
                return Ok((queues, note));
            }
            Err(Errno::INVAL) if taken > 0 => taken -= 1,
            Err(error) => return Err(refused("io_uring could not be set up", error)),
        }
    }
}

/// Why the kernel refuses, and what would change that.
fn refused(what: &str, error: Errno) -> Failure {
    let remedy = match error {
        Errno::NOSYS => {
            "; this kernel has no io_uring, or one older than 5.4, or a seccomp filter hides it".into()
        }
        Errno::PERM | Errno::ACCESS => {
            let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
            match disabled.trim() {
                "" | "0" => "; a seccomp filter forbids it, as containers often have".into(),
                value => {
                    format!(
                        "; kernel.io_uring_disabled is {value}: `sysctl -w kernel.io_uring_disabled=0` allows it"
                    )
                }
            }
        }
        Errno::NOMEM => {
            let limit = getrlimit(Resource::Memlock).current;
            let limit = limit.map_or("unlimited".into(), |bytes| format!("{bytes} bytes"));
            format!(
                "; locked memory of all rings is limited to {limit} (RLIMIT_MEMLOCK): raise it with `ulimit -l`, or \
                 take fewer threads, a smaller depth or bs, or fixed-buffers=off"
            )
        }
        _ => String::new(),
    };
    Failure::Refused(format!("{what}: {error}{remedy}"))
}
