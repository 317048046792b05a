//! schbench of its author: versions until 2023-04, which print one table of latencies, and those since, which print three.

use super::{Original, Program, decimal, unread};
use crate::schbench::latencies::{Figure, What};
use crate::schbench::{new, old};
use crate::shared::warmup;
use crate::{Failure, Trial};
use experiment::Params;
use machine::{Root, cpus};
use regex::Regex;

/// Runs a schbench until 2023-04, and leaves what it printed.
///
/// # Errors
/// When it is not there or a newer one, and when what it prints is no result.
pub fn run_old(params: &Params, trial: &mut Trial) -> Result<(), Failure> {
    let text = run(&old_arguments(params, trial)?, trial)?;
    let page = Page::read(&text)?;
    if page.table("Wakeup Latencies").is_some() {
        return Err(Failure::Refused(
            "the schbench on PATH is one of 2023-04 or later; build an older one, such as e4aa540, and put it first on \
             PATH, or take the workload schbench"
                .into(),
        ));
    }
    let table = page.wanted("Latency")?;
    page.leave("Latency", named(&old::FIGURES, ""), trial)?;
    match table.samples {
        Some(samples) => trial.sample("rps", samples as f64 / params.decimal("runtime")?),
        None => Ok(()),
    }
}

/// Runs a schbench of 2023-04 or later, and leaves what it printed.
///
/// # Errors
/// When it is not there or an older one, and when what it prints is no result.
pub fn run_new(params: &Params, trial: &mut Trial) -> Result<(), Failure> {
    let text = run(&new_arguments(params, trial)?, trial)?;
    let page = Page::read(&text)?;
    if page.table("Latency").is_some() {
        return Err(Failure::Refused(
            "the schbench on PATH is one of before 2023-04; build a newer one and put it first on PATH, or take the \
             workload schbench-old"
                .into(),
        ));
    }
    page.leave("Wakeup Latencies", named(&new::FIGURES, new::WAKEUP), trial)?;
    if params.count("pipe")? > 0 {
        let per_s = page
            .number(r"^avg worker transfer: ([0-9.]+) ops/sec")?
            .ok_or_else(|| unread("schbench", "transfers", &text))?;
        trial.sample("transfers", per_s)?;
        return trial.sample("bandwidth", per_s * params.decimal("pipe")? / crate::schbench::GIB);
    }
    if page.table("Request Latencies").is_some() {
        page.leave("Request Latencies", named(&new::FIGURES, new::REQUEST), trial)?;
    }
    page.leave("RPS", new::RPS_FIGURES.map(|(name, what)| (name.into(), what)), trial)?;
    for (name, pattern) in [
        ("rps-average", r"^average rps: ([0-9.]+)"),
        ("rps-goal", r"^final rps goal was ([0-9.]+)"),
        ("message-delay", r"^sched delay: message ([0-9]+) "),
        ("worker-delay", r"^sched delay: .* worker ([0-9]+) "),
    ] {
        if let Some(value) = page.number(pattern)? {
            trial.sample(name, value)?;
        }
    }
    Ok(())
}

fn run(arguments: &[String], trial: &mut Trial) -> Result<String, Failure> {
    let program: Program = Original::SCHBENCH.find()?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let printed = program.run_aloud(&arguments)?;
    // No version of it says which it is.
    trial.note(format!("measured by `{} {}`", program.path().display(), arguments.join(" ")));
    Ok(format!("{}\n{}", printed.stdout, printed.stderr))
}

/// The arguments for a schbench until 2023-04.
///
/// # Errors
/// When a parameter has no counterpart there.
pub fn old_arguments(params: &Params, trial: &Trial) -> Result<Vec<String>, Failure> {
    let mut arguments = common_arguments(params, trial.count()?)?;
    let [rps, auto_rps, pipe] = ["rps", "auto-rps", "pipe"].map(|name| params.count(name));
    if (rps? > 0 || auto_rps? > 0 || pipe? > 0) && !warmup(params)?.is_zero() {
        return Err(Failure::Refused(
            "this schbench does not warm up with `rps`, `auto-rps` or `pipe`; add warmup=0, or take via=kduel".into(),
        ));
    }
    arguments.push(format!("-w{}", warmup(params)?.as_secs()));
    if params.count("pipe")? == 0 {
        arguments.push(format!("-s{}", params.count("sleeptime-us")?));
        arguments.push(format!("-c{}", params.count("cputime-us")?));
    }
    if params.flag("jitter")? {
        arguments.push("-j".into());
    }
    Ok(arguments)
}

/// The arguments for a schbench of 2023-04 or later.
///
/// # Errors
/// When a parameter has no counterpart there.
pub fn new_arguments(params: &Params, trial: &Trial) -> Result<Vec<String>, Failure> {
    let mut arguments = common_arguments(params, trial.count()?)?;
    let warmup_s = warmup(params)?.as_secs();
    if warmup_s > 0 {
        if params.decimal("runtime")? + (warmup_s as f64) < 30.0 {
            return Err(Failure::Refused(
                "schbench does not warm up if warmup and runtime are less than 30 s together; take more, warmup=0, or \
                 via=kduel"
                    .into(),
            ));
        }
        arguments.push(format!("-w{warmup_s}"));
    }
    if params.flag("touch")? {
        return Err(Failure::Refused(
            "schbench does not write its matrices; leave out `touch`, or take via=kduel".into(),
        ));
    }
    if params.text("slice")? != "off" {
        return Err(Failure::Refused(
            "schbench knows nothing of the time slice extension; leave out `slice`, or take via=kduel".into(),
        ));
    }
    for (option, name) in [("-F", "cache-footprint-kb"), ("-n", "operations"), ("-s", "sleep-us")] {
        arguments.push(format!("{option}{}", params.count(name)?));
    }
    if !params.flag("locking")? {
        arguments.push("-L".into());
    }
    if params.flag("calibrate")? {
        arguments.push("-C".into());
    }
    if params.count("split")? != 100 {
        arguments.push(format!("--split={}", params.count("split")?));
    }
    for (option, name) in [("-M", "message-cpus"), ("-W", "worker-cpus")] {
        match params.text(name)? {
            "" => {}
            "auto" if !uses_all_cpus(trial)? => {
                return Err(Failure::Refused(format!(
                    "schbench's {name}=auto takes all CPUs, and this trial may not use all; leave out `cpus`, or name \
                     the CPUs"
                )));
            }
            list => arguments.push(format!("{option}{list}")),
        }
    }
    Ok(arguments)
}

fn uses_all_cpus(trial: &Trial) -> Result<bool, Failure> {
    let online = cpus::online(&Root::real()).map_err(|error| Failure::Refused(error.to_string()))?;
    Ok(online.to_vec() == trial.cpus())
}

/// The arguments that both take. Its run time has the warm-up in it.
fn common_arguments(params: &Params, workers: u64) -> Result<Vec<String>, Failure> {
    let (runtime_s, warmup_s) = (params.decimal("runtime")?, warmup(params)?.as_secs_f64());
    if runtime_s.fract() != 0.0 || warmup_s.fract() != 0.0 || runtime_s < 1.0 {
        return Err(Failure::Refused(format!(
            "schbench takes whole seconds, and runtime={runtime_s} warmup={warmup_s} are not; change them, or take \
             via=kduel"
        )));
    }
    let mut arguments = vec![
        format!("-m{}", params.count("message-threads")?),
        format!("-t{workers}"),
        format!("-r{}", runtime_s + warmup_s),
    ];
    for (option, name) in [("-R", "rps"), ("-A", "auto-rps"), ("-p", "pipe")] {
        match params.count(name)? {
            0 => {}
            value => arguments.push(format!("{option}{value}")),
        }
    }
    Ok(arguments)
}

/// What it printed: the last table of each title, since it prints them again every ten seconds.
struct Page<'a> {
    text: &'a str,
    tables: Vec<(String, Table)>,
}

/// A table of percentiles.
#[derive(Debug, Default, Clone, PartialEq)]
struct Table {
    /// How many values went into it; older versions do not say.
    samples: Option<u64>,
    percentiles: Vec<(f64, u64)>,
    range: Option<(u64, u64)>,
}

impl<'a> Page<'a> {
    fn read(text: &'a str) -> Result<Page<'a>, Failure> {
        let title = pattern(r"^(.*\S) percentiles \(\w+\)(?:.*\((\d+) total samples\))?")?;
        let row = pattern(r"^[\s*]*(\d+(?:\.\d+)?)th: *(\d+)")?;
        let range = pattern(r"^\s*min=(\d+), *max=(\d+)")?;
        let mut tables: Vec<(String, Table)> = Vec::new();
        for line in text.lines() {
            if let Some(found) = title.captures(line) {
                let samples = found.get(2).and_then(|samples| samples.as_str().parse().ok());
                tables.push((found[1].into(), Table { samples, ..Table::default() }));
            }
            let Some((_, table)) = tables.last_mut() else { continue };
            if let Some(found) = row.captures(line)
                && let (Some(percent), Ok(value)) = (decimal(&found[1]), found[2].parse())
            {
                table.percentiles.push((percent, value));
            } else if let Some(found) = range.captures(line)
                && let (Ok(least), Ok(most)) = (found[1].parse(), found[2].parse())
            {
                table.range = Some((least, most));
            }
        }
        Ok(Page { text, tables })
    }

    fn table(&self, title: &str) -> Option<&Table> {
        self.tables.iter().rev().find(|(own, _)| own == title).map(|(_, table)| table)
    }

    fn wanted(&self, title: &str) -> Result<&Table, Failure> {
        self.table(title)
            .filter(|table| !table.percentiles.is_empty())
            .ok_or_else(|| unread("schbench", title, self.text))
    }

    /// Leaves those of `figures` that the table has. The first is judged, and must be there.
    fn leave(
        &self,
        title: &str,
        figures: impl IntoIterator<Item = (String, What)>,
        trial: &mut Trial,
    ) -> Result<(), Failure> {
        let table = self.wanted(title)?;
        for (place, (name, what)) in figures.into_iter().enumerate() {
            match table.value(what) {
                Some(value) => trial.sample(&name, value as f64)?,
                None if place == 0 => return Err(unread("schbench", &name, self.text)),
                None => {}
            }
        }
        Ok(())
    }

    /// The number in the last line that fits the pattern.
    fn number(&self, text: &str) -> Result<Option<f64>, Failure> {
        let pattern = pattern(text)?;
        Ok(self.text.lines().rev().find_map(|line| decimal(&pattern.captures(line)?[1])))
    }
}

impl Table {
    fn value(&self, what: What) -> Option<u64> {
        match what {
            What::Percentile(percent) => {
                let of = |(own, value): &(f64, u64)| ((own - percent).abs() < 1e-6).then_some(*value);
                self.percentiles.iter().find_map(of)
            }
            What::Least => Some(self.range?.0),
            What::Most => Some(self.range?.1),
        }
    }
}

/// `figures` with the names of their metrics.
fn named(figures: &[Figure], prefix: &str) -> impl Iterator<Item = (String, What)> {
    figures.iter().map(move |figure| (format!("{prefix}{}", figure.name), figure.what))
}

fn pattern(text: &str) -> Result<Regex, Failure> {
    Regex::new(text).map_err(|error| Failure::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use crate::alone::alone;
    use experiment::{Outcome, Point};
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const OLD_2016: &str = "Latency percentiles (usec)\n\t50.0000th: 83\n\t75.0000th: 102\n\t90.0000th: 109\n\
                            \t95.0000th: 114\n\t*99.0000th: 450\n\t99.5000th: 723\n\t99.9000th: 985\n\
                            \tmin=0, max=1067\n";
    const OLD_2021: &str = "warmup done, zeroing stats\n\
                            Latency percentiles (usec) runtime 10 (s) (3 total samples)\n\
                            \t  50.0th: 1          (2 samples)\n\t* 99.0th: 2          (1 samples)\n\
                            \t  min=1, max=2\n\
                            Latency percentiles (usec) runtime 30 (s) (4000 total samples)\n\
                            \t  50.0th: 77         (2473 samples)\n\t  75.0th: 8056       (1234 samples)\n\
                            \t  90.0th: 14160      (735 samples)\n\t  95.0th: 15824      (247 samples)\n\
                            \t* 99.0th: 24736      (193 samples)\n\t  99.5th: 28000      (24 samples)\n\
                            \t  99.9th: 32032      (22 samples)\n\t  min=3, max=39652\n";
    const NEW: &str = "Wakeup Latencies percentiles (usec) runtime 10 (s) (9 total samples)\n\
                       \t  50.0th: 1          (5 samples)\n\t* 99.0th: 2          (4 samples)\n\
                       \t  min=1, max=2\ncurrent rps: 1.00\n\
                       Wakeup Latencies percentiles (usec) runtime 30 (s) (30212 total samples)\n\
                       \t  50.0th: 7          (7806 samples)\n\t  90.0th: 18         (8649 samples)\n\
                       \t* 99.0th: 175        (2590 samples)\n\t  99.9th: 909        (271 samples)\n\
                       \t  min=1, max=10224\n\
                       Request Latencies percentiles (usec) runtime 30 (s) (30246 total samples)\n\
                       \t  50.0th: 16864      (10050 samples)\n\t  90.0th: 16992      (12843 samples)\n\
                       \t* 99.0th: 17248      (616 samples)\n\t  99.9th: 19872      (261 samples)\n\
                       \t  min=9243, max=27964\n\
                       RPS percentiles (requests) runtime 30 (s) (31 total samples)\n\
                       \t  20.0th: 3012       (7 samples)\n\t* 50.0th: 3020       (12 samples)\n\
                       \t  90.0th: 3028       (9 samples)\n\t  min=0, max=3031\n\
                       sched delay: message 12 (usec) worker 345 (usec)\naverage rps: 3024.60\n";
    const NEW_PIPE: &str = "Wakeup Latencies percentiles (usec) runtime 30 (s) (2631154 total samples)\n\
                            \t  20.0th: 6          (807309 samples)\n\t  50.0th: 7          (1729909 samples)\n\
                            \t  90.0th: 7          (0 samples)\n\t* 99.0th: 8          (71575 samples)\n\
                            \t  99.9th: 14         (20272 samples)\n\t  min=1, max=562\n\
                            avg worker transfer: 21924.84 ops/sec 1.34GB/s\n";

    /// Runs a workload by a program on PATH that prints `text` and leaves its arguments; returns these, too.
    fn by_fake(
        text: &str,
        workload: &str,
        set: &[(&str, &str)],
    ) -> Result<(BTreeMap<String, f64>, String), Failure> {
        let place = tempfile::tempdir().unwrap();
        let [program, output, arguments] =
            ["schbench", "output", "arguments"].map(|name| place.path().join(name));
        fs::write(&output, text).unwrap();
        let script =
            format!("#!/bin/sh\necho \"$@\" > {}\n/bin/cat {} >&2\n", arguments.display(), output.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        // SAFETY: `alone` gave this test a process with no other thread of ours.
        unsafe { std::env::set_var("PATH", place.path()) };

        let workload: &dyn Workload = crate::find(workload).unwrap();
        let mut all: BTreeMap<String, String> =
            set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        all.insert("via".into(), "schbench".into());
        let params = workload.describe().params(&all)?;
        let cpus = machine::cpus::online(&Root::real()).unwrap().to_vec();
        let mut trial = Trial::new(Point::from(4), cpus, 1);
        workload.check(&params, &trial)?;
        workload.run(&params, &mut trial)?;
        let Outcome::Done { samples, notes, .. } = trial.into_outcome() else { panic!("missing") };
        assert!(notes[0].starts_with("measured by `/"), "{notes:?}");
        let described = workload.describe_for(&all).metrics;
        assert!(
            samples.keys().all(|name| described.iter().any(|metric| metric.name == *name)),
            "{samples:?}"
        );
        let samples = samples.into_iter().map(|(name, values)| (name, values[0])).collect();
        Ok((samples, fs::read_to_string(&arguments).unwrap().trim().into()))
    }

    #[test]
    fn old_versions_are_run_and_read() {
        alone("originals::schbench::tests::old_versions_are_run_and_read", || {
            let (samples, arguments) = by_fake(OLD_2016, "schbench-old", &[]).unwrap();
            assert_eq!(arguments, "-m2 -t4 -r30 -w5 -s30000 -c30000");
            assert_eq!((samples["p50"], samples["p99"], samples["p99.5"]), (83.0, 450.0, 723.0));
            assert_eq!((samples["min"], samples["max"], samples.get("rps")), (0.0, 1067.0, None));

            let set = [("jitter", "on"), ("cputime-us", "5"), ("message-threads", "1"), ("warmup", "0")];
            let (samples, arguments) = by_fake(OLD_2021, "schbench-old", &set).unwrap();
            assert_eq!(arguments, "-m1 -t4 -r25 -w0 -s30000 -c5 -j");
            // The last of its tables, not the one after ten seconds.
            assert_eq!((samples["p99"], samples["p99.9"], samples["rps"]), (24736.0, 32032.0, 160.0));
        });
    }

    #[test]
    fn new_versions_are_run_and_read() {
        alone("originals::schbench::tests::new_versions_are_run_and_read", || {
            let (samples, arguments) = by_fake(NEW, "schbench", &[]).unwrap();
            assert_eq!(arguments, "-m2 -t4 -r30 -F256 -n5 -s100");
            assert_eq!((samples["rps"], samples["rps-p20"], samples["rps-p90"]), (3020.0, 3012.0, 3028.0));
            assert_eq!((samples["rps-min"], samples["rps-average"]), (0.0, 3024.6));
            assert_eq!((samples["wakeup-p99"], samples["wakeup-max"]), (175.0, 10224.0));
            assert_eq!((samples["request-p99"], samples["request-p99.9"]), (17248.0, 19872.0));
            assert_eq!((samples["message-delay"], samples["worker-delay"]), (12.0, 345.0));

            let more = [
                ("locking", "off"),
                ("calibrate", "on"),
                ("split", "40"),
                ("message-cpus", "0"),
                ("worker-cpus", "auto"),
                ("auto-rps", "50"),
            ];
            let output = format!("{NEW}final rps goal was 4000\n");
            let (samples, arguments) = by_fake(&output, "schbench", &more).unwrap();
            assert_eq!(arguments, "-m2 -t4 -r30 -A50 -F256 -n5 -s100 -L -C --split=40 -M0 -Wauto");
            assert_eq!(samples["rps-goal"], 4000.0);

            let (samples, arguments) = by_fake(NEW_PIPE, "schbench", &[("pipe", "65536")]).unwrap();
            assert!(arguments.contains(" -p65536 "), "{arguments}");
            assert_eq!((samples["transfers"], samples["wakeup-p99"]), (21924.84, 8.0));
            assert!((samples["bandwidth"] - 1.338).abs() < 0.001, "{samples:?}");
        });
    }

    #[test]
    fn the_wrong_version_and_what_is_no_result_are_named() {
        alone("originals::schbench::tests::the_wrong_version_and_what_is_no_result_are_named", || {
            for (text, workload, part) in [
                (NEW, "schbench-old", "is one of 2023-04 or later"),
                (OLD_2021, "schbench", "is one of before 2023-04"),
                ("Segmentation fault\n", "schbench", "Segmentation fault"),
                ("Latency percentiles (usec)\n\t  min=0, max=0\n", "schbench-old", "min=0, max=0"),
                (&OLD_2021.replace("99.0th", "98.0th"), "schbench-old", "(p99)"),
                (&NEW.replace("50.0th: 3020", "51.0th: 3020"), "schbench", "(rps)"),
                ("", "schbench-old", "nothing"),
            ] {
                let error = by_fake(text, workload, &[]).unwrap_err().to_string();
                assert!(error.contains(part), "{error}");
            }
        });
    }

    #[test]
    fn a_missing_original_is_told_before_the_first_trial() {
        alone("originals::schbench::tests::a_missing_original_is_told_before_the_first_trial", || {
            // SAFETY: `alone` gave this test a process with no other thread of ours.
            unsafe { std::env::set_var("PATH", "/nowhere") };
            for name in ["schbench", "schbench-old"] {
                let workload = crate::find(name).unwrap();
                let set = BTreeMap::from([("via".into(), "schbench".into())]);
                let params = workload.describe().params(&set).unwrap();
                let error = workload.check(&params, &Trial::new(Point::from(1), vec![0], 1)).unwrap_err();
                assert!(error.to_string().contains("schbench is not on PATH"), "{error}");
            }
        });
    }
}
