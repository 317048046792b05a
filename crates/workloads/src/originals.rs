//! The original programs: found, run and read where they are installed, so that kduel's own implementations can
//! be set against them.

pub mod hackbench;
pub mod perf_futex;
mod program;

use crate::shared::{Semantics, semantics, via};
use crate::{Failure, Trial};
use experiment::Params;
pub use program::{Program, die_with_parent, failed_command, last_line, on_path};

/// Which original does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Original {
    /// A program of rt-tests.
    RtTests,
    /// `perf bench`.
    Perf,
}

/// The original that `via` asks for; `None` for kduel's own implementation.
///
/// # Errors
/// When strict semantics are asked of an original, which has its own.
pub fn wanted(params: &Params) -> Result<Option<Original>, Failure> {
    let original = match via(params)? {
        None => return Ok(None),
        Some("rt-tests") => Original::RtTests,
        Some(_) => Original::Perf,
    };
    if semantics(params)? == Semantics::Strict {
        return Err(Failure::Refused(
            "an original program has original semantics; leave out either `via` or `semantics=strict`".into(),
        ));
    }
    Ok(Some(original))
}

/// Whether the original that `via` asks for is installed, where it asks for one.
///
/// # Errors
/// When it is not, or when strict semantics are asked of it.
pub fn check(params: &Params) -> Result<(), Failure> {
    match wanted(params)? {
        None => Ok(()),
        Some(Original::RtTests) => Program::find("hackbench", "rt-tests").map(drop),
        Some(Original::Perf) => Program::find("perf", "linux-perf").map(drop),
    }
}

/// `perf`, with its version noted in `trial`.
///
/// # Errors
/// When it is not installed.
pub fn perf(trial: &mut Trial) -> Result<Program, Failure> {
    let perf = Program::find("perf", "linux-perf")?;
    let version = perf.run(&["--version"])?;
    trial.note(format!("measured by {}", version.trim()));
    Ok(perf)
}

/// A decimal number as programs print it; its point may be a comma.
pub fn decimal(text: &str) -> Option<f64> {
    text.trim().replace(',', ".").parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{Outcome, Point};
    use std::collections::BTreeMap;

    fn samples(workload: &str, metric: &str, set: &[(&str, &str)]) -> (Vec<f64>, Vec<String>) {
        let workload = crate::find(workload).unwrap();
        let set: BTreeMap<String, String> =
            set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = workload.describe().params(&set).unwrap();
        let cpus = machine::cpus::online(&machine::Root::real()).unwrap().to_vec();
        let mut trial = Trial::new(Point::from(2), cpus, 1);
        workload.run(&params, &mut trial).unwrap();
        match trial.into_outcome() {
            Outcome::Done { mut samples, notes, .. } => (samples.remove(metric).unwrap(), notes),
            missing => panic!("{missing:?}"),
        }
    }

    #[test]
    fn installed_originals_are_run_and_read() {
        if on_path("hackbench").is_none() {
            println!("skipped: rt-tests is not installed");
        } else {
            for mode in ["process", "thread"] {
                for transport in ["socket", "pipe"] {
                    let set = [("via", "rt-tests"), ("mode", mode), ("transport", transport), ("loops", "2")];
                    let (samples, notes) = samples("hackbench", "time", &set);
                    assert_eq!(samples.len(), 5);
                    assert!(notes[0].starts_with("measured by hackbench"), "{notes:?}");
                }
            }
        }
        if on_path("perf").is_none() {
            println!("skipped: perf is not installed");
        } else {
            for (workload, more) in [
                ("futex-wake", ("nwakes", "2")),
                ("futex-wake-parallel", ("nwakers", "1")),
                ("futex-requeue", ("pi", "on")),
            ] {
                let (samples, notes) =
                    samples(workload, "latency", &[("via", "perf"), ("repeat", "2"), more]);
                assert_eq!(samples.len(), 2);
                assert!(notes[0].starts_with("measured by perf version"), "{notes:?}");
            }
            assert_eq!(samples("hackbench", "time", &[("via", "perf"), ("loops", "2")]).0.len(), 5);
        }
    }

    #[test]
    fn a_missing_original_names_the_package_that_brings_it() {
        let error = Program::find("no-such-original", "some-package").unwrap_err().to_string();
        assert_eq!(error, "no-such-original is not installed; `apt-get install some-package` brings it");
    }

    #[test]
    fn p4_the_exact_status_of_an_original() {
        let error = Program::find("false", "coreutils").unwrap().run(&[]).unwrap_err();
        assert!(error.to_string().contains("left with status 1; it said: nothing"), "{error}");
        assert_eq!(error.kind(), experiment::Failure::Exit);
    }
}
