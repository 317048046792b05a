//! The original programs: found, run and read where they are installed, so that kduel's own implementations can
//! be set against them.

pub mod cyclictest;
pub mod fio;
pub mod hackbench;
pub mod iperf3;
pub mod locktorture;
pub mod netperf;
pub mod perf_futex;
pub mod perf_sched;
mod program;
mod running;
pub mod schbench;
pub mod stream;
pub mod stress_ng;
pub mod sysbench;
pub mod tbench;

use crate::shared::{Semantics, semantics, via};
use crate::{Failure, Trial};
use experiment::Params;
pub use machine::on_path;
pub use program::{Program, absent, die_with_parent, failed_command, last_line};

/// A program that does the work of a workload in its own way, where it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Original {
    /// The word for it in `via`.
    pub via: &'static str,
    /// The program, which is looked for on PATH.
    pub program: &'static str,
    /// The Debian package that brings it, where there is one.
    pub package: Option<&'static str>,
}

impl Original {
    /// hackbench of rt-tests.
    pub const HACKBENCH: Original = Original::packaged("rt-tests", "hackbench", "rt-tests");
    /// cyclictest of rt-tests.
    pub const CYCLICTEST: Original = Original::packaged("rt-tests", "cyclictest", "rt-tests");
    /// `perf bench`.
    pub const PERF: Original = Original::packaged("perf", "perf", "linux-perf");
    /// tbench of dbench 4.
    pub const TBENCH: Original = Original::packaged("dbench", "tbench", "dbench");
    /// The server that tbench talks to.
    pub const TBENCH_SRV: Original = Original::packaged("dbench", "tbench_srv", "dbench");
    /// fio.
    pub const FIO: Original = Original::packaged("fio", "fio", "fio");
    /// iperf3.
    pub const IPERF3: Original = Original::packaged("iperf3", "iperf3", "iperf3");
    /// sysbench.
    pub const SYSBENCH: Original = Original::packaged("sysbench", "sysbench", "sysbench");
    /// stress-ng.
    pub const STRESS_NG: Original = Original::packaged("stress-ng", "stress-ng", "stress-ng");
    /// schbench, which no distribution packages.
    pub const SCHBENCH: Original = Original { via: "schbench", program: "schbench", package: None };
    /// netperf, which Debian packages from 13 on.
    pub const NETPERF: Original = Original { via: "netperf", program: "netperf", package: None };
    /// STREAM as its users build it.
    pub const STREAM: Original = Original { via: "stream", program: "stream", package: None };

    /// locktorture, a module of the kernel, which modprobe loads.
    pub const LOCKTORTURE: Original = Original::packaged("locktorture", "modprobe", "kmod");

    const fn packaged(via: &'static str, program: &'static str, package: &'static str) -> Original {
        Original { via, program, package: Some(package) }
    }

    /// The installed program.
    ///
    /// # Errors
    /// When it is not there; the error says what brings it.
    pub fn find(&self) -> Result<Program, Failure> {
        Program::find(self.program, self.package)
    }
}

/// The one of `originals` that `via` asks for; `None` for kduel's own implementation.
///
/// # Errors
/// When strict semantics are asked of an original, which has its own.
pub fn wanted(params: &Params, originals: &[Original]) -> Result<Option<Original>, Failure> {
    let Some(word) = via(params)? else { return Ok(None) };
    let original = originals.iter().copied().find(|original| original.via == word);
    if original.is_some() && semantics(params)? == Semantics::Strict {
        return Err(Failure::Refused(
            "an original program has original semantics; leave out either `via` or `semantics=strict`".into(),
        ));
    }
    Ok(original)
}

/// Whether the one of `originals` that `via` asks for is installed, where it asks for one.
///
/// # Errors
/// When it is not, or when strict semantics are asked of it.
pub fn check(params: &Params, originals: &[Original]) -> Result<(), Failure> {
    match wanted(params, originals)? {
        None => Ok(()),
        Some(original) => original.find().map(drop),
    }
}

/// `perf`, with its version noted in `trial`.
///
/// # Errors
/// When it is not installed.
pub fn perf(trial: &mut Trial) -> Result<Program, Failure> {
    let perf = Original::PERF.find()?;
    let version = perf.run(&["--version"])?;
    trial.note(format!("measured by {}", version.trim()));
    Ok(perf)
}

/// What a program printed is no result: `what` of it is not there.
pub fn unread(program: &str, what: &str, output: &str) -> Failure {
    let line = last_line(output).unwrap_or("nothing");
    Failure::Refused(format!("what {program} printed could not be read ({what}); its last line: {line}"))
}

/// `runtime_s` for a program that takes whole seconds.
///
/// # Errors
/// When it is no such number, or 0.
pub fn whole_seconds(program: &str, runtime_s: f64) -> Result<u64, Failure> {
    match runtime_s.fract() == 0.0 && runtime_s >= 1.0 {
        true => Ok(runtime_s as u64),
        false => {
            Err(Failure::Refused(format!("{program} takes whole seconds, and runtime={runtime_s} is not")))
        }
    }
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
        let error = Program::find("no-such-original", Some("some-package")).unwrap_err().to_string();
        assert_eq!(error, "no-such-original is not installed; `apt-get install some-package` brings it");
    }

    #[test]
    fn p4_the_exact_status_of_an_original() {
        let error = Program::find("false", Some("coreutils")).unwrap().run(&[]).unwrap_err();
        assert!(error.to_string().contains("left with status 1; it said: nothing"), "{error}");
        assert_eq!(error.kind(), experiment::Failure::Exit);
    }
}
