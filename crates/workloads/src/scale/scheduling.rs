//! Tests that go for the scheduler: switches of context, yields, signals.

use super::{Site, Test, broken, same};
use crate::counting::{Counted, Task};
use crate::processes::Children;
use crate::shared::Mode;
use crate::shared_memory::SharedValue;
use crate::{Failure, threads};
use rustix::io::{read, write};
use rustix::thread::sched_yield;
use std::io::{PipeReader, PipeWriter, pipe};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub const TESTS: &[Test] = &[
    Test::new("context_switch1", "switch to or from a partner, over two pipes", context_switch1)
        .with_channels(4)
        .with_partner(),
    Test::new("sched_yield", "sched_yield", yields),
    Test::new("signal1", "raise and handling of a signal", signal1),
];

fn context_switch1(site: &Site) -> Result<Counted, Failure> {
    site.run(|task| switches(task, site.mode(), 2))
}

/// Passes a byte to a partner and takes it back, which counts `operations`.
fn switches(task: &Task, mode: Mode, operations: u64) -> Result<(), Failure> {
    let made = |error| broken("pipe", error);
    let ((its_reader, writer), (reader, its_writer)) = (pipe().map_err(made)?, pipe().map_err(made)?);
    let answers = &*SharedValue::new(AtomicU64::default).map_err(|error| broken("mmap", error))?;
    let answer_all = move || answers.store(answer(&its_reader, &its_writer), Relaxed);
    let mut writer = Some(writer);
    match mode {
        Mode::Process => {
            let mut partner = Children::default();
            let forked = partner.fork(|| {
                // It must not hold open the pipe whose end tells it to leave.
                writer = None;
                answer_all();
                0
            });
            forked.map_err(|error| Failure::Spawn { nth: 2, count: 2, why: error.to_string() })?;
            // With it go the ends of the pipes that are the partner's, so that its death is seen.
            drop(answer_all);
            ask(task, &reader, writer.as_ref(), operations)?;
            writer = None;
            partner.wait_all().map_err(Failure::Invariant)?;
        }
        Mode::Thread => threads::scope(threads::SMALLEST_STACK_BYTES, |scope| {
            scope.start(answer_all).map_err(|error| Failure::Spawn {
                nth: 2,
                count: 2,
                why: error.to_string(),
            })?;
            let asked = ask(task, &reader, writer.as_ref(), operations);
            // The partner sees the end and leaves; the scope waits for it.
            writer = None;
            asked
        })?,
    }
    drop(writer);
    same("switches were seen by the partner", 2 * answers.load(Relaxed), task.counted())
}

fn ask(
    task: &Task,
    reader: &PipeReader,
    writer: Option<&PipeWriter>,
    operations: u64,
) -> Result<(), Failure> {
    let writer = writer.ok_or_else(|| broken("pipe", "closed"))?;
    let mut byte = [0];
    task.repeat(operations, || {
        let sent = write(writer, &byte).map_err(|error| broken("write", error))?;
        let got = read(reader, &mut byte).map_err(|error| broken("read", error))?;
        match (sent, got) {
            (1, 1) => Ok(()),
            _ => Err(broken("passing a byte", "the partner has left")),
        }
    })
}

/// Answers every byte until there are no more, and returns how many there were.
fn answer(reader: &PipeReader, writer: &PipeWriter) -> u64 {
    let (mut byte, mut answered) = ([0], 0);
    while read(reader, &mut byte) == Ok(1) && write(writer, &byte) == Ok(1) {
        answered += 1;
    }
    answered
}

fn yields(site: &Site) -> Result<Counted, Failure> {
    site.run(|task| {
        task.repeat(1, || {
            sched_yield();
            Ok(())
        })
    })
}

fn signal1(site: &Site) -> Result<Counted, Failure> {
    signals(site, libc::SIGUSR1)
}

thread_local! {
    /// Signals that this thread has handled.
    static HANDLED: AtomicU64 = const { AtomicU64::new(0) };
}

extern "C" fn handle(_signal: libc::c_int) {
    // A variable of the thread without initialisation or destructor: the handler neither allocates nor locks.
    HANDLED.with(|handled| handled.store(handled.load(Relaxed) + 1, Relaxed));
}

/// Raises `signal`, while SIGUSR1 is handled.
fn signals(site: &Site, signal: libc::c_int) -> Result<Counted, Failure> {
    let _handler = Handler::new()?;
    site.run(|task| {
        task.repeat(1, || {
            // SAFETY: a signal to this thread, which is either handled or ignored.
            match unsafe { libc::raise(signal) } {
                0 => Ok(()),
                _ => Err(broken("raise", std::io::Error::last_os_error())),
            }
        })?;
        same("signals were handled", HANDLED.with(|handled| handled.load(Relaxed)), task.counted())
    })
}

/// The handler of SIGUSR1, until it is dropped.
struct Handler {
    before: libc::sigaction,
}

impl Handler {
    fn new() -> Result<Handler, Failure> {
        // SAFETY: zeros are a legal value of the structs, and the handler does nothing that a handler must not.
        let (before, status) = unsafe {
            let (mut before, mut action): (libc::sigaction, libc::sigaction) = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            let status = libc::sigaction(libc::SIGUSR1, &action, &mut before);
            (before, status)
        };
        match status {
            0 => Ok(Handler { before }),
            _ => Err(broken("sigaction", std::io::Error::last_os_error())),
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: what is set is what the kernel gave.
        unsafe { libc::sigaction(libc::SIGUSR1, &self.before, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::patiently;
    use crate::scale::tests::site;
    use crate::shared::Semantics;

    #[test]
    fn switches_and_signals_that_did_not_happen_are_found() {
        alone("scale::scheduling::tests::switches_and_signals_that_did_not_happen_are_found", || {
            for mode in [Mode::Process, Mode::Thread] {
                let three_for_two = |runtime| {
                    let site = site(mode, Semantics::Original, runtime);
                    leaving_nothing(|| site.run(|task| switches(task, mode, 3)))
                };
                let error = patiently(three_for_two).unwrap_err().to_string();
                assert!(error.contains("were seen by the partner"), "{error}");
                // It is ignored unless somebody handles it.
                let ignored = |runtime| {
                    let site = site(mode, Semantics::Original, runtime);
                    leaving_nothing(|| signals(&site, libc::SIGURG))
                };
                let error = patiently(ignored).unwrap_err().to_string();
                assert!(error.contains("and 0 signals were handled"), "{error}");
            }
        });
    }
}
