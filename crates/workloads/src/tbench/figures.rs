//! What clients and servers count while they work, in memory that the trial shares with them, and what it comes to.

use super::operation::{Exchange, Kind};
use crate::clock::{now_ns, seconds_between};
use crate::fairness::jain;
use crate::{Failure, Trial, sole_writer};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A figure that one process changes and others look at.
#[derive(Debug, Default)]
struct Figure(AtomicU64);

impl Figure {
    #[inline]
    fn add(&self, more: u64) {
        sole_writer::add(&self.0, more);
    }

    #[inline]
    fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The messages that passed one end of a connection, the greeting apart. On cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Traffic {
    exchanges: Figure,
    requested_bytes: Figure,
    answered_bytes: Figure,
}

impl Traffic {
    /// Counts one request and its answer, in bytes.
    #[inline]
    pub fn count(&self, request: u32, answer: u32) {
        self.exchanges.add(1);
        self.requested_bytes.add(request.into());
        self.answered_bytes.add(answer.into());
    }
}

/// What one client did. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ClientFigures {
    traffic: Traffic,
    operations: Figure,
    payload_bytes: Figure,
    latencies: [Latency; Kind::COUNT],
}

/// How long operations of one kind took, each from the end of the one before it.
#[derive(Debug, Default)]
struct Latency {
    count: Figure,
    total_ns: Figure,
    max_ns: Figure,
}

impl ClientFigures {
    /// Counts one operation.
    #[inline]
    pub fn count(&self, exchange: &Exchange) {
        self.operations.add(1);
        self.payload_bytes.add(exchange.payload.into());
        if exchange.request > 0 {
            self.traffic.count(exchange.request, exchange.answer);
        }
    }

    /// Records how long an operation took.
    #[inline]
    pub fn record(&self, kind: Kind, time_ns: u64) {
        let latency = &self.latencies[kind as usize];
        latency.count.add(1);
        latency.total_ns.add(time_ns);
        if time_ns > latency.max_ns.get() {
            latency.max_ns.set(time_ns);
        }
    }

    /// Forgets how long operations took so far.
    pub fn forget_latencies(&self) {
        for Latency { count, total_ns, max_ns } in &self.latencies {
            for figure in [count, total_ns, max_ns] {
                figure.set(0);
            }
        }
    }

    /// Whether it has read or written any byte of a file.
    pub fn has_moved_bytes(&self) -> bool {
        self.payload_bytes.get() > 0
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.operations.get()
    }
}

/// What all clients had done at one time.
#[derive(Debug)]
pub struct Reading {
    time_ns: u64,
    operations: Vec<u64>,
    payload_bytes: u64,
}

impl Reading {
    /// Reads the clock and every client.
    pub fn of(clients: &[ClientFigures]) -> Reading {
        Reading {
            time_ns: now_ns(),
            operations: clients.iter().map(ClientFigures::operations).collect(),
            payload_bytes: clients.iter().map(|client| client.payload_bytes.get()).sum(),
        }
    }
}

/// The invariant: servers took in every request and sent every answer that the clients count, to the byte.
pub fn check(clients: &[ClientFigures], servers: &[Traffic]) -> Result<(), Failure> {
    fn total<'a>(ends: impl Iterator<Item = &'a Traffic>) -> [u64; 3] {
        ends.fold([0; 3], |[exchanges, requested, answered], end| {
            [
                exchanges + end.exchanges.get(),
                requested + end.requested_bytes.get(),
                answered + end.answered_bytes.get(),
            ]
        })
    }
    let asked = total(clients.iter().map(|client| &client.traffic));
    let served = total(servers.iter());
    if asked == served {
        return Ok(());
    }
    let in_words = |[exchanges, requested, answered]: [u64; 3]| {
        format!("{exchanges} requests of {requested} bytes with {answered} bytes of answers")
    };
    Err(Failure::Invariant(format!(
        "the clients count {}, the servers {}",
        in_words(asked),
        in_words(served)
    )))
}

/// Leaves the metrics of the time from `start` to `end`, in which clients replayed a load of `pass` operations.
pub fn leave(
    clients: &[ClientFigures],
    pass: usize,
    start: &Reading,
    end: &Reading,
    trial: &mut Trial,
) -> Result<(), Failure> {
    let time_s = seconds_between(start.time_ns, end.time_ns);
    let of_clients: Vec<u64> =
        end.operations.iter().zip(&start.operations).map(|(end, start)| end - start).collect();
    let operations = of_clients.iter().sum::<u64>() as f64;
    trial.sample("throughput", (end.payload_bytes - start.payload_bytes) as f64 / 1e6 / time_s)?;
    trial.sample("rate", operations / time_s)?;
    trial.sample("fairness", jain(of_clients.iter().map(|operations| *operations as f64)))?;
    trial.counter("operations of the slowest client", of_clients.iter().min().copied().unwrap_or(0) as f64);
    trial.counter("operations of the fastest client", of_clients.iter().max().copied().unwrap_or(0) as f64);
    trial.counter("passes of the load per client", operations / (clients.len() * pass) as f64);

    let (mut all_count, mut all_total_ns, mut all_max_ns) = (0, 0, 0);
    for kind in Kind::ALL {
        let latencies = || clients.iter().map(|client| &client.latencies[kind as usize]);
        let count: u64 = latencies().map(|latency| latency.count.get()).sum();
        let total_ns: u64 = latencies().map(|latency| latency.total_ns.get()).sum();
        let max_ns = latencies().map(|latency| latency.max_ns.get()).max().unwrap_or(0);
        if count > 0 {
            let word = kind.word();
            trial.counter(&format!("{word} operations"), count as f64);
            trial.counter(&format!("{word} mean latency us"), total_ns as f64 / count as f64 / 1e3);
            trial.counter(&format!("{word} max latency us"), max_ns as f64 / 1e3);
        }
        all_count += count;
        all_total_ns += total_ns;
        all_max_ns = all_max_ns.max(max_ns);
    }
    if all_count > 0 {
        trial.sample("latency", all_total_ns as f64 / all_count as f64 / 1e3)?;
        trial.sample("max-latency", all_max_ns as f64 / 1e3)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_or_a_byte_that_only_one_side_counts_is_found() {
        let clients: [ClientFigures; 2] = Default::default();
        let servers: [Traffic; 2] = Default::default();
        let read = Exchange { request: 59, answer: 159, payload: 100, kind: Kind::ReadX };
        for client in &clients {
            client.count(&read);
        }
        servers[0].count(59, 159);
        let error = check(&clients, &servers).unwrap_err().to_string();
        assert!(
            error.contains("the clients count 2 requests of 118 bytes with 318 bytes of answers"),
            "{error}"
        );
        assert!(error.contains("the servers 1 requests of 59 bytes with 159 bytes of answers"), "{error}");
        servers[1].count(59, 158);
        assert!(check(&clients, &servers).is_err());
        servers[1].answered_bytes.add(1);
        check(&clients, &servers).unwrap();
        let nothing_sent = Exchange { request: 0, answer: 0, payload: 0, kind: Kind::Deltree };
        clients[0].count(&nothing_sent);
        check(&clients, &servers).unwrap();
    }

    #[test]
    fn metrics_are_those_of_the_time_between_two_readings() {
        let clients: [ClientFigures; 2] = Default::default();
        let read = Exchange { request: 59, answer: 159, payload: 100, kind: Kind::ReadX };
        clients[0].count(&read);
        clients[0].record(Kind::ReadX, 9_000_000);
        clients[0].forget_latencies();
        let start = Reading { time_ns: 500, ..Reading::of(&clients) };
        for (client, times) in clients.iter().zip([3, 1]) {
            for nth in 1..=times {
                client.count(&read);
                client.record(Kind::ReadX, nth * 1_000);
            }
        }
        let end = Reading { time_ns: 2_000_000_500, ..Reading::of(&clients) };
        let mut trial = Trial::new(2.into(), vec![0], 1);
        leave(&clients, 8, &start, &end, &mut trial).unwrap();
        let experiment::Outcome::Done { samples, counters, .. } = trial.into_outcome() else { panic!() };
        assert_eq!(samples["throughput"], [400.0 / 1e6 / 2.0]);
        assert_eq!(samples["rate"], [2.0]);
        assert_eq!(samples["latency"], [7.0 / 4.0]);
        assert_eq!(samples["max-latency"], [3.0]);
        assert_eq!(samples["fairness"], [16.0 / 20.0]);
        assert_eq!(counters["ReadX operations"], 4.0);
        assert_eq!(counters["passes of the load per client"], 0.25);
        assert_eq!(counters["operations of the slowest client"], 1.0);
    }
}
