use crate::kduel;
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use tempfile::TempDir;

/// Whether kduel's verdicts on this machine are honest: two identical variants must not differ, and a planted
/// slow-down of 2 % must be found. A few minutes, on an otherwise idle machine.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Repeats of the duel with the planted slow-down
    #[arg(long, default_value_t = 20)]
    repeats: u32,
    /// The seed of the first duel; each further one takes the next
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The share of repeats in which the planted slow-down must be found.
const FOUND_SHARE: f64 = 0.9;

/// Work outside the lock whose length the planted slow-down raises from 1000 units to 1020.
const PLANTED: [&str; 4] = ["-V", "plain:think=1000", "-V", "slow:think=1020"];

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let kduel = kduel::build()?;
    let home = TempDir::new()?;
    let identical = identical(&kduel, home.path(), args.seed)?;
    let found = planted(&kduel, home.path(), args)?;
    Ok(if identical && found { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Two variants that differ in nothing, at twenty points.
fn identical(kduel: &Path, home: &Path, seed: u64) -> anyhow::Result<bool> {
    let report = duel(
        kduel,
        home,
        seed,
        &[
            "--points",
            "1-20",
            "--set",
            "total=200000",
            "-V",
            "one:lock=tas",
            "-V",
            "other:lock=tas",
            "--blocks",
            "20",
        ],
    )?;
    let verdicts = verdicts(&report, "other")?;
    let claims = verdicts.iter().filter(|verdict| matches!(verdict.as_str(), "better" | "worse")).count();
    let pairs = report["aa"]["pairs"].as_u64().context("the report has no A/A pairs")?;
    let fired = report["aa"]["fired"].as_u64().context("the report does not say how often A/A fired")?;
    let distrust = report["aa"]["distrust"].as_bool().context("the report does not judge A/A")?;
    println!("two identical variants at {} points, 20 blocks:", verdicts.len());
    println!("  better or worse at {claims}; family-wise, one at all is expected in 5 of 100 such runs");
    println!("  A/A fired on {fired} of {pairs} pairs; by chance it fires on 5 %");
    // The family is corrected as a whole, so even one wrong claim is rare; two would be a fault.
    Ok(claims <= 1 && !distrust)
}

fn planted(kduel: &Path, home: &Path, args: &Args) -> anyhow::Result<bool> {
    let mut found = 0;
    let mut estimates = Vec::new();
    for repeat in 0..args.repeats {
        let set = ["--points", "1", "--set", "total=4000", "--blocks", "20"];
        let report = duel(kduel, home, args.seed + 1 + u64::from(repeat), &[&set[..], &PLANTED].concat())?;
        found += usize::from(verdicts(&report, "slow")? == ["worse"]);
        estimates.extend(cell(&report, "slow").filter_map(|cell| cell["estimate"].as_f64()));
    }
    let percent: Vec<String> =
        estimates.iter().map(|estimate| format!("{:+.2}", (estimate - 1.0) * 100.0)).collect();
    println!("a planted slow-down of 2 %, 20 blocks: found in {found} of {} duels", args.repeats);
    println!("  estimates in percent: {}", percent.join(" "));
    Ok(found as f64 >= FOUND_SHARE * f64::from(args.repeats))
}

/// Runs global-lock and gives its report.
fn duel(kduel: &Path, home: &Path, seed: u64, args: &[&str]) -> anyhow::Result<Value> {
    let seed = seed.to_string();
    let common = ["global-lock", "--set", "settle=0.005", "--seed", &seed];
    kduel::duel(kduel, home, &[&common, args].concat())
}

/// The judged cells of a variant.
fn cell<'a>(report: &'a Value, variant: &str) -> impl Iterator<Item = &'a Value> {
    let cells = report["cells"].as_array().map(Vec::as_slice).unwrap_or_default();
    cells.iter().filter(move |cell| cell["variant"] == variant && cell["metric"] == "time")
}

fn verdicts(report: &Value, variant: &str) -> anyhow::Result<Vec<String>> {
    let verdicts: Vec<String> =
        cell(report, variant).filter_map(|cell| cell["verdict"].as_str().map(String::from)).collect();
    if verdicts.is_empty() {
        bail!("the report has no cell of {variant}");
    }
    Ok(verdicts)
}
