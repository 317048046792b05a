//! One JSON object with every cell. `docs/json.md` says what its fields mean, `docs/json.schema.json` is their schema.

use crate::{Options, ReportError};
use analysis::{
    AaPair, Analysis, BlockValue, Effect, Feature, OptionGroup, State, Table, Verdict, VirtualTime,
};
use experiment::{BootSpec, Direction, Facts, Imported, Knob, Known, Statistic};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The version of the object's form. It is raised when a field changes its meaning or goes.
const FORM: u32 = 1;

/// The object, and a line break.
pub(crate) fn print(analysis: &Analysis, options: &Options<'_>) -> Result<String, ReportError> {
    let report = Report { beside: options.beside.map(|other| Box::new(run(other))), ..run(analysis) };
    let mut text =
        serde_json::to_string_pretty(&report).map_err(|error| ReportError::Json(error.to_string()))?;
    text.push('\n');
    Ok(text)
}

#[derive(Serialize)]
struct Report<'a> {
    form: u32,
    kduel: &'a str,
    build: &'a str,
    run: &'a str,
    started_unix_ms: u64,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_reason: Option<&'a str>,
    title: Option<&'a str>,
    target: String,
    seed: u64,
    blocks: u32,
    blocks_asked: String,
    margin_pct: f64,
    family: usize,
    trials: usize,
    missing_trials: Vec<MissingTrials<'a>>,
    baseline: Option<&'a str>,
    variants: Vec<VariantOut<'a>>,
    set: BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>,
    aa: Option<Aa>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aa_missing: Option<&'a str>,
    notices: &'a [String],
    unasked: Vec<Unasked<'a>>,
    features: &'a [Feature],
    facts: BTreeMap<&'a str, Facts>,
    imported: Option<&'a Imported>,
    boots: Option<BootsOut<'a>>,
    virtual_time: Option<VirtualOut<'a>>,
    cells: Cells<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Box<Report<'a>>>,
}

#[derive(Serialize)]
struct MissingTrials<'a> {
    reason: &'a str,
    count: usize,
}

#[derive(Serialize)]
struct VariantOut<'a> {
    name: &'a str,
    knobs: Vec<KnobOut<'a>>,
    boot: Option<BootSpec>,
}

#[derive(Serialize)]
struct BootsOut<'a> {
    count: usize,
    failed: usize,
    ready: Cells<'a>,
}

#[derive(Serialize)]
struct KnobOut<'a> {
    key: String,
    value: &'a str,
}

#[derive(Serialize)]
struct Aa {
    pairs: usize,
    fired: usize,
    largest_pct: f64,
    stated_rate: f64,
    distrust: bool,
}

#[derive(Serialize)]
struct Unasked<'a> {
    fact: &'a str,
    about: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<OptionGroup>,
    values: BTreeMap<&'a str, Option<&'a str>>,
}

/// What was set for all variants, by the label of the workload that has the parameter.
fn set(analysis: &Analysis) -> BTreeMap<&str, BTreeMap<&str, &str>> {
    let experiment = &analysis.header.experiment;
    let entries = experiment.workloads.iter().zip(&analysis.header.descriptions);
    entries
        .map(|(entry, description)| {
            let all = experiment.set.iter().chain(&entry.set);
            let own = all.filter(|(name, _)| description.parameter(name).is_ok());
            (entry.label.as_str(), own.map(|(name, value)| (name.as_str(), value.as_str())).collect())
        })
        .collect()
}

fn run<'a>(analysis: &'a Analysis) -> Report<'a> {
    let header = &analysis.header;
    let knob = |knob: &'a Knob| KnobOut { key: knob.key(), value: &knob.value };
    let variants = &header.experiment.variants;
    Report {
        form: FORM,
        kduel: &header.version,
        build: &header.build,
        run: &header.run,
        started_unix_ms: header.at_unix_ms,
        state: match &analysis.state {
            State::Finished => "finished",
            State::Interrupted(_) => "interrupted",
            State::Unfinished => "unfinished",
            State::Imported => "imported",
        },
        state_reason: match &analysis.state {
            State::Interrupted(why) => Some(why),
            _ => None,
        },
        title: header.experiment.title.as_deref(),
        target: header.experiment.target.to_string(),
        seed: header.seed,
        blocks: analysis.blocks,
        blocks_asked: header.experiment.blocks.to_string(),
        margin_pct: header.experiment.margin_pct,
        family: analysis.family,
        trials: analysis.trials,
        missing_trials: analysis
            .missing
            .iter()
            .map(|(reason, count)| MissingTrials { reason, count: *count })
            .collect(),
        baseline: header.experiment.baseline().map(|variant| variant.name.as_str()),
        variants: variants
            .iter()
            .map(|variant| VariantOut {
                name: &variant.name,
                knobs: variant.knobs.iter().map(knob).collect(),
                boot: Some(header.experiment.boot_spec(variant)).filter(|spec| !spec.is_empty()),
            })
            .collect(),
        set: set(analysis),
        aa: analysis.aa.as_ref().ok().map(|aa| Aa {
            pairs: aa.pairs,
            fired: aa.fired,
            largest_pct: aa.largest_pct,
            stated_rate: aa.stated_rate,
            distrust: aa.distrust,
        }),
        aa_missing: analysis.aa.as_ref().err().map(|missing| missing.why.as_str()),
        notices: &analysis.notices,
        unasked: analysis
            .unasked
            .iter()
            .map(|difference| Unasked {
                fact: &difference.fact,
                about: difference.about.word(),
                group: difference.about.group(),
                values: variants
                    .iter()
                    .zip(&difference.values)
                    .map(|(variant, value)| (variant.name.as_str(), value.as_deref()))
                    .collect(),
            })
            .collect(),
        features: &analysis.features,
        facts: analysis.facts.iter().map(|(name, facts)| (name.as_str(), without_options(facts))).collect(),
        imported: header.imported.as_ref(),
        boots: analysis.boots.as_ref().map(|boots| BootsOut {
            count: boots.count,
            failed: boots.failed,
            ready: Cells(std::slice::from_ref(&boots.ready)),
        }),
        virtual_time: analysis.virtual_time.as_ref().map(virtual_out),
        cells: Cells(&analysis.tables),
        beside: None,
    }
}

/// The thousands of options of a kernel are the journal's; here are those that differ.
fn without_options(facts: &Facts) -> Facts {
    let mut facts = facts.clone();
    if let Some(config) = &mut facts.config {
        config.options = None;
    }
    facts
}

/// Every cell, written one by one so that a run with many values is never held twice.
struct Cells<'a>(&'a [Table]);

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for table in self.0 {
            for row in &table.rows {
                for (place, cell) in row.cells.iter().enumerate() {
                    seq.serialize_element(&cell_out(table, row, cell, place == 0))?;
                }
            }
        }
        seq.end()
    }
}

#[derive(Serialize)]
struct CellOut<'a> {
    workload: &'a str,
    program: &'a str,
    axis: &'a str,
    point: &'a str,
    metric: &'a str,
    unit: &'a str,
    better: Direction,
    statistic: Statistic,
    primary: bool,
    variant: &'a str,
    n: usize,
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_missing: Option<&'a str>,
    stddev: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stddev_missing: Option<&'a str>,
    cv: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cv_missing: Option<&'a str>,
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_missing: Option<&'a str>,
    change_pct: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_pct_missing: Option<&'a str>,
    improvement_pct: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    improvement_pct_missing: Option<&'a str>,
    estimate: Option<f64>,
    exact: bool,
    interval: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_missing: Option<&'a str>,
    scale: Option<stats::Scale>,
    confidence: Option<f64>,
    p: Option<f64>,
    p_corrected: Option<f64>,
    n_compared: Option<usize>,
    icc: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icc_missing: Option<&'a str>,
    tick: Option<f64>,
    verdict: Verdict,
    reason: &'a str,
    values: Values<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aa: Option<PairOut<'a>>,
}

#[derive(Serialize)]
struct PairOut<'a> {
    fired: bool,
    estimate: Option<f64>,
    exact: bool,
    interval: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_missing: Option<&'a str>,
    p: Option<f64>,
    values: Values<'a>,
}

#[derive(Serialize)]
struct VirtualOut<'a> {
    ns_per_instruction: u32,
    repeated: usize,
    differing: &'a [String],
    paths: Vec<PathOut<'a>>,
}

#[derive(Serialize)]
struct PathOut<'a> {
    workload: &'a str,
    point: &'a str,
    metric: &'a str,
    variant: &'a str,
    unit: &'a str,
    ns: f64,
    instructions: f64,
    idle_pct: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_pct_missing: Option<&'a str>,
}

fn virtual_out(found: &VirtualTime) -> VirtualOut<'_> {
    fn path(path: &analysis::Path) -> PathOut<'_> {
        let (idle_pct, idle_pct_missing) = figure(&path.idle_pct);
        PathOut {
            workload: &path.workload,
            point: path.point.as_str(),
            metric: &path.metric,
            variant: &path.variant,
            unit: &path.unit,
            ns: path.ns,
            instructions: path.instructions,
            idle_pct,
            idle_pct_missing,
        }
    }
    VirtualOut {
        ns_per_instruction: found.ns_per_instruction,
        repeated: found.repeated,
        differing: &found.differing,
        paths: found.paths.iter().map(path).collect(),
    }
}

/// The values per block, in one line: in the pretty form each would take four.
struct Values<'a>(&'a [BlockValue]);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = serde_json::value::to_raw_value(self.0).map_err(serde::ser::Error::custom)?;
        line.serialize(serializer)
    }
}

/// A figure, or the reason why there is none. JSON has no infinite numbers, so they count as none.
fn figure(known: &Known<f64>) -> (Option<f64>, Option<&str>) {
    match known {
        Ok(value) if value.is_finite() => (Some(*value), None),
        Ok(_) => (None, Some("it is no finite number")),
        Err(missing) => (None, Some(&missing.why)),
    }
}

fn cell_out<'a>(
    table: &'a Table,
    row: &'a analysis::Row,
    cell: &'a analysis::Cell,
    is_baseline: bool,
) -> CellOut<'a> {
    let (value, value_missing) = figure(&cell.value);
    let (stddev, stddev_missing) = figure(&cell.stddev);
    let (cv, cv_missing) = figure(&cell.cv_pct);
    let (ratio, ratio_missing) = figure(&cell.ratio);
    let (change_pct, change_pct_missing) = figure(&cell.change_pct);
    let (improvement_pct, improvement_pct_missing) = figure(&cell.improvement_pct);
    let (icc, icc_missing) = figure(&cell.icc);
    let effect = cell.effect.as_ref().ok();
    CellOut {
        workload: &table.workload,
        program: &table.description.name,
        axis: &table.description.axis.name,
        point: row.point.as_str(),
        metric: &table.metric.name,
        unit: &table.metric.unit,
        better: table.metric.direction,
        statistic: table.metric.statistic,
        primary: table.metric.primary,
        variant: &cell.variant,
        n: cell.values.len(),
        value,
        value_missing,
        stddev,
        stddev_missing,
        cv,
        cv_missing,
        ratio,
        ratio_missing,
        change_pct,
        change_pct_missing,
        improvement_pct,
        improvement_pct_missing,
        estimate: effect.map(|effect| effect.estimate),
        exact: effect.is_some_and(|effect| effect.exact),
        interval: tested(&cell.effect).map(interval),
        interval_missing: cell.effect.as_ref().err().map(|missing| missing.why.as_str()),
        scale: effect.map(|effect| effect.scale),
        confidence: tested(&cell.effect).map(|effect| effect.confidence),
        p: tested(&cell.effect).map(|effect| effect.p),
        p_corrected: effect.and_then(|effect| effect.p_corrected),
        n_compared: effect.map(|effect| effect.blocks),
        icc,
        icc_missing,
        tick: table.tick,
        verdict: cell.verdict,
        reason: &cell.reason,
        values: Values(&cell.values),
        aa: row.aa.as_ref().ok().filter(|_| is_baseline).map(pair_out),
    }
}

/// An effect that has an interval and a p value.
fn tested(effect: &Known<Effect>) -> Option<&Effect> {
    effect.as_ref().ok().filter(|effect| !effect.exact)
}

fn interval(effect: &Effect) -> [f64; 2] {
    [effect.low, effect.high]
}

fn pair_out(pair: &AaPair) -> PairOut<'_> {
    let effect = pair.effect.as_ref().ok();
    PairOut {
        fired: pair.fired,
        estimate: effect.map(|effect| effect.estimate),
        exact: effect.is_some_and(|effect| effect.exact),
        interval: tested(&pair.effect).map(interval),
        interval_missing: pair.effect.as_ref().err().map(|missing| missing.why.as_str()),
        p: tested(&pair.effect).map(|effect| effect.p),
        values: Values(&pair.values),
    }
}
