//! A signal that ends a wait from time to time. A datagram that was lost would be waited for without end, and a time-out
//! on each receive would have the kernel start and stop a timer for each.

use crate::Failure;
use std::io;
use std::time::Duration;

/// How long a datagram is waited for at least, before it counts as lost.
pub const PERIOD: Duration = Duration::from_millis(200);

extern "C" fn interrupted(_signal: libc::c_int) {}

/// From here on every system call of this process that waits fails with EINTR after a [`PERIOD`] at the latest. For
/// processes that were forked for this, since it takes the alarm signal.
///
/// # Errors
/// When the kernel refuses the timer.
pub fn start() -> Result<(), Failure> {
    let every = libc::timeval { tv_sec: 0, tv_usec: PERIOD.subsec_micros().into() };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: The handler does nothing, so it may interrupt anything; without SA_RESTART the interrupted call fails. All
    // structures are initialised, and zeroes are an empty mask and no flags.
    let failed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = interrupted as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()) != 0
            || libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) != 0
    };
    match failed {
        false => Ok(()),
        true => Err(Failure::Refused(format!("no interval timer: {}", io::Error::last_os_error()))),
    }
}
