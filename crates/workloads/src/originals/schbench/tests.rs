//! schbench, played by a script that prints what each version prints.

use crate::alone::alone;
use crate::{Failure, Trial, Workload};
use experiment::{Outcome, Point};
use machine::Root;
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
    assert!(samples.keys().all(|name| described.iter().any(|metric| metric.name == *name)), "{samples:?}");
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
