//! Where the agent's requests come from.

use crate::lines::{Lines, wait_readable};
use rustix::stdio::stdin;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the agent sleeps at most before it looks whether a signal told it to leave. A signal ends the sleep, unless
/// it comes just before.
const GLANCE: Duration = Duration::from_secs(1);

/// The requests of one agent's life, a line each.
pub(crate) enum Requests {
    /// They come on standard input when they are made; the end of it is the end of the agent.
    Stream(Lines),
    /// They were all there before the agent began.
    Script(std::vec::IntoIter<Vec<u8>>),
}

impl Requests {
    /// Those on standard input.
    pub(crate) fn from_stream() -> Requests {
        Requests::Stream(Lines::default())
    }

    /// Those in a file.
    pub(crate) fn from_script(script: &Path) -> io::Result<Requests> {
        let text = fs::read(script)?;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Ok(Requests::Script(lines.map(<[u8]>::to_vec).collect::<Vec<_>>().into_iter()))
    }

    /// The next one; none when it is time to leave.
    pub(crate) fn next(&mut self, leave: &AtomicBool) -> io::Result<Option<Vec<u8>>> {
        let lines = match self {
            Requests::Stream(lines) => lines,
            Requests::Script(lines) => return Ok(lines.next()),
        };
        loop {
            if let Some(line) = lines.next() {
                return Ok(Some(line));
            }
            if leave.load(Ordering::SeqCst) {
                return Ok(None);
            }
            let ready = wait_readable(&[stdin()], Instant::now() + GLANCE)?;
            if ready.contains(&true) && !lines.fill(stdin())? {
                return Ok(None);
            }
        }
    }

    /// What is readable when the coordinator has something to say while a trial runs, or is gone.
    pub(crate) fn stream(&self) -> Option<BorrowedFd<'static>> {
        match self {
            Requests::Stream(_) => Some(stdin()),
            Requests::Script(_) => None,
        }
    }

    /// Takes what has come while a trial runs. Whether the trial is to end: the stream has ended, or the one thing that
    /// may come now came, shutdown.
    pub(crate) fn interrupts(&mut self) -> io::Result<bool> {
        match self {
            Requests::Stream(lines) => Ok(!lines.fill(stdin())? || lines.next().is_some()),
            Requests::Script(_) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_line_by_line_to_its_end() {
        let path = std::env::temp_dir().join(format!("kduel-script-{}", std::process::id()));
        fs::write(&path, "one\n\ntwo\n").unwrap();
        let mut requests = Requests::from_script(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let leave = AtomicBool::new(false);
        assert_eq!(requests.next(&leave).unwrap().unwrap(), b"one");
        assert!(requests.stream().is_none(), "nothing can interrupt a trial");
        assert_eq!(requests.next(&leave).unwrap().unwrap(), b"two");
        assert_eq!(requests.next(&leave).unwrap(), None);
        assert!(Requests::from_script(&path).is_err());
    }
}
