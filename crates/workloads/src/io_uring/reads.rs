//! The reads that one thread makes.

use super::ring::Ring;
use super::{Plan, Target};
use crate::Failure;
use crate::shared::Semantics;
use io_uring::squeue::Entry;
use io_uring::{opcode, types};
use std::os::fd::AsRawFd;

/// Where the next read goes, and how.
pub struct Reads<'a> {
    plan: &'a Plan,
    fd: i32,
    blocks: u64,
    /// The block that comes next where they are read one after the other.
    next: u64,
    /// The state of the generator of random blocks.
    random: u64,
    first_buffer: *mut u8,
    stride: usize,
    /// Buffers that are taken in turn.
    buffers: u64,
    /// The buffer of the next read.
    turn: u64,
}

impl<'a> Reads<'a> {
    /// The reads of the `index`-th thread; `None` where nothing is read. Where blocks are read one after the other, each
    /// thread begins at its share of them.
    pub fn new(
        plan: &'a Plan,
        ring: &Ring,
        target: &Target,
        index: usize,
    ) -> Result<Option<Reads<'a>>, Failure> {
        let Some(file) = &ring.file else { return Ok(None) };
        let blocks = target.blocks(plan.bs)?;
        let one_buffer = plan.fixed_buffers && plan.semantics == Semantics::Original;
        Ok(Some(Reads {
            plan,
            fd: file.as_raw_fd(),
            blocks,
            next: (u128::from(blocks) * index as u128 / plan.threads as u128) as u64,
            // Never 0, from which the generator would not come away.
            random: plan.seed.wrapping_add(index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            first_buffer: ring.buffer(0),
            stride: ring.stride(),
            buffers: if one_buffer { 1 } else { u64::from(plan.depth) },
            turn: 0,
        }))
    }

    /// The next read.
    #[inline]
    pub fn next(&mut self) -> Entry {
        let offset = self.block() * u64::from(self.plan.bs);
        let buffer = self.turn;
        self.turn = if buffer + 1 == self.buffers { 0 } else { buffer + 1 };
        let into = self.first_buffer.wrapping_add(buffer as usize * self.stride);
        let bs = self.plan.bs;
        match (self.plan.fixed_buffers, self.plan.registered_files) {
            (true, true) => {
                opcode::ReadFixed::new(types::Fixed(0), into, bs, buffer as u16).offset(offset).build()
            }
            (true, false) => {
                opcode::ReadFixed::new(types::Fd(self.fd), into, bs, buffer as u16).offset(offset).build()
            }
            (false, true) => opcode::Read::new(types::Fixed(0), into, bs).offset(offset).build(),
            (false, false) => opcode::Read::new(types::Fd(self.fd), into, bs).offset(offset).build(),
        }
    }

    fn block(&mut self) -> u64 {
        if self.plan.random {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            ((u128::from(self.random) * u128::from(self.blocks)) >> 64) as u64
        } else {
            let block = self.next;
            self.next = if block + 1 == self.blocks { 0 } else { block + 1 };
            block
        }
    }
}
