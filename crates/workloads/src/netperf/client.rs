//! What a client does.

use super::latencies::Latencies;
use super::plan::{Plan, Test};
use super::steps::{Step, TcpCrr, TcpRr, TcpStream, UdpRr, UdpStream};
use super::tally::{ClientTally, Place};
use super::tick;
use super::window::Window;
use super::wire::{self, cannot_connect, set_nodelay};
use crate::Failure;
use crate::clock::{SECOND_NS, now_ns};
use crate::gate::Gate;
use rustix::fd::OwnedFd;
use rustix::net::connect;
use stats::Histogram;
use std::net::SocketAddrV4;

/// What every client needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// What is to be done.
    pub plan: &'a Plan,
    /// Where its server is.
    pub server: SocketAddrV4,
    /// The window that it shares with all.
    pub window: &'a Window,
    /// Where it leaves what it did.
    pub place: &'a Place,
    /// Where it leaves how long its transactions took.
    pub latencies: &'a Latencies,
    /// Which client it is.
    pub index: usize,
}

impl Client<'_> {
    /// Connects, waits at the gate, works, and leaves what it did.
    ///
    /// # Errors
    /// When it cannot connect, and when the work breaks down.
    pub fn run(self, gate: &Gate) -> Result<(), Failure> {
        let plan = self.plan;
        match plan.test {
            Test::TcpRr => self.measure(gate, TcpRr::new(plan, self.connected()?)),
            Test::UdpRr => self.measure(gate, UdpRr::new(plan, wire::new(plan)?, self.server)),
            Test::TcpCrr => self.measure(gate, TcpCrr::new(self)),
            Test::TcpStream => self.measure(gate, TcpStream::new(plan, self.connected()?)),
            Test::UdpStream => self.measure(gate, UdpStream::new(plan, wire::new(plan)?, self.server)),
        }
    }

    /// A socket that is connected to the server.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn connected(&self) -> Result<OwnedFd, Failure> {
        let socket = wire::new(self.plan)?;
        connect(&socket, &self.server).map_err(|error| cannot_connect(error, self.server))?;
        set_nodelay(self.plan, &socket)?;
        Ok(socket)
    }

    fn measure<S: Step>(self, gate: &Gate, step: S) -> Result<(), Failure> {
        let Client { plan, window, place, .. } = self;
        let mut worker = Worker {
            step,
            latencies: Histogram::reaching(SECOND_NS),
            amount: 0,
            last_ns: 0,
            deadline_ns: 0,
            stalled: false,
        };
        if !gate.wait() {
            return Ok(());
        }
        if plan.test.is_udp() {
            tick::start()?;
        }
        if !plan.warmup.is_zero() {
            worker.last_ns = now_ns();
            worker.deadline_ns = worker.last_ns + plan.warmup.as_nanos() as u64;
            worker.work_while(|| true)?;
            worker.latencies = Histogram::reaching(SECOND_NS);
            worker.stalled = false;
        }
        let warm = worker.amount;
        let start_ns = now_ns();
        worker.last_ns = start_ns;
        worker.deadline_ns = start_ns + plan.runtime.as_nanos() as u64;
        place.start();
        window.start();
        worker.work_while(|| !window.has_begun(plan.clients))?;
        let at_begin = worker.amount;
        worker.work_while(|| !window.is_over())?;
        let in_window = worker.amount - at_begin;
        worker.work_while(|| true)?;
        window.stop();
        let busy_ns = worker.last_ns - start_ns;
        let stop_ns = if worker.stalled { worker.deadline_ns } else { worker.last_ns };
        worker.step.finish()?;
        let end_ns = now_ns();
        let done = worker.amount - warm;
        let mut tally = ClientTally {
            start_ns,
            busy_ns,
            stop_ns,
            end_ns,
            warm,
            done,
            in_window,
            ..ClientTally::default()
        };
        tally.sent = worker.amount;
        worker.step.tell(&mut tally);
        place.leave_client(&tally);
        self.latencies.leave(self.index, &worker.latencies)?;
        place.end();
        Ok(())
    }
}

/// A client at work.
struct Worker<S> {
    step: S,
    latencies: Histogram,
    amount: u64,
    /// When the last step was done.
    last_ns: u64,
    deadline_ns: u64,
    /// Whether the last step came to nothing.
    stalled: bool,
}

impl<S: Step> Worker<S> {
    /// Works until its time is over, or until `go_on` says no.
    fn work_while(&mut self, go_on: impl Fn() -> bool) -> Result<(), Failure> {
        while !self.stalled && self.last_ns < self.deadline_ns && go_on() {
            let amount = self.step.once(self.deadline_ns)?;
            if amount == 0 {
                self.stalled = true;
                break;
            }
            let now_ns = now_ns();
            if S::TIMED {
                self.latencies.record(now_ns.saturating_sub(self.last_ns));
            }
            self.amount += amount;
            self.last_ns = now_ns;
        }
        Ok(())
    }
}
