//! The sockets of clients and servers.

use super::plan::Plan;
use crate::Failure;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, getsockname, listen, recv,
    send, sendto, socket_with, sockopt,
};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Where a server can be reached.
#[derive(Debug)]
pub struct Endpoint {
    /// The socket that listens, or that datagrams come to.
    pub socket: OwnedFd,
    /// Its address.
    pub address: SocketAddrV4,
}

/// The endpoints of all servers, on the loopback interface.
///
/// # Errors
/// When a port is taken, or there is no loopback interface.
pub fn endpoints(plan: &Plan) -> Result<Vec<Endpoint>, Failure> {
    let endpoints: Vec<Endpoint> =
        (0..plan.clients).map(|index| endpoint(plan, index)).collect::<Result<_, Failure>>()?;
    if let Some(first) = endpoints.first() {
        // Where the interface is down, binding works and only connecting fails. Datagrams connect without a packet.
        let probe = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| broken("socket", error))?;
        connect(&probe, &first.address).map_err(|error| cannot_connect(error, first.address))?;
    }
    Ok(endpoints)
}

fn endpoint(plan: &Plan, index: usize) -> Result<Endpoint, Failure> {
    let port = if plan.port == 0 { 0 } else { plan.port + index as u16 };
    let asked = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    let socket = new(plan)?;
    let make = || {
        if !plan.test.is_udp() {
            // Connections of an earlier trial that wait for late packets do not count as another's use of the port.
            sockopt::set_socket_reuseaddr(&socket, true)?;
        }
        bind(&socket, &asked)?;
        if !plan.test.is_udp() {
            listen(&socket, 8)?;
        }
        getsockname(&socket)
    };
    let name = make().map_err(|error| cannot_serve(error, asked))?;
    let address = SocketAddrV4::try_from(name).map_err(|error| cannot_serve(error, asked))?;
    Ok(Endpoint { socket, address })
}

/// A socket for the test with the buffers that were asked for.
///
/// # Errors
/// When the kernel refuses it, or its buffers.
pub fn new(plan: &Plan) -> Result<OwnedFd, Failure> {
    let kind = if plan.test.is_udp() { SocketType::DGRAM } else { SocketType::STREAM };
    let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)
        .map_err(|error| broken("socket", error))?;
    if plan.buffer > 0 {
        set_buffers(&socket, plan.buffer)?;
    }
    Ok(socket)
}

fn set_buffers(socket: &OwnedFd, bytes: usize) -> Result<(), Failure> {
    let set = || {
        sockopt::set_socket_send_buffer_size(socket, bytes)?;
        sockopt::set_socket_recv_buffer_size(socket, bytes)?;
        Ok((sockopt::socket_send_buffer_size(socket)?, sockopt::socket_recv_buffer_size(socket)?))
    };
    let (send, receive) = set().map_err(|error| broken("setsockopt", error))?;
    // The kernel doubles what is asked for, and takes no more than its limit without a word.
    if send < 2 * bytes || receive < 2 * bytes {
        return Err(Failure::Refused(format!(
            "buffer={bytes} is more than the kernel allows: it gave {} to send and {} to receive; raise \
             net.core.wmem_max and net.core.rmem_max with sysctl",
            send / 2,
            receive / 2
        )));
    }
    Ok(())
}

/// Has TCP send small segments at once, where that was asked for.
///
/// # Errors
/// When the kernel refuses.
pub fn set_nodelay(plan: &Plan, socket: &OwnedFd) -> Result<(), Failure> {
    match plan.nodelay {
        false => Ok(()),
        true => sockopt::set_tcp_nodelay(socket, true).map_err(|error| broken("setsockopt", error)),
    }
}

/// Sends all of `bytes`, again and again where the kernel takes a part.
///
/// # Errors
/// When the connection breaks.
#[inline]
pub fn send_all(socket: impl AsFd, bytes: &[u8]) -> Result<(), Errno> {
    let mut rest = bytes;
    loop {
        match send(&socket, rest, SendFlags::NOSIGNAL) {
            Ok(sent) if sent >= rest.len() => return Ok(()),
            Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sends one datagram.
///
/// # Errors
/// When the kernel does not take it.
#[inline]
pub fn send_datagram(socket: impl AsFd, bytes: &[u8], to: SocketAddrV4) -> Result<(), Errno> {
    loop {
        match sendto(&socket, bytes, SendFlags::empty(), &to) {
            Err(Errno::INTR) => {}
            sent => return sent.map(drop),
        }
    }
}

/// Receives until `bytes` is full or the other end closes, and returns how many came.
///
/// # Errors
/// When the connection breaks.
#[inline]
pub fn receive_all(socket: impl AsFd, bytes: &mut [u8]) -> Result<usize, Errno> {
    let wanted = bytes.len();
    let mut rest = bytes;
    loop {
        match recv(&socket, &mut *rest, RecvFlags::empty()) {
            Ok((0, _)) => return Ok(wanted - rest.len()),
            Ok((got, _)) if got >= rest.len() => return Ok(wanted),
            Ok((got, _)) => rest = rest.get_mut(got..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until the other end has closed.
///
/// # Errors
/// When it sends something instead, or the connection breaks.
pub fn wait_for_close(socket: impl AsFd) -> Result<(), Failure> {
    match receive_all(socket, &mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Failure::Invariant("more bytes came than were asked for".into())),
        Err(error) => Err(broken("recv", error)),
    }
}

/// Why a system call failed that has to work.
pub fn broken(call: &str, error: Errno) -> Failure {
    Failure::Invariant(format!("{call} failed: {error}"))
}

/// Why there cannot be a server at `address`.
fn cannot_serve(error: Errno, address: SocketAddrV4) -> Failure {
    Failure::Refused(match error {
        Errno::ADDRINUSE => format!(
            "port {} of 127.0.0.1 is in use; `ss -tulpn` says by whom. Take another port=, or leave it to the kernel \
             with port=0",
            address.port()
        ),
        Errno::ADDRNOTAVAIL | Errno::NETUNREACH => no_loopback(error),
        Errno::ACCESS => format!("port {} is reserved for root; take one from 1024", address.port()),
        error => format!("no server can listen on {address}: {error}"),
    })
}

/// Why a client cannot reach the server at `address`.
pub fn cannot_connect(error: Errno, address: SocketAddrV4) -> Failure {
    match error {
        Errno::NETUNREACH => Failure::Refused(no_loopback(error)),
        Errno::ADDRNOTAVAIL => Failure::Refused(format!(
            "there is no port left to connect to {address} from; more are had with `sysctl -w \
             net.ipv4.ip_local_port_range='1024 65535'`"
        )),
        error => Failure::Invariant(format!("connecting to {address} failed: {error}")),
    }
}

fn no_loopback(error: Errno) -> String {
    format!("the loopback interface is not there: {error}; `ip link set lo up` as root brings it up")
}
