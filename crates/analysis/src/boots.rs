//! The boots of a run, where kernels were booted: how long each took, which is shown and not judged, and what must be
//! known of them.

use crate::describe::{missing, statistic};
use crate::looks::Rules;
use crate::pairs::Pairs;
use crate::tables::relative;
use crate::{BlockValue, Boots, Cell, Row, Table, Verdict};
use experiment::{Axis, BootRecord, Description, Direction, Header, Metric, Missing, Point, Record};

/// More remarks than this say no more than their number does.
const REMARKS: usize = 12;

/// The boots of a run; none where nothing was booted.
pub(crate) fn of(header: &Header, records: &[Record]) -> Option<Boots> {
    let boots: Vec<&BootRecord> = records
        .iter()
        .filter_map(|record| match record {
            Record::Boot(boot) => Some(&**boot),
            _ => None,
        })
        .collect();
    if boots.is_empty() {
        return None;
    }
    Some(Boots {
        count: boots.len(),
        failed: boots.iter().map(|boot| boot.attempts.saturating_sub(1) as usize).sum(),
        ready: ready(header, &boots),
    })
}

fn ready(header: &Header, boots: &[&BootRecord]) -> Table {
    let about = "From the start of the boot to the first word of its agent.";
    let metric =
        Metric::new("ready", "s", Direction::Lower, "time from boot to ready in seconds", about).secondary();
    let variants: Vec<String> =
        header.experiment.variants.iter().map(|variant| variant.name.clone()).collect();
    let values: Vec<Vec<BlockValue>> = variants.iter().map(|variant| times(boots, variant)).collect();
    let base = values.first().cloned().unwrap_or_default();
    let cells = variants.iter().zip(&values).enumerate();
    let cells = cells.map(|(place, (variant, values))| {
        let base = (place > 0).then_some(base.as_slice());
        cell(&metric, variant, values, base, untimed(boots, variant), &Rules::of(header))
    });
    let row = Row {
        point: Point::new("every"),
        cells: cells.collect(),
        aa: Err(Missing::because("the metric is shown, not judged")),
    };
    Table {
        workload: "boot".into(),
        description: description(&metric),
        metric,
        variants,
        rows: vec![row],
        tick: None,
    }
}

/// By block, the time of the first boot that a variant had there, unless others booted at the same time.
fn times(boots: &[&BootRecord], variant: &str) -> Vec<BlockValue> {
    let mut firsts: Vec<&&BootRecord> = of_variant(boots, variant).collect();
    firsts.sort_by_key(|boot| boot.block);
    firsts.dedup_by_key(|boot| boot.block);
    let alone = firsts.into_iter().filter(|boot| !boot.overlapped);
    alone.map(|boot| BlockValue { block: boot.block, value: boot.ready_s }).collect()
}

/// The boots that a variant had in blocks.
fn of_variant<'a>(boots: &'a [&BootRecord], variant: &str) -> impl Iterator<Item = &'a &'a BootRecord> {
    boots.iter().filter(move |boot| boot.variant == variant && !boot.twin && boot.block > 0)
}

/// Why there is no time for a variant.
fn untimed(boots: &[&BootRecord], variant: &str) -> &'static str {
    match of_variant(boots, variant).next() {
        Some(_) => "not timed, since boots overlapped",
        None => "not booted in any block",
    }
}

/// `base` are the times of the baseline, if this is another variant; `untimed` says why there is no time, if so.
fn cell(
    metric: &Metric,
    variant: &str,
    values: &[BlockValue],
    base: Option<&[BlockValue]>,
    untimed: &str,
    rules: &Rules,
) -> Cell {
    let figures = |values: &[BlockValue]| values.iter().map(|value| value.value).collect::<Vec<f64>>();
    let mean = |values: &[BlockValue]| match values {
        [] => Err(Missing::because(untimed)),
        values => statistic(metric, &figures(values)),
    };
    let value = mean(values);
    let relative = relative(metric, &value, &mean(base.unwrap_or(values)));
    let (verdict, reason) = match (values, base) {
        ([], _) => (Verdict::Missing, untimed),
        (_, None) => (Verdict::Baseline, "the others are compared with it"),
        (_, Some(_)) => (Verdict::Unjudged, "the metric is shown, not judged"),
    };
    let last = values.last().map_or(0, |value| value.block);
    Cell {
        variant: variant.into(),
        stddev: stats::stddev(&figures(values)).map_err(missing),
        cv_pct: stats::cv_pct(&figures(values)).map_err(missing),
        values: values.to_vec(),
        value,
        ratio: relative.ratio,
        change_pct: relative.change_pct,
        improvement_pct: relative.improvement_pct,
        effect: match base {
            Some(base) => Pairs::of(base, values).effect(rules, last),
            None => Err(Missing::because(reason)),
        },
        icc: Err(Missing::because("a boot yields one sample")),
        verdict,
        reason: reason.into(),
    }
}

fn description(metric: &Metric) -> Description {
    Description {
        name: "boot".into(),
        summary: "boots the variant's kernel".into(),
        about: String::new(),
        source: String::new(),
        axis: Axis {
            name: "boot".into(),
            heading: "Boot".into(),
            suffix: String::new(),
            points: vec![Point::new("every")],
            range: None,
        },
        parameters: Vec::new(),
        metrics: vec![metric.clone()],
        requirements: Vec::new(),
    }
}

/// What readers must know of the boots: each sentence once, behind the variants that it is about where it is not all.
pub(crate) fn remarks(header: &Header, records: &[Record]) -> Vec<String> {
    let mut of_variants: Vec<(&str, Vec<&str>)> = Vec::new();
    for record in records {
        let Record::Boot(boot) = record else { continue };
        for remark in &boot.remarks {
            let place =
                of_variants.iter().position(|(text, _)| *text == remark.as_str()).unwrap_or_else(|| {
                    of_variants.push((remark.as_str(), Vec::new()));
                    of_variants.len() - 1
                });
            let variants = &mut of_variants[place].1;
            if !variants.contains(&boot.variant.as_str()) {
                variants.push(&boot.variant);
            }
        }
    }
    let all = header.experiment.variants.len();
    let sentence = |(text, variants): &(&str, Vec<&str>)| match variants.len() == all {
        true => text.to_string(),
        false => format!("{}: {text}", variants.join(", ")),
    };
    let mut remarks: Vec<String> = of_variants.iter().take(REMARKS).map(sentence).collect();
    if let Some(more @ 1..) = of_variants.len().checked_sub(REMARKS) {
        remarks.push(format!("boots left {more} further remarks, which `kduel show` prints"));
    }
    remarks
}
