mod page;
mod pairs;

use crate::{kduel, packages};
use anyhow::{Context as _, ensure};
use pairs::{PAIRS, Pair};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tempfile::TempDir;

/// Whether kduel's own workloads measure what the originals measure: duels each against the installed original and
/// writes `docs/parity.md`. As root it installs the originals that Debian has. About half an hour, on an otherwise
/// idle machine.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only pairs whose name holds this text; the others keep what was measured before
    #[arg(long)]
    only: Option<String>,
    /// Where the page goes, and beside it, as .json, what it was made from
    #[arg(long)]
    page: Option<PathBuf>,
}

/// The margin inside which two implementations count as the same, in percent.
const MARGIN_PCT: f64 = 5.0;
/// The margin where the original itself is steady.
const STEADY_MARGIN_PCT: f64 = 3.0;
/// What steady means: a coefficient of variation below this, in percent.
const STEADY_CV_PCT: f64 = 2.0;

const OURS_BETTER: &str = "ours better";

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let kduel = kduel::build()?;
    let wanted = |pair: &&Pair| args.only.as_ref().is_none_or(|text| pair.name().contains(text));
    let pairs: Vec<&Pair> = PAIRS.iter().filter(wanted).collect();
    ensure!(!pairs.is_empty(), "no pair's name holds `{}`", args.only.as_deref().unwrap_or_default());
    for package in packages::bring(pairs.iter().filter_map(|pair| pair.package)) {
        println!("{package} is not installed and could not be; its duels are left out");
    }
    let home = TempDir::new()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let page = args.page.clone().unwrap_or_else(|| root.join("docs/parity.md"));
    let data = page.with_extension("json");
    let mut results = kept(&data)?;
    for pair in pairs {
        let result = contest(&kduel, home.path(), pair).map_err(|error| format!("{error:#}"));
        match &result {
            Ok(contest) => {
                contest.cells.iter().for_each(|cell| println!("{}: {}", pair.name(), cell.in_words()))
            }
            Err(error) => println!("{}: not run: {error}", pair.name()),
        }
        results.insert(pair.command(), result);
        // After each, so that nothing is lost should it be stopped.
        write(&data, &serde_json::to_string_pretty(&results)?)?;
        write(&page, &page::page(&in_order(&results)))?;
    }
    let holds = |(pair, result): &(&Pair, &Outcome)| match result {
        Ok(contest) => contest.cells.iter().all(|cell| cell.holds(pair.reason)),
        Err(_) => pair.package.is_none(),
    };
    Ok(if in_order(&results).iter().all(holds) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// What became of a pair: figures, or why there are none.
type Outcome = Result<Contest, String>;

/// Outcomes by the command that measured them.
type Outcomes = BTreeMap<String, Outcome>;

/// What was measured before, by commands that pairs still have.
fn kept(data: &Path) -> anyhow::Result<Outcomes> {
    match fs::read(data) {
        Ok(bytes) => {
            let mut all: Outcomes =
                serde_json::from_slice(&bytes).with_context(|| data.display().to_string())?;
            all.retain(|command, _| PAIRS.iter().any(|pair| pair.command() == *command));
            Ok(all)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Outcomes::new()),
        Err(error) => Err(error).with_context(|| data.display().to_string()),
    }
}

/// Those that were measured, in the order of the pairs.
fn in_order(results: &Outcomes) -> Vec<(&'static Pair, &Outcome)> {
    PAIRS.iter().filter_map(|pair| Some((pair, results.get(&pair.command())?))).collect()
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// What a duel of a pair came to.
#[derive(Serialize, Deserialize)]
struct Contest {
    cells: Vec<Cell>,
    /// Which programs they were, with their versions.
    programs: Vec<String>,
    machine: String,
}

/// One point and metric.
#[derive(Serialize, Deserialize)]
struct Cell {
    point: String,
    metric: String,
    unit: String,
    better: String,
    ours: f64,
    theirs: f64,
    /// The original over ours: low, estimate, high.
    ratio: Option<[f64; 3]>,
    margin_pct: f64,
    /// Whether the report judged the two to be the same.
    judged_same: bool,
    blocks: u64,
}

impl Cell {
    /// Whether the report says so, or the interval lies within the margin. A report calls a certain difference better or
    /// worse also where it is that small; two programs that measure the same may well differ by less than anybody asks
    /// for.
    fn same(&self) -> bool {
        let margin = 1.0 + self.margin_pct / 100.0;
        self.judged_same || self.ratio.is_some_and(|[low, _, high]| low > 1.0 / margin && high < margin)
    }

    /// Whether ours is as good as the original, or better for a reason that was measured.
    fn holds(&self, reason: Option<&str>) -> bool {
        self.same() || (self.verdict() == OURS_BETTER && reason.is_some())
    }

    /// `same`, which of the two is better, or `undecided`.
    fn verdict(&self) -> &'static str {
        match self.ratio {
            _ if self.same() => "same",
            Some([low, _, _]) if low > 1.0 && self.better == "lower" => OURS_BETTER,
            Some([_, _, high]) if high < 1.0 && self.better == "higher" => OURS_BETTER,
            Some([low, _, high]) if low > 1.0 || high < 1.0 => "original better",
            _ => "undecided",
        }
    }

    fn change(&self) -> String {
        match self.ratio {
            Some(ratio) => {
                let [low, estimate, high] = ratio.map(|ratio| (ratio - 1.0) * 100.0);
                format!("{estimate:+.1} % [{low:+.1}, {high:+.1}]")
            }
            None => "n/a".into(),
        }
    }

    fn in_words(&self) -> String {
        format!(
            "{} {}: {} ({}, {} blocks)",
            self.point,
            self.metric,
            self.verdict(),
            self.change(),
            self.blocks
        )
    }
}

/// Duels ours against the original; again with the smaller margin where the original turns out to be steady. What is steady
/// is then judged by the second duel.
fn contest(kduel: &Path, home: &Path, pair: &Pair) -> anyhow::Result<Contest> {
    let run = |margin_pct: f64| -> anyhow::Result<Contest> {
        let arguments = pair.arguments(margin_pct);
        let report = kduel::duel(kduel, home, &arguments.iter().map(String::as_str).collect::<Vec<&str>>())?;
        read(pair, &report)
    };
    let mut first = run(MARGIN_PCT)?;
    let steady = |cell: &Cell| cell.margin_pct < MARGIN_PCT;
    if first.cells.iter().any(|cell| steady(cell) && cell.same()) {
        let again = run(STEADY_MARGIN_PCT)?;
        for (cell, again) in first.cells.iter_mut().zip(again.cells).filter(|(cell, _)| steady(cell)) {
            *cell = Cell { margin_pct: STEADY_MARGIN_PCT, ..again };
        }
    }
    Ok(first)
}

fn read(pair: &Pair, report: &Value) -> anyhow::Result<Contest> {
    let all = report["cells"].as_array().context("the report has no cells")?;
    let mut cells = Vec::new();
    for theirs in all.iter().filter(|cell| cell["variant"] == "original") {
        let metric = theirs["metric"].as_str().unwrap_or_default();
        if !pair.metrics.contains(&metric) {
            continue;
        }
        let ours = all.iter().find(|cell| {
            cell["variant"] == "ours"
                && cell["metric"] == theirs["metric"]
                && cell["point"] == theirs["point"]
        });
        let point = theirs["point"].as_str().unwrap_or_default();
        let why = |cell: &Value| cell["value_missing"].as_str().unwrap_or("no value").to_string();
        let ours = ours.with_context(|| format!("{point} {metric}: ours is not in the report"))?;
        let value =
            |cell: &Value| cell["value"].as_f64().with_context(|| format!("{point} {metric}: {}", why(cell)));
        let ratio = || {
            let interval = theirs["interval"].as_array()?;
            Some([interval.first()?.as_f64()?, theirs["estimate"].as_f64()?, interval.get(1)?.as_f64()?])
        };
        let steady = theirs["cv"].as_f64().is_some_and(|cv| cv < STEADY_CV_PCT);
        cells.push(Cell {
            point: point.into(),
            metric: metric.into(),
            unit: theirs["unit"].as_str().unwrap_or_default().into(),
            better: theirs["better"].as_str().unwrap_or_default().into(),
            ours: value(ours)?,
            theirs: value(theirs)?,
            ratio: ratio().filter(|_| theirs["scale"] == "ratio"),
            judged_same: theirs["primary"] == true && theirs["verdict"] == "same",
            margin_pct: if steady { STEADY_MARGIN_PCT } else { MARGIN_PCT },
            blocks: theirs["n_compared"].as_u64().unwrap_or(0),
        });
    }
    ensure!(!cells.is_empty(), "the report has none of {}", pair.metrics.join(", "));
    let notices = report["notices"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let programs = notices.filter(|notice| notice.starts_with("measured by")).map(String::from).collect();
    let fact = |name: &str| report["facts"]["ours"][name].as_str().unwrap_or("not known");
    let machine = format!("{}, CPUs {}, {}", fact("cpu_model"), fact("cpus_online"), fact("kernel_release"));
    Ok(Contest { cells, programs, machine })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(better: &str, ratio: Option<[f64; 3]>) -> Cell {
        let (point, metric, unit) = ("1".into(), "rate".into(), "1/s".into());
        let better = better.into();
        Cell {
            point,
            metric,
            unit,
            better,
            ours: 1.0,
            theirs: 1.0,
            ratio,
            margin_pct: 5.0,
            judged_same: false,
            blocks: 40,
        }
    }

    #[test]
    fn only_what_is_the_same_or_better_for_a_reason_holds() {
        let near = [0.98, 1.0, 1.03];
        let (less, more, unclear) = ([0.7, 0.8, 0.9], [1.1, 1.2, 1.3], [0.9, 1.0, 1.1]);
        for (better, ratio, verdict, holds) in [
            ("higher", near, "same", [true, true]),
            ("higher", less, "ours better", [false, true]),
            ("higher", more, "original better", [false, false]),
            ("lower", less, "original better", [false, false]),
            ("lower", more, "ours better", [false, true]),
            ("lower", unclear, "undecided", [false, false]),
        ] {
            let cell = cell(better, Some(ratio));
            assert_eq!(cell.verdict(), verdict, "{better} {ratio:?}");
            assert_eq!(
                [None, Some("measured")].map(|reason| cell.holds(reason)),
                holds,
                "{better} {ratio:?}"
            );
        }
        assert_eq!(cell("lower", None).verdict(), "undecided");
    }
}
