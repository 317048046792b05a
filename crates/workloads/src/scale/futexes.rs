//! Tests of the futex call that find nobody to wake, or no reason to wait.

use super::{Site, Test};
use crate::Failure;
use crate::counting::Counted;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use std::sync::atomic::AtomicU32;

pub const TESTS: &[Test] = &[
    Test::new("futex1", "FUTEX_WAKE that finds nobody", futex1),
    Test::new("futex2", "FUTEX_WAIT for a value that the futex does not have", futex2),
    Test::new("futex3", "FUTEX_WAKE_PRIVATE that finds nobody", futex3),
    Test::new("futex4", "FUTEX_WAIT_PRIVATE for a value that the futex does not have", futex4),
];

fn futex1(site: &Site) -> Result<Counted, Failure> {
    wake(site, Flags::empty())
}

fn futex2(site: &Site) -> Result<Counted, Failure> {
    wait(site, Flags::empty())
}

fn futex3(site: &Site) -> Result<Counted, Failure> {
    wake(site, Flags::PRIVATE)
}

fn futex4(site: &Site) -> Result<Counted, Failure> {
    wait(site, Flags::PRIVATE)
}

fn wake(site: &Site, flags: Flags) -> Result<Counted, Failure> {
    site.run(|task| {
        task.repeat(1, || {
            let word = AtomicU32::new(0);
            match futex::wake(&word, flags, 1) {
                Ok(0) => Ok(()),
                answer => Err(odd("FUTEX_WAKE", answer)),
            }
        })
    })
}

fn wait(site: &Site, flags: Flags) -> Result<Counted, Failure> {
    site.run(|task| {
        task.repeat(1, || {
            let word = AtomicU32::new(0);
            match futex::wait(&word, flags, 1, None) {
                Err(Errno::AGAIN) => Ok(()),
                answer => Err(odd("FUTEX_WAIT", answer)),
            }
        })
    })
}

#[cold]
fn odd(call: &str, answer: impl std::fmt::Debug) -> Failure {
    Failure::Invariant(format!("{call} gave {answer:?}, though nobody waits for the futex and it is 0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::UNTIL_IT_FAILS;
    use crate::scale::tests::site;
    use crate::shared::{Mode, Semantics};

    #[test]
    fn a_call_that_gives_another_answer_fails_the_trial() {
        alone("scale::futexes::tests::a_call_that_gives_another_answer_fails_the_trial", || {
            // No kernel has this operation.
            let bogus = Flags::from_bits_retain(0x40);
            for mode in [Mode::Process, Mode::Thread] {
                let site = site(mode, Semantics::Original, UNTIL_IT_FAILS);
                for broken in [wake, wait] {
                    let error = leaving_nothing(|| broken(&site, bogus)).unwrap_err();
                    assert!(matches!(error, Failure::Invariant(_)), "{error}");
                }
            }
        });
    }
}
