//! The loopback network, which a kernel starts with switched off.

use rustix::net::{AddressFamily, SocketType, socket};
use std::io;

/// Switches it on, by a message to the kernel (rtnetlink(7)). The kernel itself then gives it its addresses.
pub(super) fn raise() -> io::Result<()> {
    let kernel = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    rustix::io::write(&kernel, &request())?;
    let mut answer = [0; 256];
    let length = rustix::io::read(&kernel, &mut answer)?;
    match outcome(&answer[..length]) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is not understood")),
    }
}

/// Set the flag "up", and only it, of the device with index 1, which the loopback device always is.
fn request() -> Vec<u8> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
    const UP: u32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    // Family and type of device, neither of which matters.
    message.extend([0; 4]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message
}

/// The error code in an acknowledgement: 0, or the negative of an errno. It stands behind the header of 16 bytes, whose
/// second field, the kind, is 2.
fn outcome(answer: &[u8]) -> Option<i32> {
    const ACKNOWLEDGEMENT: u16 = 2;
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let code = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
    (kind == ACKNOWLEDGEMENT).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_understands_the_request() {
        // Where it is up already, as here, nothing changes; without the right to do so the kernel says EPERM.
        match raise() {
            Ok(()) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}"),
        }
    }

    #[test]
    fn answers_are_told_apart() {
        let mut answer = vec![0; 20];
        answer[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        assert_eq!(outcome(&answer), Some(0));
        answer[16..20].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert_eq!(outcome(&answer), Some(-1));
        answer[4] = 16;
        assert_eq!(outcome(&answer), None);
        assert_eq!(outcome(&answer[..18]), None);
    }
}
