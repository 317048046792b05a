//! What a client does.

use super::latencies::Latencies;
use super::plan::{Plan, Test};
use super::tally::{ClientTally, Place};
use super::tick;
use super::window::Window;
use super::wire::{
    self, broken, cannot_connect, receive_all, send_all, send_datagram, set_nodelay, wait_for_close,
};
use crate::Failure;
use crate::clock::now_ns;
use crate::gate::Gate;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, connect, recvfrom, shutdown};
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
            Test::TcpRr => self.measure(gate, TcpRr { socket: self.connected()?, bytes: Buffers::new(plan) }),
            Test::UdpRr => self.measure(
                gate,
                UdpRr {
                    socket: wire::new(plan)?,
                    server: self.server,
                    bytes: Buffers::new(plan),
                    number_bytes: plan.number_bytes(),
                    transactions: 0,
                    sent: 0,
                    lost: 0,
                    stale: 0,
                },
            ),
            Test::TcpCrr => self.measure(gate, TcpCrr { client: self, bytes: Buffers::new(plan) }),
            Test::TcpStream => {
                let message = vec![FILL; plan.message];
                self.measure(gate, TcpStream { socket: self.connected()?, message })
            }
            Test::UdpStream => {
                let message = vec![FILL; plan.message];
                self.measure(
                    gate,
                    UdpStream { socket: wire::new(plan)?, server: self.server, message, refused: 0 },
                )
            }
        }
    }

    /// A socket that is connected to the server.
    fn connected(&self) -> Result<OwnedFd, Failure> {
        let socket = wire::new(self.plan)?;
        connect(&socket, &self.server).map_err(|error| cannot_connect(error, self.server))?;
        set_nodelay(self.plan, &socket)?;
        Ok(socket)
    }

    fn measure<W: Work>(self, gate: &Gate, work: W) -> Result<(), Failure> {
        let Client { plan, window, place, .. } = self;
        let mut worker = Worker {
            work,
            latencies: Histogram::new(),
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
            worker.latencies = Histogram::new();
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
        worker.work.finish()?;
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
        worker.work.tell(&mut tally);
        place.leave_client(&tally);
        self.latencies.leave(self.index, &worker.latencies)?;
        place.end();
        Ok(())
    }
}

/// What the bytes of messages are.
const FILL: u8 = b'n';

/// One step of a test.
trait Work {
    /// Whether it matters how long a step takes.
    const TIMED: bool;

    /// Does one step and returns its amount; 0 when `deadline_ns` passed in vain.
    fn step(&mut self, deadline_ns: u64) -> Result<u64, Failure>;

    /// Ends the test.
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Adds what only this test knows.
    fn tell(&self, _tally: &mut ClientTally) {}
}

struct Worker<W> {
    work: W,
    latencies: Histogram,
    amount: u64,
    /// When the last step was done.
    last_ns: u64,
    deadline_ns: u64,
    /// Whether the last step came to nothing.
    stalled: bool,
}

impl<W: Work> Worker<W> {
    /// Works until its time is over, or until `go_on` says no.
    fn work_while(&mut self, go_on: impl Fn() -> bool) -> Result<(), Failure> {
        while !self.stalled && self.last_ns < self.deadline_ns && go_on() {
            let amount = self.work.step(self.deadline_ns)?;
            if amount == 0 {
                self.stalled = true;
                break;
            }
            let now_ns = now_ns();
            if W::TIMED {
                self.latencies.record(now_ns.saturating_sub(self.last_ns));
            }
            self.amount += amount;
            self.last_ns = now_ns;
        }
        Ok(())
    }
}

/// The bytes of a request, and room for those of a response.
struct Buffers {
    request: Vec<u8>,
    response: Vec<u8>,
}

impl Buffers {
    fn new(plan: &Plan) -> Buffers {
        Buffers { request: vec![FILL; plan.request], response: vec![0; plan.response] }
    }

    /// One request and its response.
    #[inline]
    fn exchange(&mut self, socket: &OwnedFd) -> Result<(), Failure> {
        send_all(socket, &self.request).map_err(|error| broken("send", error))?;
        match receive_all(socket, &mut self.response) {
            Ok(got) if got == self.response.len() => Ok(()),
            Ok(got) => Err(Failure::Invariant(format!(
                "the server closed the connection after {got} of {} bytes of a response",
                self.response.len()
            ))),
            Err(error) => Err(broken("recv", error)),
        }
    }
}

struct TcpRr {
    socket: OwnedFd,
    bytes: Buffers,
}

impl Work for TcpRr {
    const TIMED: bool = true;

    #[inline]
    fn step(&mut self, _deadline_ns: u64) -> Result<u64, Failure> {
        self.bytes.exchange(&self.socket).map(|()| 1)
    }
}

struct TcpCrr<'a> {
    client: Client<'a>,
    bytes: Buffers,
}

impl Work for TcpCrr<'_> {
    const TIMED: bool = true;

    /// As in the original it is the server that closes first, so that no port of this side stays taken.
    #[inline]
    fn step(&mut self, _deadline_ns: u64) -> Result<u64, Failure> {
        let socket = self.client.connected()?;
        self.bytes.exchange(&socket)?;
        wait_for_close(&socket)?;
        Ok(1)
    }

    /// A connection without a request tells the server that it was the last.
    fn finish(&mut self) -> Result<(), Failure> {
        self.client.connected().map(drop)
    }
}

/// As in the original the socket is not connected, so that the kernel looks up the way for every datagram.
struct UdpRr {
    socket: OwnedFd,
    server: SocketAddrV4,
    bytes: Buffers,
    /// How many bytes of a datagram carry the number of its transaction; 0 with original semantics.
    number_bytes: usize,
    transactions: u64,
    sent: u64,
    lost: u64,
    stale: u64,
}

impl Work for UdpRr {
    const TIMED: bool = true;

    #[inline]
    fn step(&mut self, deadline_ns: u64) -> Result<u64, Failure> {
        self.transactions += 1;
        let number = self.transactions.to_le_bytes();
        for (byte, digit) in self.bytes.request.iter_mut().zip(number.iter().take(self.number_bytes)) {
            *byte = *digit;
        }
        self.send()?;
        loop {
            if self.receive()? {
                return Ok(1);
            }
            // The first tick may have come right after the request. From the second on it has waited for a period.
            if self.receive()? {
                return Ok(1);
            }
            if now_ns() >= deadline_ns {
                self.lost += 1;
                return Ok(0);
            }
            if self.number_bytes > 0 {
                self.lost += 1;
                self.send()?;
            }
        }
    }

    fn tell(&self, tally: &mut ClientTally) {
        tally.sent = self.sent;
        tally.lost = self.lost;
        tally.stale = self.stale;
    }
}

impl UdpRr {
    fn send(&mut self) -> Result<(), Failure> {
        self.sent += 1;
        send_datagram(&self.socket, &self.bytes.request, self.server).map_err(|error| broken("sendto", error))
    }

    /// Waits for the response; false when a tick ended the wait.
    #[inline]
    fn receive(&mut self) -> Result<bool, Failure> {
        loop {
            match recvfrom(&self.socket, self.bytes.response.as_mut_slice(), RecvFlags::TRUNC) {
                Ok((_, got, _)) if got != self.bytes.response.len() => {
                    let wanted = self.bytes.response.len();
                    return Err(Failure::Invariant(format!("a response has {got} bytes, not {wanted}")));
                }
                Ok(_)
                    if self.bytes.response.get(..self.number_bytes)
                        == self.bytes.request.get(..self.number_bytes) =>
                {
                    return Ok(true);
                }
                Ok(_) => self.stale += 1,
                Err(Errno::INTR) => return Ok(false),
                Err(error) => return Err(broken("recvfrom", error)),
            }
        }
    }
}

struct TcpStream {
    socket: OwnedFd,
    message: Vec<u8>,
}

impl Work for TcpStream {
    const TIMED: bool = false;

    #[inline]
    fn step(&mut self, _deadline_ns: u64) -> Result<u64, Failure> {
        send_all(&self.socket, &self.message).map_err(|error| broken("send", error))?;
        Ok(self.message.len() as u64)
    }

    /// As in the original the time ends when the server has received everything.
    fn finish(&mut self) -> Result<(), Failure> {
        shutdown(&self.socket, Shutdown::Write).map_err(|error| broken("shutdown", error))?;
        wait_for_close(&self.socket)
    }
}

struct UdpStream {
    socket: OwnedFd,
    server: SocketAddrV4,
    message: Vec<u8>,
    refused: u64,
}

impl Work for UdpStream {
    const TIMED: bool = false;

    #[inline]
    fn step(&mut self, deadline_ns: u64) -> Result<u64, Failure> {
        loop {
            match send_datagram(&self.socket, &self.message, self.server) {
                Ok(()) => return Ok(self.message.len() as u64),
                Err(Errno::NOBUFS) => {
                    self.refused += 1;
                    if now_ns() >= deadline_ns {
                        return Ok(0);
                    }
                }
                Err(error) => return Err(broken("sendto", error)),
            }
        }
    }

    fn tell(&self, tally: &mut ClientTally) {
        tally.refused = self.refused;
    }
}
