use super::*;
use crate::alone::{alone, leaving_nothing, limit_tasks};
use experiment::Outcome;
use std::process::Command;

fn run(threads: u64, set: &[(&str, &str)]) -> Result<BTreeMap<String, Vec<f64>>, Failure> {
    let (params, mut trial) = trial(threads, set)?;
    Stream.run(&params, &mut trial)?;
    match trial.into_outcome() {
        Outcome::Done { samples, .. } => Ok(samples),
        missing => panic!("{missing:?}"),
    }
}

fn trial(threads: u64, set: &[(&str, &str)]) -> Result<(Params, Trial), Failure> {
    let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let cpus = machine::cpus::allowed().unwrap().to_vec();
    Ok((Stream.describe().params(&set)?, Trial::new(Point::from(threads), cpus, 1)))
}

fn small(threads: u64) -> Plan {
    let (params, trial) = trial(threads, &[("elements", "1003"), ("iterations", "3")]).unwrap();
    Plan::new(&params, &trial).unwrap()
}

#[test]
fn every_team_yields_all_rates_and_leaves_nothing() {
    alone("stream::tests::every_team_yields_all_rates_and_leaves_nothing", || {
        for threads in [1, 2, 5] {
            for semantics in ["original", "strict"] {
                for spin in ["0", "300000"] {
                    let set =
                        [("elements", "1003"), ("iterations", "3"), ("semantics", semantics), ("spin", spin)];
                    let samples = leaving_nothing(|| run(threads, &set).unwrap());
                    for metric in Stream.describe().metrics {
                        assert!(samples[&metric.name][0] > 0.0, "{} {set:?}", metric.name);
                    }
                    let (judged, average, worst) =
                        (samples["add"][0], samples["add-average"][0], samples["add-worst"][0]);
                    assert!(worst <= average && average <= judged);
                    assert!(semantics == "original" || judged == average);
                }
            }
        }
        // The longest run has to have numbers for its arrays.
        run(1, &[("elements", "1000"), ("iterations", "250"), ("pin", "on")]).unwrap();
        if cfg!(target_arch = "x86_64") {
            run(2, &[("elements", "1003"), ("non-temporal", "on")]).unwrap();
        }
    });
}

#[test]
fn a_round_that_was_left_out_fails_the_trial() {
    alone("stream::tests::a_round_that_was_left_out_fails_the_trial", || {
        for threads in [1, 3] {
            let plan = Plan { expected_iterations: 4, ..small(threads) };
            let error = leaving_nothing(|| team::run(&plan)).unwrap_err();
            assert!(matches!(error, Failure::Invariant(_)));
            assert!(error.to_string().contains("array a holds"), "{error}");
        }
    });
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    for threads in [0, 1_000_000_000] {
        assert!(run(threads, &[]).unwrap_err().to_string().contains("from 1 to 100000"));
    }
    assert!(run(1, &[("iterations", "1")]).is_err());
    let (params, huge) = trial(1, &[("elements", "1000000000000")]).unwrap();
    let error = Stream.check(&params, &huge).unwrap_err().to_string();
    assert!(error.contains("do not fit") && error.contains("22888183 MiB"), "{error}");
}

#[test]
fn m15_a_thread_that_cannot_start_releases_the_others() {
    alone("stream::tests::m15_a_thread_that_cannot_start_releases_the_others", || {
        let plan = small(12);
        if !limit_tasks(8) {
            return;
        }
        let result = leaving_nothing(|| team::run(&plan));
        assert!(matches!(result, Err(Failure::Spawn { nth: 2..=9, count: 12, .. })), "{result:?}");
    });
}

#[test]
fn a_cpu_that_cannot_be_used_fails_the_trial() {
    let plan = Plan { pinned_to: Some(vec![100_000]), ..small(2) };
    alone("stream::tests::a_cpu_that_cannot_be_used_fails_the_trial", || {
        assert!(matches!(leaving_nothing(|| team::run(&plan)), Err(Failure::Refused(_))));
    });
}

#[test]
fn blocks_are_called_after_the_rounds() {
    let set = BTreeMap::from([("iterations".to_string(), "100".to_string())]);
    let metric = |set| Stream.describe_for(set).metric("triad").cloned().unwrap();
    assert_eq!(metric(&set).test.unwrap(), "stream-100");
    assert_eq!(metric(&BTreeMap::new()).test.unwrap(), "stream-10");
}

#[test]
fn arrays_that_caches_could_hold_are_noted() {
    let plan = small(1);
    let (_, mut trial) = trial(1, &[]).unwrap();
    plan.note_small_arrays(&mut trial);
    let known = machine::last_level_cache_bytes(&Root::real(), trial.cpus()).is_some();
    let Outcome::Done { notes, .. } = trial.into_outcome() else { panic!("no outcome") };
    assert_eq!(notes.iter().any(|note| note.contains("and there are 1003")), known, "{notes:?}");
}

/// The instructions of each function whose name contains `name`, as `rustc -O` compiles the file of the kernels.
fn assembly(assembly: &str, name: &str) -> Vec<String> {
    let mut functions = Vec::new();
    let mut body: Option<String> = None;
    for line in assembly.lines().map(str::trim) {
        if line.ends_with(':') && !line.starts_with('.') {
            body = line.contains(name).then(String::new);
        } else if line.starts_with(".size") {
            functions.extend(body.take());
        } else if let Some(body) = &mut body {
            body.push_str(line);
            body.push('\n');
        }
    }
    functions
}

#[test]
fn the_loops_call_nothing_and_store_past_the_caches_only_where_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("kernels.s");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/stream/kernels.rs");
    let rustc = Command::new(option_env!("RUSTC").unwrap_or("rustc"))
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "-Copt-level=3",
            "-Csymbol-mangling-version=v0",
            "--emit=asm",
        ])
        .arg("-o")
        .arg(&output)
        .arg(source)
        .status();
    if !rustc.is_ok_and(|status| status.success()) {
        println!("skipped: there is no rustc to compile {source}");
        return;
    }
    let text = std::fs::read_to_string(output).unwrap();
    let bad = |body: &str| {
        let operations = body.lines().filter_map(|line| line.split_whitespace().next());
        // Several elements at once, non-temporal stores of x86 (movnti, movntpd, ...) and of ARM (stnp), and calls.
        let mut operations = operations.filter(|operation| {
            let packed = operation.ends_with("pd") || operation.ends_with("ps");
            packed
                || operation.contains("movnt")
                || ["stnp", "call", "callq", "bl", "blr"].contains(operation)
        });
        operations.next().is_some() || body.contains("mem")
    };
    for kernel in Kernel::ALL {
        let name = kernel.metric();
        let plain = assembly(&text, &format!("{name}NtB2_13ThroughCaches"));
        assert_eq!(plain.len(), 1, "{name}");
        assert!(plain[0].lines().count() > 5 && !bad(&plain[0]), "{name}:\n{}", plain[0]);
        if cfg!(target_arch = "x86_64") {
            let past = assembly(&text, &format!("{name}NtB2_10PastCaches"));
            assert_eq!(past.len(), 1, "{name}");
            assert!(past[0].contains("movnti") && past[0].contains("sfence"), "{name}:\n{}", past[0]);
        }
    }
}
