//! What kduel itself costs: time per trial beside its work, with one task and with thousands, a report over a million
//! samples, the coordinator's memory. It prints figures and asserts nothing: `cargo bench -p kduel --bench harness`.

use experiment::{Outcome, Record, TrialRecord, Usage};
use journal::Home;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TRIALS: u32 = 600;
const LARGE_BLOCKS: u32 = 2_500;
const SAMPLES_PER_TRIAL: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::TempDir::new()?;
    overhead(home.path())?;
    tasks(home.path())?;
    large_report(home.path())?;
    Ok(())
}

/// Trials whose work is one lock operation, so that all of their time is the harness.
fn overhead(home: &Path) -> Result<(), Box<dyn Error>> {
    let blocks = (TRIALS / 3).to_string();
    let args = [
        "run",
        "global-lock",
        "--points",
        "1",
        "--set",
        "total=1",
        "--set",
        "settle=0",
        "-V",
        "a",
        "-V",
        "b:lock=ticket",
        "--blocks",
        &blocks,
        "--format",
        "csv",
    ];
    let (elapsed, peak_kib) = run(home, &args)?;
    let each_ms = trial_ms(home)?;
    let at = |share: f64| each_ms[((each_ms.len() - 1) as f64 * share) as usize];
    println!(
        "harness per trial, request to record:  median {:.2} ms, 95th percentile {:.2} ms",
        at(0.5),
        at(0.95)
    );
    let whole_ms = elapsed.as_secs_f64() * 1e3 / f64::from(TRIALS);
    println!(
        "harness per trial, whole run / trials: {whole_ms:.2} ms, journal, statistics and report included"
    );
    println!(
        "coordinator's peak memory:             {:.1} MB over {TRIALS} trials",
        peak_kib as f64 / 1024.0
    );
    Ok(())
}

/// How long the trials of the last run took, ascending.
fn trial_ms(home: &Path) -> Result<Vec<f64>, Box<dyn Error>> {
    let run = Home::at(home).read("latest")?;
    let trials = run.records.iter().filter_map(|record| match record {
        Record::Trial(trial) => Some(trial.elapsed_ns as f64 / 1e6),
        _ => None,
    });
    let mut each_ms: Vec<f64> = trials.collect();
    each_ms.sort_by(f64::total_cmp);
    Ok(each_ms)
}

/// Trials of a number of threads that each take a lock once, beside as many threads that only start and end.
fn tasks(home: &Path) -> Result<(), Box<dyn Error>> {
    println!("threads   trial, median   threads alone, median   difference");
    for count in [1, 64, 512, 4096] {
        let (points, total) = (count.to_string(), format!("total={count}"));
        let args = ["run", "global-lock", "--points", &points, "--set", &total, "--set", "settle=0"];
        let variants = ["-V", "a:lock=futex-3-state", "-V", "b:lock=pthread", "--blocks", "8"];
        run(home, &[&args[..], &variants].concat())?;
        let each_ms = trial_ms(home)?;
        let mut alone_ms =
            (0..each_ms.len()).map(|_| threads_alone(count)).collect::<Result<Vec<f64>, std::io::Error>>()?;
        alone_ms.sort_by(f64::total_cmp);
        let (trial, alone) = (each_ms[each_ms.len() / 2], alone_ms[alone_ms.len() / 2]);
        println!("{count:>7} {trial:>12.2} ms {alone:>20.2} ms {:>9.2} ms", trial - alone);
    }
    Ok(())
}

/// The milliseconds in which `count` threads start, meet at a barrier and end.
fn threads_alone(count: usize) -> Result<f64, std::io::Error> {
    let began = Instant::now();
    let barrier = std::sync::Barrier::new(count);
    std::thread::scope(|scope| {
        for _ in 0..count {
            std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, || barrier.wait())?;
        }
        Ok::<(), std::io::Error>(())
    })?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// A report over a journal with a million samples.
fn large_report(home: &Path) -> Result<(), Box<dyn Error>> {
    let small = Home::at(home).read("latest")?;
    let mut header = small.header.clone();
    header.run = "large".into();
    header.experiment.blocks = experiment::Blocks::Exactly(LARGE_BLOCKS);
    let mut journal = Home::at(home).create("large", &header)?;
    let mut noise = 1u64;
    let mut sample = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1.0 + (noise >> 40) as f64 / 1e9
    };
    let mut count = 0;
    for block in 1..=LARGE_BLOCKS {
        for (order, (variant, twin)) in
            [("a", false), ("a", true), ("b", false), ("b", true)].iter().enumerate()
        {
            if *variant == "b" && *twin {
                continue;
            }
            let mut samples = BTreeMap::new();
            // A third more samples, since a trial is left out for the twin that only the baseline has.
            let values: Vec<f64> = (0..SAMPLES_PER_TRIAL * 4 / 3 + 1).map(|_| sample()).collect();
            count += values.len();
            samples.insert("time".to_string(), values);
            journal.append(&Record::Trial(Box::new(TrialRecord {
                block,
                order: order as u32,
                workload: "global-lock".into(),
                point: 1.into(),
                variant: variant.to_string(),
                twin: *twin,
                at_unix_ms: 0,
                elapsed_ns: 1,
                outcome: Outcome::Done {
                    samples,
                    histograms: BTreeMap::new(),
                    counters: BTreeMap::new(),
                    evidence: Vec::new(),
                    notes: Vec::new(),
                },
                usage: Usage::default(),
                kernel_log: Vec::new(),
            })))?;
        }
    }
    journal.sync()?;
    for format in ["text", "json", "html"] {
        let (elapsed, peak_kib) = run(home, &["report", "large", "--format", format])?;
        println!(
            "report of {count} samples as {format:<5}         {:.2} s, peak {:.0} MB",
            elapsed.as_secs_f64(),
            peak_kib as f64 / 1024.0
        );
    }
    Ok(())
}

/// Runs kduel and gives its time and its largest resident set in KiB.
fn run(home: &Path, args: &[&str]) -> Result<(Duration, u64), Box<dyn Error>> {
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kduel"))
        .args(args)
        .env("KDUEL_HOME", home)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut peak_kib = 0;
    let status = loop {
        // The high-water mark is gone with the process, so it is read until then.
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    match status.success() {
        true => Ok((began.elapsed(), peak_kib)),
        false => Err(format!("kduel {args:?}: {status}").into()),
    }
}
