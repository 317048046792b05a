//! Whether the boot of a trial has proxy execution, as the knob `proxy` wants it or not.

use crate::Trial;
use crate::inversion::{Lending, lending};
use machine::{ProxyExecution, ProxyState, Root};
use std::cmp::Ordering;

/// Leaves in `trial` the evidence for the knob `proxy`: `on` or `off`. It is what this boot does with the owner of a mutex,
/// and what its kernel says of itself. To be called before the work begins, while this process has a single thread.
pub fn check_proxy(wanted: &str, trial: &mut Trial) {
    let kernel = ProxyExecution::read(&Root::real());
    let tried = match kernel.state {
        // What is not there cannot lend.
        ProxyState::Absent => None,
        _ => Some(lending(trial.cpus())),
    };
    let (ran, seen) = judge(wanted == "on", &kernel, tried);
    trial.evidence(&format!("proxy={wanted}"), ran, seen);
}

/// Whether the boot is as it is wanted, and what shows it. What it does goes before what its kernel says.
fn judge(wanted: bool, kernel: &ProxyExecution, tried: Option<Result<Lending, String>>) -> (bool, String) {
    let said = &kernel.seen;
    let (lends, seen) = match tried {
        None => {
            let remedy = if wanted { format!(". {}", ProxyExecution::REMEDY) } else { String::new() };
            (Some(false), format!("this kernel has no proxy execution: {said}{remedy}"))
        }
        Some(Ok(Lending { lent, not_lent })) => {
            let rounds = lent + not_lent;
            let had = "a waiter had a mutex of the kernel";
            let hog = "the hog that kept its owner from the CPU gave up";
            let (lends, answer) = match lent.cmp(&not_lent) {
                Ordering::Greater => {
                    (Some(true), format!("lent: in {lent} of {rounds} rounds {had} before {hog}"))
                }
                Ordering::Less => {
                    (Some(false), format!("not lent: in {not_lent} of {rounds} rounds {had} only when {hog}"))
                }
                Ordering::Equal => (None, format!("lent in {lent} of {rounds} rounds only")),
            };
            (lends, format!("{answer}; {said}"))
        }
        Some(Err(why)) => {
            let lends = match kernel.state {
                ProxyState::Unknown => None,
                state => Some(state == ProxyState::On),
            };
            (lends, format!("{said}; whether it lends was not seen: {why}"))
        }
    };
    (lends == Some(wanted), seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(state: ProxyState) -> ProxyExecution {
        ProxyExecution { state, seen: "the kernel's word".into() }
    }

    #[test]
    fn what_the_boot_does_decides_and_not_what_its_kernel_says() {
        use ProxyState::{Off, On, Unknown};
        for state in [Unknown, Off, On] {
            for (lent, not_lent, lends) in [(3, 0, Some(true)), (1, 2, Some(false)), (1, 1, None)] {
                for wanted in [true, false] {
                    let (ran, seen) = judge(wanted, &kernel(state), Some(Ok(Lending { lent, not_lent })));
                    assert_eq!(ran, lends == Some(wanted), "{state:?} {lent} {not_lent}: {seen}");
                    assert_eq!(seen.starts_with("not lent: in 2 of 3"), lends == Some(false), "{seen}");
                    assert!(seen.contains("the kernel's word"), "{seen}");
                }
            }
        }
    }

    #[test]
    fn without_the_right_to_try_the_kernels_word_has_to_do() {
        for (state, on, off) in [
            (ProxyState::On, true, false),
            (ProxyState::Off, false, true),
            (ProxyState::Unknown, false, false),
        ] {
            let ran = |wanted| judge(wanted, &kernel(state), Some(Err("no fifo".into())));
            assert_eq!((ran(true).0, ran(false).0), (on, off), "{state:?}");
            assert!(ran(true).1.contains("not seen: no fifo"));
        }
    }

    #[test]
    fn a_kernel_without_it_says_what_brings_it() {
        let kernel = kernel(ProxyState::Absent);
        let (ran, seen) = judge(true, &kernel, None);
        assert!(
            !ran && seen.contains("CONFIG_SCHED_PROXY_EXEC") && seen.contains("cargo xtask kernel"),
            "{seen}"
        );
        let (ran, seen) = judge(false, &kernel, None);
        assert!(ran && !seen.contains("cargo"), "without it, it is off: {seen}");
    }
}
