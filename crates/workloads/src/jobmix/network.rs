//! TCP and UDP over the loopback device, both ends in one process.

use super::ipc::pass_messages;
use super::user::failed;
use crate::Failure;
use rustix::net::sockopt::set_socket_linger;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// The longest that a message may take. One that was lost must not stop the user.
const PATIENCE: Duration = Duration::from_secs(30);

/// 89 messages over a connection.
pub fn tcp() -> Result<(), Failure> {
    let refused = || failed("no TCP connection can be made");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(refused())?;
    let writer = TcpStream::connect(listener.local_addr().map_err(refused())?).map_err(refused())?;
    let (reader, _) = listener.accept().map_err(refused())?;
    writer.set_nodelay(true).and_then(|()| reader.set_read_timeout(Some(PATIENCE))).map_err(refused())?;
    pass_messages(89, &reader, &writer)?;
    // With an end in good order the port would stay taken for a minute, and thousands of users run out of ports.
    set_socket_linger(&writer, Some(Duration::ZERO)).map_err(failed("a connection cannot be reset"))
}

/// 99 datagrams.
pub fn udp() -> Result<(), Failure> {
    let refused = || failed("no UDP socket can be made");
    let reader = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(refused())?;
    let writer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(refused())?;
    writer.connect(reader.local_addr().map_err(refused())?).map_err(refused())?;
    reader.set_read_timeout(Some(PATIENCE)).map_err(refused())?;
    pass_messages(99, &reader, &writer)
}
