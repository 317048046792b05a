//! The connection between a client and its server, and what passes over it: strictly one request, one answer.
//!
//! A message begins with the number of bytes that follow, and a request goes on with the same of its answer, both as
//! four bytes in network order. What else it holds means nothing.

use super::operation::LARGEST_MESSAGE_BYTES;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

/// Bytes of the number at the beginning of a message.
const HEADER: usize = 4;

/// The exchange by which a client makes sure that it is served, before the load.
const GREETING: (u32, u32) = (8, 8);

/// What went wrong on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A system call failed.
    Call(Errno),
    /// The other side hung up.
    HungUp,
    /// A header does not say what it has to.
    Header {
        /// The number of bytes that it says.
        said: u32,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Call(error) => write!(f, "{error}"),
            Fault::HungUp => f.write_str("the other side hung up"),
            Fault::Header { said } => {
                write!(f, "the header of a message says that {said} bytes follow, which is wrong")
            }
        }
    }
}

impl From<Errno> for Fault {
    fn from(error: Errno) -> Fault {
        Fault::Call(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Call(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// Room for any message. It is written to, so that a message is sent from memory of its own and not from the one page
/// of zeroes that stands for all memory which nobody has written to.
fn buffer() -> Vec<u8> {
    vec![b'-'; LARGEST_MESSAGE_BYTES as usize]
}

/// The end that asks.
#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects to the server at `address` and exchanges greetings.
    pub fn connect(address: SocketAddr) -> Result<Client, Fault> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let mut client = Client { socket: socket.into(), buffer: buffer() };
        client.ask(GREETING.0, GREETING.1)?;
        Ok(client)
    }

    /// Sends a request of so many bytes and takes in the answer of so many: three system calls.
    #[inline]
    pub fn ask(&mut self, request: u32, answer: u32) -> Result<(), Fault> {
        let buffer = self.buffer.as_mut_slice();
        let follows = answer - HEADER as u32;
        buffer[..HEADER].copy_from_slice(&(request - HEADER as u32).to_be_bytes());
        buffer[HEADER..2 * HEADER].copy_from_slice(&follows.to_be_bytes());
        send_all(&self.socket, &buffer[..request as usize])?;
        let mut header = [0; HEADER];
        receive_all(&self.socket, &mut header, RecvFlags::WAITALL)?;
        let said = u32::from_be_bytes(header);
        if said != follows {
            return Err(Fault::Header { said });
        }
        // The rest is dropped in the kernel and never copied.
        receive_all(&self.socket, &mut buffer[..follows as usize], RecvFlags::WAITALL | RecvFlags::TRUNC)
    }
}

/// The end that answers.
#[derive(Debug)]
pub struct Server {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Server {
    /// Waits for a client that connects and greets. Whoever connects by mistake is sent away.
    pub fn accept(listener: &TcpListener) -> Result<Server, Fault> {
        loop {
            let (socket, _) = listener.accept()?;
            socket.set_nodelay(true)?;
            let mut server = Server { socket: socket.into(), buffer: buffer() };
            if server.answer() == Ok(Some(GREETING)) {
                return Ok(server);
            }
        }
    }

    /// Takes in a request and sends its answer: three system calls. Returns the bytes of both, or `None` if the client
    /// has hung up.
    #[inline]
    pub fn answer(&mut self) -> Result<Option<(u32, u32)>, Fault> {
        let mut header = [0; HEADER];
        match receive_all(&self.socket, &mut header, RecvFlags::WAITALL) {
            Err(Fault::HungUp) => return Ok(None),
            received => received?,
        }
        let follows = u32::from_be_bytes(header);
        let request = self.buffer.get_mut(..follows as usize).filter(|request| request.len() >= HEADER);
        let Some(request) = request else { return Err(Fault::Header { said: follows }) };
        receive_all(&self.socket, request, RecvFlags::WAITALL)?;
        let Some(wanted) = request.first_chunk::<HEADER>() else {
            return Err(Fault::Header { said: follows });
        };
        let wanted = *wanted;
        let said = u32::from_be_bytes(wanted);
        let whole = (said as usize).saturating_add(HEADER);
        let Some(answer) = self.buffer.get_mut(..whole) else { return Err(Fault::Header { said }) };
        answer[..HEADER].copy_from_slice(&wanted);
        send_all(&self.socket, answer)?;
        Ok(Some((follows + HEADER as u32, whole as u32)))
    }
}

/// Sends all of `bytes`; in more than one call only where a call sent a part.
#[inline]
fn send_all(socket: &OwnedFd, bytes: &[u8]) -> Result<(), Fault> {
    let mut sent = 0;
    while sent < bytes.len() {
        match send(socket, &bytes[sent..], SendFlags::NOSIGNAL) {
            Ok(count) => sent += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Receives as many bytes as `bytes` has room for; in more than one call only where a signal cut one short.
#[inline]
fn receive_all(socket: &OwnedFd, bytes: &mut [u8], flags: RecvFlags) -> Result<(), Fault> {
    let mut received = 0;
    while received < bytes.len() {
        match recv(socket, &mut bytes[received..], flags) {
            Ok((0, _)) => return Err(Fault::HungUp),
            Ok((count, _)) => received += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::Ipv4Addr;
    use std::thread;

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn both_ends_count_the_same_bytes() {
        let (listener, address) = listener();
        let served = thread::spawn(move || {
            let mut server = Server::accept(&listener).unwrap();
            std::iter::from_fn(|| server.answer().unwrap()).collect::<Vec<_>>()
        });
        let exchanges = [(59, 61_499), (65_595, 55), (8, 4), (70_000, 70_000)];
        let mut client = Client::connect(address).unwrap();
        for (request, answer) in exchanges {
            client.ask(request, answer).unwrap();
        }
        drop(client);
        assert_eq!(served.join().unwrap(), exchanges);
    }

    #[test]
    fn a_wrong_header_and_a_short_answer_are_faults() {
        for (said, body, wanted) in [(71, 71, Fault::Header { said: 71 }), (35, 34, Fault::HungUp)] {
            let (listener, address) = listener();
            let bad = thread::spawn(move || {
                let server = Server::accept(&listener).unwrap();
                receive_all(&server.socket, &mut [0; 41], RecvFlags::empty()).unwrap();
                send_all(&server.socket, &u32::to_be_bytes(said)).unwrap();
                send_all(&server.socket, &vec![0; body]).unwrap();
            });
            let mut client = Client::connect(address).unwrap();
            assert_eq!(client.ask(41, 39), Err(wanted));
            bad.join().unwrap();
        }
    }

    #[test]
    fn strangers_are_sent_away_and_wrong_requests_are_faults() {
        let (listener, address) = listener();
        let server = thread::spawn(move || Server::accept(&listener).unwrap().answer());
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let client = Client::connect(address).unwrap();
        send_all(&client.socket, &u32::to_be_bytes(70_001)).unwrap();
        assert_eq!(server.join().unwrap(), Err(Fault::Header { said: 70_001 }));
    }
}
