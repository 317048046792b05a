//! How long a report over 1,000,000 values takes: `cargo bench -p kduel-report`. It prints figures and asserts none.

use analysis::{AaSummary, Analysis, BlockValue, Cell, Effect, Row, State, Table, Verdict};
use experiment::{Axis, Description, Direction, Entry, Experiment, Header, Metric, Missing, Point, Variant};
use report::{Format, Options, Style, render};
use std::time::Instant;

const POINTS: u64 = 50;
const VARIANTS: usize = 10;
const BLOCKS: u32 = 2000;

fn main() {
    let analysis = million();
    let values: usize =
        analysis.tables.iter().flat_map(|t| &t.rows).flat_map(|r| &r.cells).map(|c| c.values.len()).sum();
    println!("{values} values in {POINTS} points of {VARIANTS} variants and {BLOCKS} blocks");
    let all = Format::all().map(|format| (Style::of(&analysis), format));
    let styles = Style::all().filter(|style| style.name() != "scaling").map(|style| (style, Format::Text));
    for (style, format) in styles.chain(all) {
        let begin = Instant::now();
        let rendered = render(&analysis, &Options { style: Some(style), format, ..Options::default() });
        let took_ms = begin.elapsed().as_secs_f64() * 1e3;
        match rendered {
            Ok(text) => {
                println!("{:12} {:12} {took_ms:8.1} ms  {:9} bytes", style.name(), format.name(), text.len())
            }
            Err(error) => println!("{style} {format}: {error}"),
        }
    }
}

fn million() -> Analysis {
    let metric = Metric::new("time", "s", Direction::Lower, "time in seconds", "");
    let description = Description {
        name: "hackbench".into(),
        summary: String::new(),
        about: String::new(),
        source: String::new(),
        axis: Axis {
            name: "groups".into(),
            heading: "Case".into(),
            suffix: "-groups".into(),
            points: Vec::new(),
            range: None,
        },
        parameters: Vec::new(),
        metrics: vec![metric.clone()],
        requirements: Vec::new(),
    };
    let names: Vec<String> = (0..VARIANTS).map(|n| format!("variant{n}")).collect();
    let variants = names.iter().map(|name| Variant { name: name.clone(), knobs: Vec::new() }).collect();
    let rows = (1..=POINTS).map(|point| Row {
        point: Point::from(point),
        cells: names.iter().enumerate().map(|(place, name)| cell(place, name)).collect(),
        aa: Err(Missing::because("not asked for")),
    });
    let table = Table {
        workload: "hackbench".into(),
        description: description.clone(),
        metric,
        variants: names.clone(),
        rows: rows.collect(),
        tick: None,
    };
    Analysis {
        header: Header {
            run: "bench".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            build: String::new(),
            at_unix_ms: 0,
            seed: 1,
            experiment: Experiment::new(vec![Entry::of("hackbench")], variants),
            descriptions: vec![description],
            directory: None,
            imported: None,
        },
        state: State::Finished,
        facts: Vec::new(),
        unasked: Vec::new(),
        features: Vec::new(),
        refused: Vec::new(),
        tables: vec![table],
        boots: None,
        virtual_time: None,
        aa: Ok(AaSummary {
            pairs: 50,
            fired: 2,
            identical: 0,
            largest_pct: 0.4,
            stated_rate: 0.05,
            distrust: false,
        }),
        family: 450,
        trials: 1_000_000,
        missing: Vec::new(),
        blocks: BLOCKS,
        fewest_blocks: BLOCKS,
        notices: Vec::new(),
    }
}

fn cell(place: usize, name: &str) -> Cell {
    // Digits as measured values have them.
    let value =
        |block: u32| 0.0690123 * (1.0 + 0.01 * place as f64) * (1.0 + 1e-4 * f64::from(block * 7919 % 997));
    let effect = Effect {
        scale: stats::Scale::Ratio,
        estimate: 1.01,
        low: 1.005,
        high: 1.015,
        confidence: 0.95,
        p: 0.003,
        p_corrected: Some(0.01),
        exact: false,
        blocks: BLOCKS as usize,
    };
    Cell {
        variant: name.into(),
        values: (1..=BLOCKS).map(|block| BlockValue { block, value: value(block) }).collect(),
        value: Ok(value(1)),
        stddev: Ok(0.001),
        cv_pct: Ok(1.4),
        ratio: Ok(1.01),
        change_pct: Ok(1.0),
        improvement_pct: Ok(-1.0),
        effect: if place == 0 { Err(Missing::because("the baseline")) } else { Ok(effect) },
        icc: Err(Missing::because("one sample in each trial")),
        verdict: if place == 0 { Verdict::Baseline } else { Verdict::Worse },
        reason: String::new(),
    }
}
