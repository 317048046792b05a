//! What one sender and one receiver do.

use super::Plan;
use super::channel::Start;
use crate::clock::now_ns;
use crate::shared::Semantics;
use rustix::io::{Errno, read, write};
use std::fmt;
use std::os::fd::OwnedFd;

/// What a message is made of, apart from its stamp.
const FILLING: u8 = b'-';

/// The bytes of a stamp: the sender and the number of the message, four each.
const STAMP: usize = 8;

/// Up to this many bytes a message stays in one piece when many write to one channel.
const WHOLE: usize = 4096;

/// Whether a task sends or receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Sender,
    Receiver,
}

/// What stopped a task before its work was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A system call failed.
    Call(Errno),
    /// All senders had ended and messages were still missing.
    End,
    /// A message was not the one that had to come.
    Content,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Call(error) => write!(f, "{error}"),
            Fault::End => f.write_str("all senders have ended"),
            Fault::Content => f.write_str("a message was not the one that had to come"),
        }
    }
}

/// What a task leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Messages that it sent or received.
    pub messages: u64,
    /// When it had done its last, by the clock of all measurements.
    pub end_ns: u64,
    /// What stopped it early.
    pub fault: Option<Fault>,
}

impl Done {
    fn after(messages: u64, fault: Option<Fault>) -> Done {
        Done { messages, end_ns: now_ns(), fault }
    }

    /// A task whose start failed.
    pub fn never(error: Errno) -> Done {
        Done::after(0, Some(Fault::Call(error)))
    }
}

/// What a sender needs, allocated and touched before it starts.
#[derive(Debug)]
pub struct Sender {
    index: u32,
    loops: u64,
    message: Vec<u8>,
    stamped: bool,
}

impl Sender {
    pub fn new(plan: &Plan, index: u64) -> Sender {
        Sender { index: index as u32, loops: plan.loops, message: message(plan), stamped: is_stamped(plan) }
    }

    /// Arrives, waits, and sends every message to every channel.
    pub fn run(&mut self, start: &Start, channels: &[OwnedFd]) -> Done {
        touch(&mut self.message);
        match start.arrive_and_wait() {
            Ok(()) => self.send_all(channels),
            Err(error) => Done::never(error),
        }
    }

    fn send_all(&mut self, channels: &[OwnedFd]) -> Done {
        let mut messages = 0;
        for number in 0..self.loops {
            if self.stamped {
                self.message[..4].copy_from_slice(&self.index.to_ne_bytes());
                self.message[4..STAMP].copy_from_slice(&(number as u32).to_ne_bytes());
            }
            for channel in channels {
                if let Err(error) = send(channel, &self.message) {
                    return Done::after(messages, Some(Fault::Call(error)));
                }
                messages += 1;
            }
        }
        Done::after(messages, None)
    }
}

/// What a receiver needs, allocated and touched before it starts.
#[derive(Debug)]
pub struct Receiver {
    expected: u64,
    message: Vec<u8>,
    /// The number of the message that comes next from each sender; empty where messages have no stamp.
    next: Vec<u32>,
}

impl Receiver {
    pub fn new(plan: &Plan) -> Receiver {
        let senders = if is_stamped(plan) { plan.fds as usize } else { 0 };
        Receiver { expected: plan.fds * plan.expected_loops, message: message(plan), next: vec![0; senders] }
    }

    /// Arrives, waits, and receives every message of its channel.
    pub fn run(&mut self, start: &Start, channel: &OwnedFd) -> Done {
        touch(&mut self.message);
        self.next.fill(0);
        match start.arrive_and_wait() {
            Ok(()) if self.next.is_empty() => self.receive_all(channel, |_, _| true),
            Ok(()) => self.receive_all(channel, is_next),
            Err(error) => Done::never(error),
        }
    }

    fn receive_all(&mut self, channel: &OwnedFd, good: impl Fn(&[u8], &mut [u32]) -> bool) -> Done {
        for messages in 0..self.expected {
            if let Err(fault) = receive(channel, &mut self.message) {
                return Done::after(messages, Some(fault));
            }
            if !good(&self.message, &mut self.next) {
                return Done::after(messages, Some(Fault::Content));
            }
        }
        Done::after(self.expected, None)
    }
}

/// Writes one message; again only if it went out in parts.
fn send(channel: &OwnedFd, message: &[u8]) -> Result<(), Errno> {
    let mut rest = message;
    while !rest.is_empty() {
        match write(channel, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads one message; again only if it came in parts.
fn receive(channel: &OwnedFd, message: &mut [u8]) -> Result<(), Fault> {
    let mut rest = message;
    while !rest.is_empty() {
        match read(channel, &mut *rest) {
            Ok(0) => return Err(Fault::End),
            Ok(count) => rest = rest.get_mut(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Fault::Call(error)),
        }
    }
    Ok(())
}

/// Whether `message` is the one that had to come from its sender, and counts it.
fn is_next(message: &[u8], next: &mut [u32]) -> bool {
    let Some((stamp, filling)) = message.split_first_chunk::<STAMP>() else {
        return false;
    };
    let [s0, s1, s2, s3, n0, n1, n2, n3] = *stamp;
    let sender = u32::from_ne_bytes([s0, s1, s2, s3]) as usize;
    let number = u32::from_ne_bytes([n0, n1, n2, n3]);
    match next.get_mut(sender) {
        Some(wanted) if *wanted == number => {
            *wanted = wanted.wrapping_add(1);
            filling.iter().all(|byte| *byte == FILLING)
        }
        _ => false,
    }
}

fn is_stamped(plan: &Plan) -> bool {
    plan.semantics == Semantics::Strict && (STAMP..=WHOLE).contains(&plan.datasize)
}

fn message(plan: &Plan) -> Vec<u8> {
    // The spare bytes keep the messages of two tasks out of one cache line.
    let mut message = Vec::with_capacity(plan.datasize + 256);
    message.resize(plan.datasize, FILLING);
    message
}

/// Writes to every page, so that a forked task has its own copy before the clock starts.
fn touch(message: &mut [u8]) {
    for byte in message.iter_mut().step_by(512) {
        *byte = std::hint::black_box(FILLING);
    }
    if let Some(last) = message.last_mut() {
        *last = std::hint::black_box(FILLING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hackbench::{Mode, Transport};

    fn received(messages: &[(u32, u32, u8)]) -> Done {
        let plan = Plan {
            groups: 1,
            fds: 2,
            loops: 2,
            datasize: 9,
            transport: Transport::Pipe,
            mode: Mode::Thread,
            semantics: Semantics::Strict,
            expected_loops: 2,
        };
        let (reader, writer) = std::io::pipe().unwrap();
        for (sender, number, filling) in messages {
            let bytes = [&sender.to_ne_bytes()[..], &number.to_ne_bytes()[..], &[*filling]].concat();
            write(&writer, &bytes).unwrap();
        }
        drop(writer);
        Receiver::new(&plan).receive_all(&reader.into(), is_next)
    }

    #[test]
    fn messages_of_each_sender_must_come_in_order_and_whole() {
        let good = [(0, 0, b'-'), (1, 0, b'-'), (1, 1, b'-'), (0, 1, b'-')];
        assert_eq!((received(&good).messages, received(&good).fault), (4, None));
        let twice = [(0, 0, b'-'), (0, 0, b'-')];
        let nobody = [(0, 0, b'-'), (2, 0, b'-')];
        let spoiled = [(0, 0, b'-'), (1, 0, b'x')];
        for bad in [twice, nobody, spoiled] {
            assert_eq!((received(&bad).messages, received(&bad).fault), (1, Some(Fault::Content)), "{bad:?}");
        }
        assert_eq!((received(&good[..3]).messages, received(&good[..3]).fault), (3, Some(Fault::End)));
    }
}
