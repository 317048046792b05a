//! Analyses built by hand, as the analysis of a journal makes them.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use analysis::{
    AaPair, AaSummary, Analysis, BlockValue, Cell, Effect, Feature, Path, Row, State, Table, Verdict,
    VirtualTime,
};
use experiment::{
    Axis, Blocks, Description, Direction, Entry, Experiment, Facts, Header, Known, Metric, Missing, Point,
    Variant,
};
use journal::Run;
use report::Import;

/// The text of one of the five reports whose figures kduel must reproduce.
pub fn reference(name: &str) -> String {
    let path = format!("{}/../../../shared/reference/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn missing<T>(why: &str) -> Known<T> {
    Err(Missing::because(why))
}

/// The analysis of imported figures, by way of a journal that was never written.
pub fn analysis_of(import: &Import) -> Analysis {
    let run = Run { header: import.header.clone(), records: import.records.clone(), notices: Vec::new() };
    analysis::analyse(&run)
}

/// A workload with these metrics over `axis`.
pub fn description(name: &str, axis: (&str, &str, &str), metrics: Vec<Metric>) -> Description {
    Description {
        name: name.into(),
        summary: "a workload of the tests".into(),
        about: String::new(),
        source: String::new(),
        axis: Axis {
            name: axis.0.into(),
            heading: axis.1.into(),
            suffix: axis.2.into(),
            points: Vec::new(),
            range: None,
        },
        parameters: Vec::new(),
        metrics,
        requirements: Vec::new(),
    }
}

/// hackbench's metric.
pub fn time() -> Metric {
    Metric::new("time", "s", Direction::Lower, "time in seconds", "How long all messages took.")
}

/// global-lock's second metric.
pub fn rate() -> Metric {
    Metric::new("rate", "ops/s", Direction::Higher, "rate in operations per second", "Operations per second.")
        .secondary()
}

/// A run of the variants with no tables yet.
pub fn run(workloads: &[(&str, Description)], variants: &[&str]) -> Analysis {
    let entries = workloads.iter().map(|(label, d)| Entry { label: label.to_string(), ..Entry::of(&d.name) });
    let variants: Vec<Variant> = variants
        .iter()
        .map(|spec| {
            Variant::parse(spec).unwrap_or_else(|_| Variant { name: spec.to_string(), knobs: vec![] })
        })
        .collect();
    let mut experiment = Experiment::new(entries.collect(), variants);
    experiment.blocks = Blocks::Exactly(8);
    let facts = Facts {
        kernel_release: Some("6.12.117".into()),
        preemption: Some("voluntary".into()),
        cpu_model: Some("Test CPU 9000".into()),
        cpus_online: Some("0-1".into()),
        cpus_allowed: Some("0-1".into()),
        sockets: Some(1),
        numa_nodes: Some(1),
        smt: Some(false),
        memory_bytes: Some(24 << 30),
        clocksource: Some("tsc".into()),
        ..Facts::default()
    };
    Analysis {
        facts: experiment.variants.iter().map(|v| (v.name.clone(), facts.clone())).collect(),
        header: Header {
            run: "20261130-101500-7f3a".into(),
            version: "0.1.0".into(),
            build: "abc".into(),
            at_unix_ms: 1_700_000_000_000,
            seed: 42,
            experiment,
            descriptions: workloads.iter().map(|(_, d)| d.clone()).collect(),
            directory: None,
            imported: None,
        },
        state: State::Finished,
        unasked: Vec::new(),
        features: Vec::new(),
        refused: Vec::new(),
        tables: Vec::new(),
        boots: None,
        virtual_time: None,
        aa: Ok(AaSummary {
            pairs: 2,
            fired: 0,
            identical: 0,
            largest_pct: 0.31,
            stated_rate: 0.05,
            distrust: false,
        }),
        family: 2,
        trials: 48,
        missing: Vec::new(),
        blocks: 8,
        fewest_blocks: 8,
        notices: Vec::new(),
    }
}

/// A table with a row per point; `figure` gives the value of a point and variant in block 1..=8.
pub fn table(
    analysis: &Analysis,
    workload: usize,
    metric: &Metric,
    points: &[&str],
    figure: impl Fn(usize, usize, u32) -> f64,
) -> Table {
    let variants: Vec<String> = analysis.header.experiment.variants.iter().map(|v| v.name.clone()).collect();
    let rows = points
        .iter()
        .enumerate()
        .map(|(row, point)| {
            let values: Vec<Vec<BlockValue>> = (0..variants.len())
                .map(|v| (1..=8).map(|block| BlockValue { block, value: figure(row, v, block) }).collect())
                .collect();
            let cells: Vec<Cell> = variants
                .iter()
                .enumerate()
                .map(|(v, name)| cell(metric, name, v == 0, &values[0], &values[v]))
                .collect();
            let aa = AaPair {
                values: values[0].clone(),
                effect: Ok(effect(1.001, 0.99, 1.012, 0.6)),
                fired: false,
            };
            Row { point: Point::new(*point), cells, aa: Ok(aa) }
        })
        .collect();
    Table {
        workload: analysis.header.experiment.workloads[workload].label.clone(),
        description: analysis.header.descriptions[workload].clone(),
        metric: metric.clone(),
        variants,
        rows,
        tick: None,
    }
}

fn mean(values: &[BlockValue]) -> f64 {
    values.iter().map(|v| v.value).sum::<f64>() / values.len() as f64
}

/// An effect as a ratio.
pub fn effect(estimate: f64, low: f64, high: f64, p: f64) -> Effect {
    Effect {
        scale: stats::Scale::Ratio,
        estimate,
        low,
        high,
        confidence: 0.95,
        p,
        p_corrected: Some(p),
        exact: false,
        blocks: 8,
    }
}

fn cell(metric: &Metric, name: &str, is_baseline: bool, base: &[BlockValue], own: &[BlockValue]) -> Cell {
    let (value, base) = (mean(own), mean(base));
    let n = own.len() as f64;
    let stddev = (own.iter().map(|v| (v.value - value).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let lower = metric.direction == Direction::Lower;
    let sign = if lower { -1.0 } else { 1.0 };
    let known = |figure: f64| if base == 0.0 { missing("the baseline is 0") } else { Ok(figure) };
    let change = known((value - base) / base * 100.0);
    let ratio = value / base;
    let (low, high) = (ratio - 0.01, ratio + 0.01);
    let verdict = match (is_baseline, metric.primary) {
        (true, _) => Verdict::Baseline,
        (_, false) => Verdict::Unjudged,
        _ if base == 0.0 => Verdict::Undecided,
        _ if low > 1.0 => {
            if lower {
                Verdict::Worse
            } else {
                Verdict::Better
            }
        }
        _ if high < 1.0 => {
            if lower {
                Verdict::Better
            } else {
                Verdict::Worse
            }
        }
        _ if low >= 0.98 && high <= 1.02 => Verdict::Same,
        _ => Verdict::Undecided,
    };
    Cell {
        variant: name.into(),
        values: own.to_vec(),
        value: Ok(value),
        stddev: Ok(stddev),
        cv_pct: if value == 0.0 { missing("the mean is 0") } else { Ok(stddev / value * 100.0) },
        ratio: known(ratio),
        improvement_pct: change.clone().map(|percent| percent * sign),
        change_pct: change,
        effect: match is_baseline {
            true => missing("the baseline is not compared with itself"),
            false if base == 0.0 => missing("the baseline is 0"),
            false => Ok(effect(ratio, low, high, if verdict == Verdict::Same { 0.4 } else { 0.008 })),
        },
        icc: missing("one sample in each trial"),
        verdict,
        reason: match verdict {
            Verdict::Undecided => "the interval reaches beyond the margin and p is above 5 %".into(),
            _ => String::new(),
        },
    }
}

/// A cell without any trial.
pub fn absent(variant: &str, why: &str) -> Cell {
    Cell {
        variant: variant.into(),
        values: Vec::new(),
        value: missing(why),
        stddev: missing(why),
        cv_pct: missing(why),
        ratio: missing(why),
        change_pct: missing(why),
        improvement_pct: missing(why),
        effect: missing(why),
        icc: missing(why),
        verdict: Verdict::Missing,
        reason: why.into(),
    }
}

/// What trials saw of a feature.
pub fn feature(feature: &str, ran: usize, seen: &str) -> Feature {
    let [workload, variant] = ["hackbench", "patched"].map(String::from);
    Feature { workload, variant, feature: feature.into(), trials: 8, ran, seen: seen.into() }
}

/// hackbench, two variants, two points: worse at the first, the same at the second.
pub fn hackbench() -> Analysis {
    let hackbench = description("hackbench", ("groups", "Case", "-groups"), vec![time()]);
    let mut analysis = run(&[("hackbench", hackbench)], &["base", "patched:nice=5"]);
    let noise = [0.0, 0.001, -0.001, 0.0005, -0.0005, 0.002, -0.002, 0.0];
    let table = table(&analysis, 0, &time(), &["1", "2"], |row, v, block| {
        let base = [0.069, 0.131][row];
        base * (1.0 + noise[(block - 1) as usize] + if v == 1 && row == 0 { 0.032 } else { 0.0 })
    });
    analysis.tables.push(table);
    analysis
}

/// [`hackbench`] in virtual time, every difference exact.
pub fn in_virtual_time() -> Analysis {
    let mut analysis = hackbench();
    for row in analysis.tables.iter_mut().flat_map(|table| &mut table.rows) {
        let exact = |found: &mut Effect, estimate: f64| {
            *found = Effect {
                estimate,
                low: estimate,
                high: estimate,
                confidence: 1.0,
                p: 0.0,
                p_corrected: None,
                exact: true,
                ..found.clone()
            };
        };
        for cell in &mut row.cells {
            let estimate = cell.ratio.clone().unwrap_or(1.0);
            if let Ok(found) = &mut cell.effect {
                exact(found, estimate);
            }
        }
    }
    let path = |variant: &str, ns: f64, idle_pct: f64| Path {
        workload: "hackbench".into(),
        point: Point::from(1),
        metric: "time".into(),
        variant: variant.into(),
        unit: String::new(),
        ns,
        instructions: ns / 2.0,
        idle_pct: Ok(idle_pct),
    };
    analysis.virtual_time = Some(VirtualTime {
        ns_per_instruction: 2,
        repeated: 4,
        differing: Vec::new(),
        paths: vec![path("base", 69e6, 0.25), path("patched", 71e6, 12.0)],
    });
    analysis.family = 0;
    if let Ok(aa) = &mut analysis.aa {
        aa.identical = aa.pairs;
    }
    analysis
}

/// global-lock over threads with a crossover between 2 and 8, undecided at 4.
pub fn global_lock(variants: &[&str]) -> Analysis {
    let lock = description("global-lock", ("threads", "Threads", ""), vec![time(), rate()]);
    let mut analysis = run(&[("global-lock", lock)], variants);
    let shift = [0.2, 0.1, 0.015, -0.2];
    let seconds = move |row: usize, v: usize, block: u32| {
        [0.026, 0.086, 0.67, 1.105][row]
            * (1.0 + shift[row] * 2.0 * (1.0 - 0.5f64.powi(v as i32)))
            * (1.0 + 0.001 * f64::from(block % 3))
    };
    let points = ["1", "2", "4", "8"];
    analysis.tables.push(table(&analysis, 0, &time(), &points, seconds));
    analysis.tables.push(table(&analysis, 0, &rate(), &points, move |r, v, b| 1e7 / seconds(r, v, b)));
    analysis
}

/// Compares `text` with a golden file, or writes the file where UPDATE_GOLDEN is set.
pub fn golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    for (line, (ours, theirs)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(ours, theirs, "{name}, line {}", line + 1);
    }
    assert_eq!(text.lines().count(), golden.lines().count(), "{name}");
}

/// Whether a text is one that a mail can hold.
pub fn assert_mailable(text: &str) {
    for line in text.lines() {
        assert!(line.is_ascii() && !line.contains('\x1b'), "{line:?}");
        assert!(line.len() <= 100, "{} columns: {line}", line.len());
        assert_eq!(line, line.trim_end(), "spaces at the end of {line:?}");
    }
}

/// A text on one line, so that a sentence is found however it is wrapped.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}
