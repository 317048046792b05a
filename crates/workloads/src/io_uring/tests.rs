//! io-uring through its public interface, and with its work broken.

use super::*;
use crate::alone::{alone, leaving_nothing, limit_tasks};
use crate::originals::on_path;
use experiment::{Outcome, Point};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fs;
use std::io::Write;

fn params(set: &[(&str, &str)]) -> Result<Params, Failure> {
    let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Ok(IoUring.describe().params(&set)?)
}

fn outcome(threads: u64, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
    let params = params(set)?;
    let mut trial = Trial::new(Point::from(threads), vec![0], 1);
    IoUring.check(&params, &trial)?;
    IoUring.run(&params, &mut trial)?;
    Ok(trial.into_outcome())
}

/// Whether this machine has io_uring at all.
fn no_uring() -> bool {
    let plan = Plan::new(&params(&[]).unwrap(), &Trial::new(Point::from(1), vec![0], 1)).unwrap();
    let refused = conduct::try_out(&plan, &Target::Nop).err();
    if let Some(error) = &refused {
        println!("skipped: {error}");
    }
    refused.is_some()
}

const SHORT: (&str, &str) = ("runtime", "0.03");
/// Long enough for a busy machine to complete something that was begun in it.
const LONGER: (&str, &str) = ("runtime", "0.3");

fn runtime_for(more: (&str, &str)) -> (&'static str, &'static str) {
    if more.0 == "latency" { LONGER } else { SHORT }
}

#[test]
fn every_way_of_doing_nothing_adds_up_and_leaves_nothing() {
    alone("io_uring::tests::every_way_of_doing_nothing_adds_up_and_leaves_nothing", || {
        if no_uring() {
            return;
        }
        for more in [
            ("semantics", "strict"),
            ("warmup", "0.02"),
            ("polled", "on"),
            ("latency", "on"),
            ("registered-ring", "off"),
            ("depth", "1"),
            ("submit", "500"),
            ("complete", "500"),
            ("fixed-buffers", "off"),
        ] {
            let outcome = leaving_nothing(|| outcome(2, &[runtime_for(more), more]).unwrap());
            let Outcome::Done { samples, histograms, counters, .. } = outcome else { panic!("missing") };
            assert!(samples.contains_key("iops") && samples.contains_key("ios-per-call"), "{more:?}");
            // At both ends of the time up to `depth` operations of each thread are under way.
            assert!((counters["submitted"] - counters["completed"]).abs() <= 512.0, "{more:?}");
            assert!(!samples.contains_key("bandwidth"));
            assert_eq!(samples.contains_key("latency-p99"), more.0 == "latency");
            assert_eq!(histograms.contains_key("latency"), more.0 == "latency");
        }
    });
}

#[test]
fn every_way_of_reading_adds_up_and_leaves_nothing() {
    alone("io_uring::tests::every_way_of_reading_adds_up_and_leaves_nothing", || {
        if no_uring() {
            return;
        }
        // A directory of its own, as others use the usual one meanwhile.
        let place = tempfile::tempdir().unwrap();
        // SAFETY: this test has a process to itself, with a single thread.
        unsafe { std::env::set_var("TMPDIR", place.path()) };
        for more in [
            ("semantics", "strict"),
            ("random", "off"),
            ("fixed-buffers", "off"),
            ("registered-files", "off"),
            ("latency", "on"),
            ("bs", "65536"),
            ("depth", "3"),
        ] {
            // Not every file system of temporary files has O_DIRECT.
            let set = [runtime_for(more), ("target", "auto"), ("size", "1"), ("direct", "off"), more];
            let outcome = leaving_nothing(|| outcome(2, &set).unwrap());
            let Outcome::Done { samples, .. } = outcome else { panic!("missing") };
            assert!(samples.contains_key("bandwidth"), "{more:?}");
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        place.close().unwrap();
        let error = outcome(1, &[SHORT, ("target", "auto")]).unwrap_err().to_string();
        assert!(error.contains("no temporary file") && error.contains("set TMPDIR"), "{error}");
    });
}

#[test]
fn reads_bring_what_the_file_holds_and_end_with_their_ring() {
    if no_uring() {
        return;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for block in 0..8_u8 {
        file.write_all(&[block + 1; 4096]).unwrap();
    }
    let path = file.path().to_str().unwrap();
    for fixed in ["on", "off"] {
        let set = [
            ("target", path),
            ("direct", "off"),
            ("random", "off"),
            ("depth", "8"),
            ("submit", "8"),
            ("semantics", "strict"),
            ("fixed-buffers", fixed),
        ];
        let plan = Plan::new(&params(&set).unwrap(), &Trial::new(Point::from(1), vec![0], 1)).unwrap();
        let target = Target::open(&plan.target, None).unwrap();
        let mut ring = ring::Ring::new(&plan, &target).unwrap();
        let once = (&work::Progress::default(), &std::sync::atomic::AtomicBool::new(true));
        work::until_stopped(&mut ring, &plan, &target, 0, once, 0).unwrap();
        for block in 0..8_usize {
            // SAFETY: the buffer has `bs` bytes, and no operation is in flight any more.
            let found = unsafe { std::slice::from_raw_parts(ring.buffer(block), 4096) };
            assert!(found.iter().all(|byte| usize::from(*byte) == block + 1), "block {block}");
        }
    }
}

#[test]
fn an_operation_with_another_result_fails_the_trial() {
    if no_uring() {
        return;
    }
    for semantics in ["original", "strict"] {
        let trial = Trial::new(Point::from(2), vec![0], 1);
        let set = [SHORT, ("semantics", semantics)];
        let plan = Plan { expected: 1, ..Plan::new(&params(&set).unwrap(), &trial).unwrap() };
        let error = conduct::run(&plan, &Target::Nop).unwrap_err();
        assert!(matches!(&error, Failure::Invariant(text) if text.contains("returned 0")), "{error}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(4096).unwrap();
    let set = [SHORT, ("target", file.path().to_str().unwrap()), ("direct", "off")];
    let plan = Plan::new(&params(&set).unwrap(), &Trial::new(Point::from(1), vec![0], 1)).unwrap();
    let target = Target::open(&plan.target, None).unwrap();
    // A file that becomes shorter meanwhile.
    file.as_file().set_len(100).unwrap();
    let error = conduct::run(&plan, &target).unwrap_err();
    assert!(matches!(&error, Failure::Invariant(text) if text.contains("100 of 4096 bytes")), "{error}");
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    alone("io_uring::tests::what_cannot_be_is_refused_and_leaves_nothing", || {
        if no_uring() {
            return;
        }
        for threads in [0, 10_001] {
            let params = params(&[]).unwrap();
            let error = IoUring.run(&params, &mut Trial::new(Point::from(threads), vec![0], 1)).unwrap_err();
            assert!(error.to_string().contains("from 1 to 10000"), "{error}");
        }
        let small = tempfile::NamedTempFile::new().unwrap();
        let small = small.path().to_str().unwrap();
        for (set, said) in [
            (vec![("target", "/nowhere/at/all")], "/nowhere/at/all cannot be opened"),
            (vec![("target", "/tmp")], "is a directory"),
            (vec![("target", "/dev/null")], "is no file that has blocks"),
            (vec![("target", small), ("direct", "off")], "has 0 bytes"),
            (vec![("target", "auto"), ("polled", "on"), ("direct", "off")], "set polled=off"),
            (vec![("depth", "20000")], "fixed-buffers=off"),
            (vec![("target", "auto"), ("size", "1"), ("bs", "2000000")], "take a larger size"),
            (vec![("target", "auto"), ("depth", "16000"), ("bs", "1000000")], "is the most"),
            (vec![("via", "fio")], "no operations that do nothing"),
        ] {
            if set[0].0 == "via" && on_path("fio").is_none() {
                continue;
            }
            let error = leaving_nothing(|| outcome(1, &set)).unwrap_err().to_string();
            assert!(error.contains(said), "{set:?}: {error}");
        }
        if !limit_tasks(8) {
            return;
        }
        let error = leaving_nothing(|| outcome(64, &[SHORT])).unwrap_err().to_string();
        assert!(error.contains("64"), "{error}");
        setrlimit(Resource::Memlock, Rlimit { current: Some(1 << 16), maximum: Some(1 << 16) }).unwrap();
        let error =
            leaving_nothing(|| outcome(1, &[SHORT, ("target", "auto"), ("direct", "off")])).unwrap_err();
        assert!(error.to_string().contains("RLIMIT_MEMLOCK"), "{error}");
    });
}

#[test]
fn metrics_follow_the_parameters() {
    let names = |set: &[(&str, &str)]| -> Vec<String> {
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        IoUring.describe_for(&set).metrics.into_iter().map(|metric| metric.name).collect()
    };
    assert_eq!(names(&[]), ["iops", "best-second", "ios-per-call"]);
    assert!(names(&[("target", "auto")]).contains(&"bandwidth".to_string()));
    assert!(names(&[("latency", "on")]).contains(&"latency-p99.9".to_string()));
}

#[test]
fn fio_is_run_and_read() {
    if on_path("fio").is_none() || no_uring() {
        println!("skipped: fio is not installed, or there is no io_uring");
        return;
    }
    let set = [
        ("via", "fio"),
        ("target", "auto"),
        ("size", "1"),
        ("direct", "off"),
        ("latency", "on"),
        ("runtime", "0.1"),
    ];
    let Outcome::Done { samples, notes, .. } = outcome(2, &set).unwrap() else { panic!("missing") };
    assert!(samples["iops"][0] > 0.0 && samples["bandwidth"][0] > 0.0);
    assert!(samples["latency-p50"][0] <= samples["latency-p99.9"][0]);
    assert!(notes[0].starts_with("measured by fio-"), "{notes:?}");
}
