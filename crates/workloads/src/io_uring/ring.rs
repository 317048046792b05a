//! The ring of one thread, with the file and the buffers that belong to it.

use super::{Plan, Target};
use crate::Failure;
use io_uring::{IoUring, squeue};
use std::cell::UnsafeCell;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;

/// Buffers that the kernel registers with a ring at most.
pub const MOST_BUFFERS: u32 = 16_384;
/// Bytes of buffers that a thread has at most.
const MOST_BYTES: u64 = 1 << 30;
const PAGE_BYTES: usize = 4096;

/// The set-up flags, from the oldest to the newest, with the kernel that brought them. Where the kernel says EINVAL, it
/// is asked again without the newest of them.
const FLAGS: [&str; 5] = [
    "CQSIZE (Linux 5.5)",
    "COOP_TASKRUN (5.19)",
    "SINGLE_ISSUER (6.0)",
    "DEFER_TASKRUN (6.1)",
    "NO_SQARRAY (6.6)",
];

/// A ring, and what its operations use.
pub struct Ring {
    /// The ring itself.
    pub uring: IoUring,
    /// Why it is not as the original's would be on a new kernel.
    pub note: Option<String>,
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
        let (uring, left_out) = set_up(plan)?;
        let file = target.file()?;
        let stride = (plan.bs as usize).next_multiple_of(PAGE_BYTES);
        let bytes = stride as u64 * u64::from(plan.depth);
        if file.is_some() && bytes > MOST_BYTES {
            return Err(Failure::Refused(format!(
                "depth={} reads of bs={} need {bytes} bytes per thread, and {MOST_BYTES} is the most; take less of one",
                plan.depth, plan.bs
            )));
        }
        let pages = if file.is_some() { bytes as usize / PAGE_BYTES } else { 0 };
        let buffers: Vec<Page> = (0..pages).map(|_| Page(UnsafeCell::new([0; PAGE_BYTES]))).collect();
        let note = (!left_out.is_empty()).then(|| format!("this kernel has no {}", left_out.join(", no ")));
        let ring = Ring { uring, note, file, buffers, stride };
        ring.register(plan)?;
        Ok(ring)
    }

    fn register(&self, plan: &Plan) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        if plan.registered_files {
            let registered = self.uring.submitter().register_files(&[file.as_raw_fd()]);
            registered.map_err(|error| refused("the file could not be registered", &error))?;
        }
        if plan.fixed_buffers {
            let vectors: Vec<libc::iovec> = (0..plan.depth as usize)
                .map(|index| libc::iovec { iov_base: self.buffer(index).cast(), iov_len: plan.bs as usize })
                .collect();
            // SAFETY: the buffers live as long as the ring, which is dropped first; see
            // `leave_buffers` for operations that are then in flight.
            let registered = unsafe { self.uring.submitter().register_buffers(&vectors) };
            registered.map_err(|error| refused("the buffers could not be registered", &error))?;
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

    /// Forgets the buffers, so that the kernel can go on writing to them.
    pub fn leave_buffers(&mut self) {
        std::mem::forget(std::mem::take(&mut self.buffers));
    }
}

/// A ring with as many of the flags as the kernel takes, and those that were left out.
fn set_up(plan: &Plan) -> Result<(IoUring, &'static [&'static str]), Failure> {
    for taken in (0..=FLAGS.len()).rev() {
        let mut builder = IoUring::<squeue::Entry>::builder();
        builder.dontfork();
        if plan.polled {
            builder.setup_iopoll();
        }
        for flag in 0..taken {
            match flag {
                0 => builder.setup_cqsize(plan.depth),
                1 => builder.setup_coop_taskrun(),
                2 => builder.setup_single_issuer(),
                3 => builder.setup_defer_taskrun(),
                _ => builder.setup_no_sqarray(),
            };
        }
        match builder.build(plan.depth) {
            Ok(uring) => return Ok((uring, FLAGS.get(taken..).unwrap_or_default())),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && taken > 0 => {}
            Err(error) => return Err(refused("io_uring could not be set up", &error)),
        }
    }
    Err(Failure::Refused("io_uring could not be set up".into()))
}

/// Why the kernel refuses, and what would change that.
fn refused(what: &str, error: &io::Error) -> Failure {
    let disabled = || fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let remedy = match error.raw_os_error() {
        Some(libc::ENOSYS) => "; this kernel has no io_uring, or a seccomp filter hides it".into(),
        Some(libc::EPERM | libc::EACCES) => match disabled().trim() {
            "" | "0" => "; a seccomp filter forbids it, as containers often have".into(),
            value => format!(
                "; kernel.io_uring_disabled is {value}: `sysctl -w kernel.io_uring_disabled=0` allows it"
            ),
        },
        Some(libc::ENOMEM) => {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
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
