//! The two queues of a ring, shared with the kernel. Own code, since the crate io-uring copies every completion by a call
//! that is not inlined; this loop costs what one in C does (`benches/io-uring`).

use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::io_uring::{
    IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringFeatureFlags, IoringRegisterOp,
    IoringSetupFlags, io_uring_enter, io_uring_params, io_uring_ptr, io_uring_register, io_uring_rsrc_update,
    io_uring_setup, io_uring_sqe, iovec,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// A submission queue and a completion queue. They belong to one thread at a time.
#[derive(Debug)]
pub struct Queues {
    ring: Mapping,
    entries: Mapping,
    fd: OwnedFd,
    /// The index under which the kernel knows the ring without a look at the table of files.
    registered: Option<u32>,
    offsets: Offsets,
}

/// Where things lie in the ring, and the masks of its two queues.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    submitted_head: usize,
    submitted_tail: usize,
    submitted_mask: u32,
    completed_head: usize,
    completed_tail: usize,
    completed_mask: u32,
    completions: usize,
}

/// A completion as the kernel writes it.
#[repr(C)]
struct Completion {
    tag: u64,
    result: i32,
    _flags: u32,
}

impl Queues {
    /// Queues for `depth` operations, and as many completions where `flags` hold CQSIZE.
    ///
    /// # Errors
    /// EINVAL where the kernel does not know one of the flags; other refusals of the kernel.
    pub fn new(depth: u32, flags: IoringSetupFlags) -> io::Result<Queues> {
        let mut params = io_uring_params::default();
        params.flags = flags;
        if flags.contains(IoringSetupFlags::CQSIZE) {
            params.cq_entries = depth;
        }
        // SAFETY: the parameters hold no pointer.
        let fd = unsafe { io_uring_setup(depth, &mut params) }?;
        if !params.features.contains(IoringFeatureFlags::SINGLE_MMAP) {
            return Err(Errno::NOSYS);
        }
        let array_bytes = params.sq_off.array as usize + params.sq_entries as usize * size_of::<u32>();
        let completions = params.cq_off.cqes as usize;
        let ring_bytes = array_bytes.max(completions + params.cq_entries as usize * size_of::<Completion>());
        let ring = Mapping::new(&fd, ring_bytes, IORING_OFF_SQ_RING)?;
        let entries =
            Mapping::new(&fd, params.sq_entries as usize * size_of::<io_uring_sqe>(), IORING_OFF_SQES)?;
        if !flags.contains(IoringSetupFlags::NO_SQARRAY) {
            for index in 0..params.sq_entries {
                let place = params.sq_off.array as usize + index as usize * size_of::<u32>();
                ring.word(place).store(index, Ordering::Relaxed);
            }
        }
        let offsets = Offsets {
            submitted_head: params.sq_off.head as usize,
            submitted_tail: params.sq_off.tail as usize,
            submitted_mask: params.sq_entries - 1,
            completed_head: params.cq_off.head as usize,
            completed_tail: params.cq_off.tail as usize,
            completed_mask: params.cq_entries - 1,
            completions,
        };
        Ok(Queues { ring, entries, fd, registered: None, offsets })
    }

    /// Registers a file, which is then known as 0.
    pub fn register_file(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        let files = [file.as_raw_fd()];
        self.register(IoringRegisterOp::RegisterFiles, files.as_ptr().cast(), 1).map(drop)
    }

    /// Registers buffers, which are then known by their place among them.
    ///
    /// # Safety
    /// The buffers must live as long as these queues.
    pub unsafe fn register_buffers(&self, buffers: &[iovec]) -> io::Result<()> {
        let count = buffers.len() as u32;
        self.register(IoringRegisterOp::RegisterBuffers, buffers.as_ptr().cast(), count).map(drop)
    }

    /// Registers the ring for the calling thread, which alone may use it from now on.
    pub fn register_ring(&mut self) -> io::Result<()> {
        let mut update = io_uring_rsrc_update::default();
        // Any free index.
        update.offset = u32::MAX;
        update.data = io_uring_ptr::new(ptr::without_provenance_mut(self.fd.as_raw_fd() as usize));
        self.register(IoringRegisterOp::RegisterRingFds, (&raw mut update).cast(), 1)?;
        self.registered = Some(update.offset);
        Ok(())
    }

    fn register(&self, what: IoringRegisterOp, argument: *const c_void, count: u32) -> io::Result<u32> {
        // SAFETY: the callers pass `count` values of the kind that `what` takes.
        unsafe { io_uring_register(&self.fd, what, argument, count) }
    }

    /// Queues `count` operations, or as many as there is room for, and returns how many.
    ///
    /// # Safety
    /// What an operation points to must live until it has completed.
    #[inline]
    pub unsafe fn push(&mut self, count: u32, mut operation: impl FnMut() -> io_uring_sqe) -> u32 {
        let Offsets { submitted_head, submitted_tail, submitted_mask, .. } = self.offsets;
        let tail = self.ring.word(submitted_tail).load(Ordering::Relaxed);
        let taken = self.ring.word(submitted_head).load(Ordering::Acquire);
        let count = count.min(submitted_mask + 1 - tail.wrapping_sub(taken));
        let entries = self.entries.start.cast::<io_uring_sqe>();
        for nth in 0..count {
            let index = tail.wrapping_add(nth) & submitted_mask;
            // SAFETY: the mask keeps the index inside the mapping, and the kernel reads no entry beyond the tail.
            unsafe { entries.add(index as usize).write(operation()) };
        }
        self.ring.word(submitted_tail).store(tail.wrapping_add(count), Ordering::Release);
        count
    }

    /// Has the kernel take `submit` queued operations, and waits for `wait` completions. Returns how many it took.
    #[inline]
    pub fn enter(&self, submit: u32, wait: u32) -> io::Result<u32> {
        let mut flags = if wait > 0 { IoringEnterFlags::GETEVENTS } else { IoringEnterFlags::empty() };
        let fd = match self.registered {
            None => self.fd.as_raw_fd(),
            Some(index) => {
                flags |= IoringEnterFlags::REGISTERED_RING;
                index as i32
            }
        };
        // SAFETY: it is this ring's file, or with the flag the index that the kernel gave it; neither is ever -1.
        // The operations were queued by `push`, whose caller answers for them.
        unsafe { io_uring_enter(BorrowedFd::borrow_raw(fd), submit, wait, flags) }
    }

    /// Takes every completion that is there, with its tag and its result, and returns how many.
    #[inline]
    pub fn take(&mut self, mut completed: impl FnMut(u64, i32)) -> u32 {
        let Offsets { completed_head, completed_tail, completed_mask, completions, .. } = self.offsets;
        let head = self.ring.word(completed_head).load(Ordering::Relaxed);
        let tail = self.ring.word(completed_tail).load(Ordering::Acquire);
        // SAFETY: the completions lie there in the mapping, as the kernel said.
        let first = unsafe { self.ring.start.add(completions).cast::<Completion>() };
        let count = tail.wrapping_sub(head);
        for nth in 0..count {
            let index = head.wrapping_add(nth) & completed_mask;
            // SAFETY: the mask keeps the index inside the mapping, and the kernel has written what lies below the tail.
            let completion = unsafe { &*first.add(index as usize) };
            completed(completion.tag, completion.result);
        }
        self.ring.word(completed_head).store(tail, Ordering::Release);
        count
    }
}

/// A part of a ring in memory.
#[derive(Debug)]
struct Mapping {
    start: *mut u8,
    bytes: usize,
}

impl Mapping {
    fn new(fd: &OwnedFd, bytes: usize, which: u64) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice overlaps nothing.
        let start = unsafe {
            mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED | MapFlags::POPULATE, fd, which)
        }?;
        Ok(Mapping { start: start.cast(), bytes })
    }

    /// The word at `offset`.
    #[inline]
    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset, which is that of an aligned word inside the mapping. Both sides change it
        // by single stores only.
        unsafe { &*self.start.add(offset).cast::<AtomicU32>() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it any more.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}
