//! The reads that one thread makes.

use super::ring::Ring;
use super::{Plan, Target};
use crate::Failure;
use crate::random::Random;
use crate::shared::Semantics;
use rustix::io_uring::{IoringOp, IoringSqeFlags, io_uring_ptr, io_uring_sqe};
use std::os::fd::AsRawFd;

/// Where the next read goes, and how.
pub struct Reads {
    /// What all reads have in common.
    read: io_uring_sqe,
    bs: u64,
    blocks: u64,
    /// The block that comes next where they are read one after the other, or else what chooses it.
    next: Next,
    first_buffer: *mut u8,
    stride: usize,
    /// Buffers that are taken in turn.
    buffers: usize,
    /// The buffer of the next read.
    turn: usize,
    fixed_buffers: bool,
}

enum Next {
    Block(u64),
    Random(Random),
}

impl Reads {
    /// The reads of the `index`-th thread; `None` where nothing is read. Where blocks are read one after the other, each
    /// thread begins at its share of them.
    pub fn new(plan: &Plan, ring: &Ring, target: &Target, index: usize) -> Result<Option<Reads>, Failure> {
        let Some(file) = &ring.file else { return Ok(None) };
        let blocks = target.blocks(plan.bs)?;
        let opcode = if plan.fixed_buffers { IoringOp::ReadFixed } else { IoringOp::Read };
        let mut read = io_uring_sqe { opcode, ..io_uring_sqe::default() };
        read.len.len = plan.bs;
        if plan.registered_files {
            read.flags = IoringSqeFlags::FIXED_FILE;
        } else {
            read.fd = file.as_raw_fd();
        }
        let one_buffer = plan.fixed_buffers && plan.semantics == Semantics::Original;
        Ok(Some(Reads {
            read,
            bs: plan.bs.into(),
            blocks,
            next: match plan.random {
                true => Next::Random(Random::new(plan.seed, index)),
                false => Next::Block((u128::from(blocks) * index as u128 / plan.threads as u128) as u64),
            },
            first_buffer: ring.buffer(0),
            stride: ring.stride(),
            buffers: if one_buffer { 1 } else { plan.depth as usize },
            turn: 0,
            fixed_buffers: plan.fixed_buffers,
        }))
    }

    /// The next read.
    #[inline]
    pub fn next(&mut self) -> io_uring_sqe {
        let mut read = self.read;
        read.off_or_addr2.off = self.block() * self.bs;
        let buffer = self.first_buffer.wrapping_add(self.turn * self.stride);
        read.addr_or_splice_off_in.addr = io_uring_ptr::new(buffer.cast());
        if self.fixed_buffers {
            read.buf.buf_index = self.turn as u16;
        }
        self.turn = if self.turn + 1 == self.buffers { 0 } else { self.turn + 1 };
        read
    }

    #[inline]
    fn block(&mut self) -> u64 {
        match &mut self.next {
            Next::Random(random) => random.below(self.blocks),
            Next::Block(next) => {
                let block = *next;
                *next = if block + 1 == self.blocks { 0 } else { block + 1 };
                block
            }
        }
    }
}
