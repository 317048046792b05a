//! One step of each test, as a client does it.

use super::client::Client;
use super::plan::Plan;
use super::tally::ClientTally;
use super::wire::{broken, receive_all, send_all, send_datagram, wait_for_close};
use crate::Failure;
use crate::clock::now_ns;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recvfrom, shutdown};
use std::net::SocketAddrV4;

/// One step of a test.
pub trait Step {
    /// Whether it matters how long a step takes.
    const TIMED: bool;

    /// Does it once and returns its amount; 0 when `deadline_ns` passed in vain.
    fn once(&mut self, deadline_ns: u64) -> Result<u64, Failure>;

    /// Ends the test.
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Adds what only this test knows.
    fn tell(&self, _tally: &mut ClientTally) {}
}

/// What the bytes of messages are.
const FILL: u8 = b'n';

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

/// A request and its response over one connection.
pub struct TcpRr {
    socket: OwnedFd,
    bytes: Buffers,
}

impl TcpRr {
    pub fn new(plan: &Plan, socket: OwnedFd) -> TcpRr {
        TcpRr { socket, bytes: Buffers::new(plan) }
    }
}

impl Step for TcpRr {
    const TIMED: bool = true;

    #[inline]
    fn once(&mut self, _deadline_ns: u64) -> Result<u64, Failure> {
        self.bytes.exchange(&self.socket).map(|()| 1)
    }
}

/// A connection for a request and its response.
pub struct TcpCrr<'a> {
    client: Client<'a>,
    bytes: Buffers,
}

impl<'a> TcpCrr<'a> {
    pub fn new(client: Client<'a>) -> TcpCrr<'a> {
        TcpCrr { client, bytes: Buffers::new(client.plan) }
    }
}

impl Step for TcpCrr<'_> {
    const TIMED: bool = true;

    /// As in the original it is the server that closes first, so that no port of this side stays taken.
    #[inline]
    fn once(&mut self, _deadline_ns: u64) -> Result<u64, Failure> {
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

/// A request and its response as datagrams. As in the original the socket is not connected, so that the kernel looks up the way for every datagram.
pub struct UdpRr {
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

impl Step for UdpRr {
    const TIMED: bool = true;

    #[inline]
    fn once(&mut self, deadline_ns: u64) -> Result<u64, Failure> {
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
    pub fn new(plan: &Plan, socket: OwnedFd, server: SocketAddrV4) -> UdpRr {
        let (bytes, number_bytes) = (Buffers::new(plan), plan.number_bytes());
        UdpRr { socket, server, bytes, number_bytes, transactions: 0, sent: 0, lost: 0, stale: 0 }
    }

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

/// A message over one connection.
pub struct TcpStream {
    socket: OwnedFd,
    message: Vec<u8>,
}

impl TcpStream {
    pub fn new(plan: &Plan, socket: OwnedFd) -> TcpStream {
        TcpStream { socket, message: vec![FILL; plan.message] }
    }
}

impl Step for TcpStream {
    const TIMED: bool = false;

    #[inline]
    fn once(&mut self, _deadline_ns: u64) -> Result<u64, Failure> {
        send_all(&self.socket, &self.message).map_err(|error| broken("send", error))?;
        Ok(self.message.len() as u64)
    }

    /// As in the original the time ends when the server has received everything.
    fn finish(&mut self) -> Result<(), Failure> {
        shutdown(&self.socket, Shutdown::Write).map_err(|error| broken("shutdown", error))?;
        wait_for_close(&self.socket)
    }
}

/// A datagram.
pub struct UdpStream {
    socket: OwnedFd,
    server: SocketAddrV4,
    message: Vec<u8>,
    refused: u64,
}

impl UdpStream {
    pub fn new(plan: &Plan, socket: OwnedFd, server: SocketAddrV4) -> UdpStream {
        UdpStream { socket, server, message: vec![FILL; plan.message], refused: 0 }
    }
}

impl Step for UdpStream {
    const TIMED: bool = false;

    #[inline]
    fn once(&mut self, deadline_ns: u64) -> Result<u64, Failure> {
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
