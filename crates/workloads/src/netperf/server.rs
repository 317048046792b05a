//! What a server does: one process for each client.

use super::plan::{Plan, Test};
use super::tally::{Place, ServerTally};
use super::tick;
use super::window::Window;
use super::wire::{Endpoint, broken, receive_all, send_all, send_datagram, set_nodelay};
use crate::Failure;
use crate::gate::Gate;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with, recv, recvfrom};
use std::net::SocketAddrV4;

/// What every server needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a> {
    /// What is to be done.
    pub plan: &'a Plan,
    /// Where its client comes to.
    pub endpoint: &'a Endpoint,
    /// The window that the clients share.
    pub window: &'a Window,
    /// Where it leaves what it did, and sees how far its client is.
    pub place: &'a Place,
}

impl Server<'_> {
    /// Waits at the gate, serves its client until that ends, and leaves what it did.
    ///
    /// # Errors
    /// When the work breaks down.
    pub fn run(self, gate: &Gate) -> Result<(), Failure> {
        // The kernel has completed the connection by the time that the client reaches the gate.
        if !gate.wait() {
            return Ok(());
        }
        let tally = match self.plan.test {
            Test::TcpRr => self.tcp_rr()?,
            Test::UdpRr => self.udp_rr()?,
            Test::TcpCrr => self.tcp_crr()?,
            Test::TcpStream => self.tcp_stream()?,
            Test::UdpStream => self.udp_stream()?,
        };
        self.place.leave_server(&tally);
        Ok(())
    }

    fn tcp_rr(&self) -> Result<ServerTally, Failure> {
        let socket = self.accepted()?;
        let (mut request, response) = self.buffers();
        let mut tally = ServerTally::default();
        while self.answer(&socket, &mut request, &response, &mut tally)? {}
        Ok(tally)
    }

    /// The client ends with a connection that has no request.
    fn tcp_crr(&self) -> Result<ServerTally, Failure> {
        let (mut request, response) = self.buffers();
        let mut tally = ServerTally::default();
        loop {
            let socket = self.accepted()?;
            if !self.answer(&socket, &mut request, &response, &mut tally)? {
                return Ok(tally);
            }
        }
    }

    fn tcp_stream(&self) -> Result<ServerTally, Failure> {
        let socket = self.accepted()?;
        let mut room = vec![0; self.plan.receive];
        self.meter(|| match recv(&socket, room.as_mut_slice(), RecvFlags::empty()) {
            Ok((got, _)) => Ok(got),
            Err(error) => Err(broken("recv", error)),
        })
    }

    fn udp_rr(&self) -> Result<ServerTally, Failure> {
        tick::start()?;
        let socket = &self.endpoint.socket;
        let (mut request, mut response) = self.buffers();
        let number_bytes = self.plan.number_bytes();
        let mut tally = ServerTally::default();
        while let Some((got, client)) = self.datagram(&mut request)? {
            self.check_size(got, request.len())?;
            tally.received += 1;
            if !self.loses(tally.received) {
                for (byte, digit) in response.iter_mut().zip(request.iter().take(number_bytes)) {
                    *byte = *digit;
                }
                send_datagram(socket, &response, client).map_err(|error| broken("sendto", error))?;
                tally.answered += 1;
            }
        }
        Ok(tally)
    }

    fn udp_stream(&self) -> Result<ServerTally, Failure> {
        tick::start()?;
        let mut room = vec![0; self.plan.message];
        self.meter(|| match self.datagram(&mut room)? {
            Some((got, _)) => self.check_size(got, self.plan.message),
            None => Ok(0),
        })
    }

    /// The connection that the client makes.
    fn accepted(&self) -> Result<OwnedFd, Failure> {
        let socket = accept_with(&self.endpoint.socket, SocketFlags::CLOEXEC)
            .map_err(|error| broken("accept", error))?;
        set_nodelay(self.plan, &socket)?;
        Ok(socket)
    }

    fn buffers(&self) -> (Vec<u8>, Vec<u8>) {
        (vec![0; self.plan.request], vec![b'r'; self.plan.response])
    }

    /// Receives a request and answers it; false when the client has closed the connection instead.
    #[inline]
    fn answer(
        &self,
        socket: &OwnedFd,
        request: &mut [u8],
        response: &[u8],
        tally: &mut ServerTally,
    ) -> Result<bool, Failure> {
        match receive_all(socket, request) {
            Ok(0) => return Ok(false),
            Ok(got) => self.check_size(got, request.len())?,
            Err(error) => return Err(broken("recv", error)),
        };
        tally.answered += 1;
        tally.received += u64::from(!self.loses(tally.answered));
        send_all(socket, response).map_err(|error| broken("send", error))?;
        Ok(true)
    }

    /// The next datagram and its sender; `None` when the client has ended and all that it sent has been received.
    #[inline]
    fn datagram(&self, room: &mut [u8]) -> Result<Option<(usize, SocketAddrV4)>, Failure> {
        let mut flags = RecvFlags::TRUNC;
        loop {
            match recvfrom(&self.endpoint.socket, &mut *room, flags) {
                Ok((_, got, sender)) => {
                    let sender = sender.and_then(|sender| SocketAddrV4::try_from(sender).ok());
                    let sender =
                        sender.ok_or_else(|| Failure::Invariant("a datagram has no sender".into()))?;
                    return Ok(Some((got, sender)));
                }
                Err(Errno::INTR) if self.place.has_ended() => flags |= RecvFlags::DONTWAIT,
                Err(Errno::AGAIN) if self.place.has_ended() => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(broken("recvfrom", error)),
            }
        }
    }

    fn check_size(&self, got: usize, wanted: usize) -> Result<usize, Failure> {
        match got == wanted {
            true => Ok(got),
            false => Err(Failure::Invariant(format!("{got} bytes came where {wanted} were due"))),
        }
    }

    /// Whether it loses the `nth` request or block.
    #[inline]
    fn loses(&self, nth: u64) -> bool {
        self.plan.lose_nth != 0 && nth.is_multiple_of(self.plan.lose_nth)
    }

    /// Receives to the end, at which `receive` returns 0, and counts the bytes.
    fn meter(&self, mut receive: impl FnMut() -> Result<usize, Failure>) -> Result<ServerTally, Failure> {
        let Server { plan, window, place, .. } = *self;
        let (mut total, mut blocks, mut at_end) = (0, 0, false);
        let mut receive_while = |go_on: &dyn Fn() -> bool| -> Result<u64, Failure> {
            while !at_end && go_on() {
                let got = receive()?;
                at_end = got == 0;
                blocks += 1;
                if !self.loses(blocks) {
                    total += got as u64;
                }
            }
            Ok(total)
        };
        // Without a warm-up nothing comes before the client starts.
        let warm = receive_while(&|| !plan.warmup.is_zero() && !place.has_started())?;
        let at_begin = receive_while(&|| !window.has_begun(plan.clients))?;
        let in_window = receive_while(&|| !window.is_over())? - at_begin;
        let received = receive_while(&|| true)?;
        Ok(ServerTally { received, warm, in_window, answered: 0 })
    }
}
