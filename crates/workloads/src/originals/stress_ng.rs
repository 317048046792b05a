//! The fork stressor of stress-ng, 0.13 and later.

use super::{Original, decimal, unread, whole_seconds};
use crate::shared::warmup;
use crate::{Failure, Trial};
use experiment::Params;
use std::env::temp_dir;

/// More instances of one stressor are refused by stress-ng.
const INSTANCES_MAX: u64 = 8192;

/// What a reader must know who sets a bogo operation beside a loop of `spawn`; seen with strace in 0.15.06.
const NOT_THE_SAME: &str = "a bogo operation of stress-ng is more than a loop of `spawn`: before it leaves the child makes 10 system \
                            calls, setsid among them, and a larger address space is copied. Its manual warns against \
                            its use as a precise benchmark; compare figures of the same version only";

/// Whether stress-ng is there and can do what `params` ask, for the point of `trial`.
///
/// # Errors
/// When it is not, or has no counterpart for a parameter.
pub fn check(original: Original, params: &Params, trial: &Trial) -> Result<(), Failure> {
    original.find()?;
    arguments(params, trial).map(drop)
}

/// Runs one instance for each copy that the point of `trial` asks for, and leaves the rate of all.
///
/// # Errors
/// As [`check`], and when it prints no result or made no process.
pub fn run(original: Original, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
    let arguments = arguments(params, trial)?;
    let stress_ng = original.find()?;
    let version = stress_ng.run(&["--version"])?;
    let timed = |seconds: f64| {
        let timeout = format!("{seconds}s");
        let all = arguments.iter().map(String::as_str).chain(["--timeout", &timeout]);
        stress_ng.run_aloud(&all.collect::<Vec<&str>>())
    };
    let warmup_s = warmup(params)?.as_secs_f64();
    if warmup_s > 0.0 {
        timed(warmup_s.ceil())?;
    }
    let printed = timed(params.decimal("runtime")?)?;
    // Where its results go differs between versions.
    let printed = format!("{}\n{}", printed.stdout, printed.stderr);
    let (rate_per_s, warnings) = read(&printed)?;
    trial.note(format!("measured by {}", version.trim()));
    trial.note(NOT_THE_SAME);
    for warning in warnings {
        trial.note(format!("stress-ng warned: {warning}"));
    }
    trial.sample("rate", rate_per_s)
}

/// The command line, but for the time.
fn arguments(params: &Params, trial: &Trial) -> Result<Vec<String>, Failure> {
    let copies = trial.count()?;
    let refused = |why: String| Err(Failure::Refused(why));
    if copies > INSTANCES_MAX {
        return refused(format!("stress-ng takes at most {INSTANCES_MAX} copies, and {copies} are more"));
    }
    // It reads 0.5 as 0, which it takes for no end.
    whole_seconds("stress-ng", params.decimal("runtime")?)?;
    if params.count("batch")? != 1 {
        return refused("stress-ng looks after every process whether to go on; leave out `batch`".into());
    }
    // It wants to write where its files would be, though this stressor has none.
    let directory = temp_dir().display().to_string();
    Ok(["--fork", &copies.to_string(), "--fork-max", "1", "--metrics", "--temp-path", &directory]
        .map(String::from)
        .to_vec())
}

/// The operations per second of the time by the clock, and what it warned of.
fn read(output: &str) -> Result<(f64, Vec<&str>), Failure> {
    // A line begins with the program, the kind of line and the process, as in `stress-ng: metrc: [4711] fork  1457`.
    let lines = || output.lines().filter_map(|line| line.split_once("] "));
    let figures = lines().find_map(|(_, said)| {
        let words: Vec<&str> = said.split_whitespace().collect();
        match words.as_slice() {
            ["fork", operations, _time, _user, _system, rate, ..] => decimal(operations).zip(decimal(rate)),
            _ => None,
        }
    });
    let (operations, rate_per_s) = figures.ok_or_else(|| unread("stress-ng", "metrics of `fork`", output))?;
    if operations <= 0.0 || rate_per_s <= 0.0 {
        return Err(Failure::Refused(
            "stress-ng made no process, and does not say why; the limits on tasks may be too low (`ulimit -u`, \
             `pids.max`), or `runtime` too short"
                .into(),
        ));
    }
    let warnings = lines().filter(|(head, _)| head.contains("warn:")).map(|(_, said)| said.trim()).collect();
    Ok((rate_per_s, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use crate::originals::on_path;
    use crate::unixbench::spawn::Spawn;
    use experiment::{Outcome, Point};

    const HEAD: &str = "stress-ng: info:  [42] dispatching hogs: 2 fork\n\
                        stress-ng: metrc: [42] stressor       bogo ops real time  usr time  sys time   bogo ops/s\n\
                        stress-ng: metrc: [42]                           (secs)    (secs)    (secs)   (real time)\n";

    #[test]
    fn what_is_printed_is_read() {
        let line = "stress-ng: metrc: [42] fork               3818      2.00      1.04      0.96      1908.64        \
                    1915.64        49.82          2592\nstress-ng: info:  [42] successful run completed in 2.01s\n";
        assert_eq!(read(&format!("{HEAD}{line}")).unwrap(), (1908.64, vec![]));
        // As before 0.15: no column of its own for the kind of line, and fewer figures.
        let older = "stress-ng: info:  [42] fork  200  2.00  1.04  0.96  100.00  100.00\n\
                     stress-ng: warn:  [42] the clock is slow\n";
        assert_eq!(read(&format!("{HEAD}{older}")).unwrap(), (100.0, vec!["the clock is slow"]));
    }

    #[test]
    fn what_cannot_be_read_is_quoted_and_no_work_is_no_result() {
        let error = read(&format!("{HEAD}stress-ng: info:  [42] aborted\n")).unwrap_err().to_string();
        assert!(error.contains("metrics of `fork`") && error.contains("aborted"), "{error}");
        // What it says, and ends with status 0, where every fork fails.
        let none = "stress-ng: metrc: [42] fork  0  1.00  0.12  0.46  0.00  0.00  58.43  2508\n";
        let error = read(&format!("{HEAD}{none}")).unwrap_err().to_string();
        assert!(error.contains("made no process"), "{error}");
    }

    fn run(copies: u64, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
        let set = [("via", "stress-ng"), ("runtime", "1")].iter().chain(set);
        let set = set.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = Spawn.describe().params(&set)?;
        let mut trial = Trial::new(Point::from(copies), vec![0], 1);
        Spawn.check(&params, &trial)?;
        Spawn.run(&params, &mut trial)?;
        Ok(trial.into_outcome())
    }

    #[test]
    fn the_installed_one_is_run_and_read() {
        if on_path("stress-ng").is_none() {
            println!("skipped: stress-ng is not installed");
            return;
        }
        let Outcome::Done { samples, notes, .. } = run(2, &[]).unwrap() else { panic!("no result") };
        assert!(samples["rate"].len() == 1 && samples["rate"][0] > 0.0, "{samples:?}");
        assert!(notes[0].starts_with("measured by stress-ng, version 0."), "{notes:?}");
        assert!(notes[1].contains("figures of the same version only"), "{notes:?}");
    }

    #[test]
    fn what_it_has_no_counterpart_for_is_refused() {
        if on_path("stress-ng").is_none() {
            println!("skipped: stress-ng is not installed");
            return;
        }
        for (copies, key, value, why) in [
            (1, "runtime", "0.5", "whole seconds"),
            (1, "runtime", "1.5", "whole seconds"),
            (1, "batch", "2", "leave out `batch`"),
            (1, "semantics", "strict", "original semantics"),
            (8193, "warmup", "0", "at most 8192 copies"),
        ] {
            let error = run(copies, &[(key, value)]).unwrap_err();
            assert!(matches!(&error, Failure::Refused(said) if said.contains(why)), "{error}");
        }
    }
}
