//! What clients and servers leave behind, in memory that they share with the trial.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What one client did. An amount is a number of transactions, or of bytes in a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientTally {
    /// When it started, after its warm-up.
    pub start_ns: u64,
    /// From there to the end of its last step.
    pub busy_ns: u64,
    /// When its time was over.
    pub stop_ns: u64,
    /// When the server had received everything that was under way.
    pub end_ns: u64,
    /// The amount of the warm-up.
    pub warm: u64,
    /// The amount from its start to its stop.
    pub done: u64,
    /// The part of that in the common window.
    pub in_window: u64,
    /// What it sent in all: requests, or bytes.
    pub sent: u64,
    /// Datagrams that went unanswered for too long.
    pub lost: u64,
    /// Answers to a request that had been answered before.
    pub stale: u64,
    /// Datagrams that the kernel did not take for want of memory.
    pub refused: u64,
}

/// What one server did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerTally {
    /// What it received in all: requests, or bytes.
    pub received: u64,
    /// The part of that before its client started, in a stream.
    pub warm: u64,
    /// The part of it in the common window, in a stream.
    pub in_window: u64,
    /// Responses that it sent.
    pub answered: u64,
}

/// The place for what a client and its server leave.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Place {
    client: [AtomicU64; 11],
    server: [AtomicU64; 4],
    /// Whether the client has begun to measure, and whether it has ended.
    started: AtomicU64,
    ended: AtomicU64,
}

// The parent reads what its children wrote after it has reaped them, so nothing here needs an order.
impl Place {
    /// The client begins to measure.
    pub fn start(&self) {
        self.started.store(1, Relaxed);
    }

    /// Whether the client has begun to measure.
    pub fn has_started(&self) -> bool {
        self.started.load(Relaxed) != 0
    }

    /// The client has sent its last datagram.
    pub fn end(&self) {
        self.ended.store(1, Relaxed);
    }

    /// Whether the client has sent its last datagram.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Relaxed) != 0
    }

    /// Leaves what the client did.
    pub fn leave_client(&self, tally: &ClientTally) {
        let ClientTally {
            start_ns,
            busy_ns,
            stop_ns,
            end_ns,
            warm,
            done,
            in_window,
            sent,
            lost,
            stale,
            refused,
        } = *tally;
        store(
            &self.client,
            [start_ns, busy_ns, stop_ns, end_ns, warm, done, in_window, sent, lost, stale, refused],
        );
    }

    /// Leaves what the server did.
    pub fn leave_server(&self, tally: &ServerTally) {
        let ServerTally { received, warm, in_window, answered } = *tally;
        store(&self.server, [received, warm, in_window, answered]);
    }

    /// What the client did.
    pub fn client(&self) -> ClientTally {
        let [start_ns, busy_ns, stop_ns, end_ns, warm, done, in_window, sent, lost, stale, refused] =
            load(&self.client);
        ClientTally { start_ns, busy_ns, stop_ns, end_ns, warm, done, in_window, sent, lost, stale, refused }
    }

    /// What the server did.
    pub fn server(&self) -> ServerTally {
        let [received, warm, in_window, answered] = load(&self.server);
        ServerTally { received, warm, in_window, answered }
    }
}

fn store<const N: usize>(words: &[AtomicU64; N], values: [u64; N]) {
    for (word, value) in words.iter().zip(values) {
        word.store(value, Relaxed);
    }
}

fn load<const N: usize>(words: &[AtomicU64; N]) -> [u64; N] {
    words.each_ref().map(|word| word.load(Relaxed))
}
