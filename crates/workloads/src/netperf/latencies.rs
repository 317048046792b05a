use crate::Failure;
use rustix::fs::{MemfdFlags, memfd_create};
use stats::Histogram;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The histograms of all clients, in a file in memory that all processes share, each in written form at a place of its
/// own. What lies between them takes no memory.
#[derive(Debug)]
pub struct Latencies(File);

/// Far more than the written form of a histogram can have, so that they never meet.
const APART_BYTES: u64 = 1 << 20;

impl Latencies {
    /// No histogram yet.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new() -> Result<Latencies, Failure> {
        let file = memfd_create("latencies", MemfdFlags::CLOEXEC).map_err(|error| no_memory(error.into()))?;
        Ok(Latencies(file.into()))
    }

    /// Leaves the histogram of client `index`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn leave(&self, index: usize, histogram: &Histogram) -> Result<(), Failure> {
        let text = histogram.to_text().map_err(unreadable)?;
        self.0.write_all_at(text.as_bytes(), index as u64 * APART_BYTES).map_err(no_memory)
    }

    /// The histograms of clients 0 to `clients`, without the last, merged into one.
    ///
    /// # Errors
    /// When one was not left.
    pub fn merged(&self, clients: usize) -> Result<Histogram, Failure> {
        let mut merged = Histogram::new();
        let mut bytes = vec![0; APART_BYTES as usize];
        for index in 0..clients {
            let got = self.0.read_at(&mut bytes, index as u64 * APART_BYTES).map_err(no_memory)?;
            // Nothing but zeroes lies between one text and the next.
            let text = bytes.iter().take(got).copied().take_while(|byte| *byte != 0).collect();
            let text = String::from_utf8(text).map_err(unreadable)?;
            merged.merge(&Histogram::from_text(&text).map_err(unreadable)?);
        }
        Ok(merged)
    }
}

fn no_memory(error: io::Error) -> Failure {
    Failure::Refused(format!("no memory to share for latencies: {error}"))
}

fn unreadable(error: impl ToString) -> Failure {
    Failure::Invariant(error.to_string())
}
