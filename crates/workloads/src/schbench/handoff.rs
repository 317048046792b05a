//! How workers and message threads hand each other on: a private futex per thread, and a list of those who wait.

use rustix::io::Errno;
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const BLOCKED: u32 = 0;
const RUNNING: u32 = 1;

/// What a thread sleeps on until somebody posts it.
#[derive(Debug, Default)]
pub struct Post(AtomicU32);

impl Post {
    /// Says that the own thread is about to wait. A post that comes after this is not lost.
    pub fn block(&self) {
        self.0.store(BLOCKED, Ordering::SeqCst);
    }

    /// Says that the own thread will not wait after all.
    pub fn unblock(&self) {
        self.0.store(RUNNING, Ordering::SeqCst);
    }

    /// Lets its thread go on, now or when it comes to wait. The kernel is called only if the thread is blocked.
    pub fn post(&self) -> Result<(), Errno> {
        if self.0.compare_exchange(BLOCKED, RUNNING, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            futex::wake(&self.0, futex::Flags::PRIVATE, 1)?;
        }
        Ok(())
    }

    /// Waits until the own thread is posted; not at all if it has been since it blocked.
    pub fn wait(&self) -> Result<(), Errno> {
        while self.0.compare_exchange(RUNNING, BLOCKED, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            match futex::wait(&self.0, futex::Flags::PRIVATE, BLOCKED, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A message thread and its workers, as they see each other.
#[derive(Debug)]
pub struct Group {
    pub post: Post,
    /// The worker that asked last, and before it in its `next` the one before: its index and 1; 0 is nobody.
    waiting: AtomicU32,
    pub workers: Vec<Worker>,
    /// Workers that were answered, or requests that were issued; written by the message thread only.
    pub answers: AtomicU64,
    /// Requests that were due and not issued because too many waited; written by the message thread only.
    pub skipped: AtomicU64,
}

/// A worker as others see it. The futex and the time lie on one cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Worker {
    pub post: Post,
    next: AtomicU32,
    /// When it was answered, in nanoseconds; 0 is not yet, with strict semantics.
    pub answered_ns: AtomicU64,
    pub requests: Requests,
    pub pipe: Pipe,
    pub counts: Counts,
}

/// What a worker alone writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counts {
    /// How often it asked its message thread.
    pub asked: AtomicU64,
    /// Requests that it did.
    pub loops: AtomicU64,
    /// Requests that it was given and did not do, because all threads were to leave.
    pub given_up: AtomicU64,
}

impl Group {
    pub fn new(workers: usize, room: usize, pipe_bytes: usize) -> Group {
        let worker = |_| Worker {
            requests: Requests::with_room(room),
            pipe: Pipe(Mutex::new(vec![0; pipe_bytes])),
            ..Worker::default()
        };
        Group {
            post: Post::default(),
            waiting: AtomicU32::new(0),
            workers: (0..workers).map(worker).collect(),
            answers: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
        }
    }

    /// Puts worker `index` in front of those who wait.
    pub fn push(&self, index: usize, worker: &Worker) {
        let own = index as u32 + 1;
        let mut head = self.waiting.load(Ordering::Relaxed);
        loop {
            worker.next.store(head, Ordering::Relaxed);
            match self.waiting.compare_exchange_weak(head, own, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    /// Takes all who wait, the last first.
    pub fn take_waiting(&self) -> Waiting<'_> {
        Waiting { workers: &self.workers, head: self.waiting.swap(0, Ordering::SeqCst) }
    }

    /// Lets all workers go on, whatever they wait for.
    pub fn release(&self) {
        for worker in &self.workers {
            // Waking cannot fail on an aligned word of our own.
            let _ = worker.post.post();
        }
    }
}

/// The workers that were taken off a list.
pub struct Waiting<'a> {
    workers: &'a [Worker],
    head: u32,
}

impl<'a> Iterator for Waiting<'a> {
    type Item = &'a Worker;

    fn next(&mut self) -> Option<&'a Worker> {
        let worker = self.workers.get((self.head as usize).checked_sub(1)?)?;
        // Before it is posted: then it may put itself on the list again.
        self.head = worker.next.load(Ordering::Relaxed);
        Some(worker)
    }
}

/// The requests that wait for a worker: a ring that its message thread fills and it alone empties.
#[derive(Debug, Default)]
pub struct Requests {
    start_ns: Box<[AtomicU64]>,
    issued: AtomicU64,
    taken: AtomicU64,
}

impl Requests {
    fn with_room(count: usize) -> Requests {
        Requests { start_ns: (0..count).map(|_| AtomicU64::new(0)).collect(), ..Requests::default() }
    }

    /// How many wait.
    pub fn len(&self) -> u64 {
        self.issued.load(Ordering::SeqCst) - self.taken.load(Ordering::SeqCst)
    }

    /// Adds a request that began at `start_ns`. Only for the message thread, which has made sure that there is room.
    pub fn push(&self, start_ns: u64) {
        let issued = self.issued.load(Ordering::Relaxed);
        if let Some(place) = self.place(issued) {
            place.store(start_ns, Ordering::Relaxed);
        }
        self.issued.store(issued + 1, Ordering::SeqCst);
    }

    /// Moves all that wait to `starts_ns`, the oldest first. Only for the worker.
    pub fn take(&self, starts_ns: &mut Vec<u64>) {
        starts_ns.clear();
        let issued = self.issued.load(Ordering::SeqCst);
        let taken = self.taken.load(Ordering::Relaxed);
        starts_ns.extend((taken..issued).filter_map(|turn| Some(self.place(turn)?.load(Ordering::Relaxed))));
        self.taken.store(issued, Ordering::SeqCst);
    }

    fn place(&self, turn: u64) -> Option<&AtomicU64> {
        self.start_ns.get((turn % self.start_ns.len().max(1) as u64) as usize)
    }
}

/// The bytes that a worker and its message thread pass to and fro in pipe mode. Only one of them has it at a time, so
/// its lock is always free.
#[derive(Debug, Default)]
pub struct Pipe(Mutex<Vec<u8>>);

impl Pipe {
    /// Writes all bytes.
    pub fn fill(&self, with: u8) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill(with);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_not_lost_whether_it_comes_before_or_after_the_wait() {
        let post = Post::default();
        post.block();
        post.post().unwrap();
        post.wait().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| post.wait().unwrap());
            post.post().unwrap();
        });
    }

    #[test]
    fn who_asked_last_is_taken_first_and_nobody_twice() {
        let group = Group::new(3, 0, 0);
        for index in [1, 0, 2] {
            group.push(index, &group.workers[index]);
        }
        let taken: Vec<*const Worker> = group.take_waiting().map(std::ptr::from_ref).collect();
        assert_eq!(taken, [2, 0, 1].map(|index| std::ptr::from_ref(&group.workers[index])));
        assert_eq!(group.take_waiting().count(), 0);
    }

    #[test]
    fn requests_come_in_order_also_when_the_ring_turns() {
        let requests = Requests::with_room(4);
        let mut taken = Vec::new();
        for round in 0..3 {
            for request in 0..3 {
                requests.push(10 * round + request);
            }
            assert_eq!(requests.len(), 3);
            requests.take(&mut taken);
            assert_eq!(taken, [0, 1, 2].map(|request| 10 * round + request));
        }
        requests.take(&mut taken);
        assert!(taken.is_empty());
    }
}
