use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The common window: from when the last client has started until the first one stops. It stands in memory that all
/// processes share, on a cache line of its own that is hardly ever written.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Window {
    started: AtomicU32,
    stopped: AtomicU32,
}

impl Window {
    /// One more client starts.
    pub fn start(&self) {
        self.started.fetch_add(1, Relaxed);
    }

    /// A client stops.
    pub fn stop(&self) {
        self.stopped.store(1, Relaxed);
    }

    /// Whether it has begun.
    pub fn has_begun(&self, clients: usize) -> bool {
        self.started.load(Relaxed) as usize >= clients
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.stopped.load(Relaxed) != 0
    }
}
