//! The tables of a run that kduel measured.

use crate::cells::yielded;
use crate::contest::Family;
use crate::describe::{base_is_zero, missing, statistic};
use crate::live::Live;
use crate::{Cell, Row, Table, aa};
use experiment::{Direction, Header, Known, Metric, Missing, Record};
use stats::Undefined;
use std::collections::{BTreeMap, HashMap};

/// Samples that suffice to see the step of a clock.
const TICK_SAMPLES: usize = 4096;

/// The samples of the trials that count, by point and variant. One item per trial.
type Samples<'a> = HashMap<(usize, usize), Vec<&'a BTreeMap<String, Vec<f64>>>>;

/// One table per workload and metric, in the order of the experiment. A secondary metric that no trial yielded has
/// none.
pub(crate) fn tables(header: &Header, live: &mut Live, records: &[Record]) -> Vec<Table> {
    let family = live.family();
    let samples = samples(header, live, records);
    let mut tables = Vec::new();
    for (workload, description) in
        header.descriptions.iter().enumerate().take(header.experiment.workloads.len())
    {
        for (metric, about) in description.metrics.iter().enumerate() {
            let builder = Builder { header, live, family: &family, samples: &samples, metric, about };
            let table = builder.table(workload);
            let any = table.rows.iter().any(|row| row.cells.iter().any(|cell| !cell.values.is_empty()));
            if about.primary || any {
                tables.push(table);
            }
        }
    }
    tables
}

fn samples<'a>(header: &Header, live: &Live, records: &'a [Record]) -> Samples<'a> {
    let mut all = Samples::new();
    for record in records {
        let Record::Trial(trial) = record else { continue };
        let variants = &header.experiment.variants;
        let variant = variants.iter().position(|variant| variant.name == trial.variant);
        let place = live.cells.place(&trial.workload, &trial.point);
        if let (Some(place), Some(variant), Ok(samples), false) = (place, variant, yielded(trial), trial.twin)
        {
            all.entry((place, variant)).or_default().push(samples);
        }
    }
    all
}

struct Builder<'a> {
    header: &'a Header,
    live: &'a Live,
    family: &'a Family,
    samples: &'a Samples<'a>,
    metric: usize,
    about: &'a Metric,
}

impl Builder<'_> {
    fn table(&self, workload: usize) -> Table {
        let variants = &self.header.experiment.variants;
        let places = || {
            let points = self.live.cells.points.iter().enumerate();
            points.filter(|(_, point)| point.workload == workload)
        };
        let rows = places().map(|(place, point)| Row {
            point: point.point.clone(),
            cells: (0..variants.len()).map(|variant| self.cell(place, variant)).collect(),
            aa: match (self.header.experiment.aa, self.about.primary) {
                (false, _) => Err(Missing::because("A/A was not asked for")),
                (true, false) => Err(Missing::because("the metric is shown, not judged")),
                (true, true) => aa::pair(point, self.metric, &self.live.rules),
            },
        });
        let drawn: Vec<f64> = places()
            .flat_map(|(place, _)| (0..variants.len()).flat_map(move |variant| self.groups(place, variant)))
            .flatten()
            .copied()
            .take(TICK_SAMPLES)
            .collect();
        Table {
            workload: self.header.experiment.workloads[workload].label.clone(),
            description: self.header.descriptions[workload].clone(),
            metric: self.about.clone(),
            variants: variants.iter().map(|variant| variant.name.clone()).collect(),
            rows: rows.collect(),
            tick: stats::tick(&drawn),
        }
    }

    fn cell(&self, place: usize, variant: usize) -> Cell {
        let values = self.live.values(place, self.metric, variant);
        let judgement = self.live.judge(place, self.metric, variant, self.family);
        let figures: Vec<f64> = values.iter().map(|value| value.value).collect();
        let base: Vec<f64> =
            self.live.values(place, self.metric, 0).iter().map(|value| value.value).collect();
        let described = |figures: &[f64], why: &str| match figures {
            [] => Err(Missing::because(why)),
            figures => statistic(self.about, figures),
        };
        let value = described(&figures, &judgement.reason);
        let absent = |error: Undefined| match error {
            Undefined::Empty => Missing::because(judgement.reason.clone()),
            other => missing(other),
        };
        let relative = relative(self.about, &value, &described(&base, "the baseline has no value"));
        Cell {
            variant: self.header.experiment.variants[variant].name.clone(),
            stddev: stats::stddev(&figures).map_err(absent),
            cv_pct: stats::cv_pct(&figures).map_err(absent),
            values: values.to_vec(),
            value,
            ratio: relative.ratio,
            change_pct: relative.change_pct,
            improvement_pct: relative.improvement_pct,
            effect: judgement.effect,
            icc: self.icc(place, variant),
            verdict: judgement.verdict,
            reason: judgement.reason,
        }
    }

    fn icc(&self, place: usize, variant: usize) -> Known<f64> {
        let groups: Vec<&[f64]> = self.groups(place, variant).map(Vec::as_slice).collect();
        if groups.iter().all(|group| group.len() < 2) {
            return Err(Missing::because("trials yield one sample each"));
        }
        stats::variance_components(&groups).map(|components| components.icc).map_err(missing)
    }

    /// The samples of a cell, by trial.
    fn groups(&self, place: usize, variant: usize) -> impl Iterator<Item = &Vec<f64>> {
        let trials = self.samples.get(&(place, variant)).into_iter().flatten();
        trials.filter_map(|samples| samples.get(&self.about.name)).filter(|samples| !samples.is_empty())
    }
}

/// A cell's figures relative to the baseline's.
pub(crate) struct Relative {
    pub ratio: Known<f64>,
    pub change_pct: Known<f64>,
    pub improvement_pct: Known<f64>,
}

/// Compares two figures as they are, without rounding.
pub(crate) fn relative(metric: &Metric, value: &Known<f64>, base: &Known<f64>) -> Relative {
    let (value, base) = match (value, base) {
        (Ok(value), Ok(base)) => (*value, *base),
        (Err(missing), _) | (_, Err(missing)) => {
            let absent = || Err(missing.clone());
            return Relative { ratio: absent(), change_pct: absent(), improvement_pct: absent() };
        }
    };
    let relative = |figure: Result<f64, Undefined>| {
        figure.map_err(|error| match error {
            Undefined::ZeroBase => base_is_zero(metric),
            other => missing(other),
        })
    };
    let ratio = if base == 0.0 { Err(Undefined::ZeroBase) } else { Ok(value / base) };
    Relative {
        ratio: relative(ratio).and_then(|ratio| {
            if ratio.is_finite() {
                Ok(ratio)
            } else {
                Err(Missing::because("the ratio is beyond all numbers"))
            }
        }),
        change_pct: relative(stats::percent_change(base, value)),
        improvement_pct: relative(stats::percent_improvement(
            base,
            value,
            metric.direction == Direction::Lower,
        )),
    }
}
