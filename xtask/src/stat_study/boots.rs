//! What counts as one observation where each boot of a kernel is a little different.
use super::Study;
use super::noise::{Random, normal};
use super::rules::{Rule, welch};
use super::simulate::{count, means};
use anyhow::Result;
use std::fmt::Write as _;

const REPEATS: u32 = 4000;

/// Deviation between boots and within one.
const BETWEEN: f64 = 0.01;
const WITHIN: f64 = 0.005;

/// The table of boots and trials.
pub fn boots(study: &mut Study) -> Result<()> {
    let mut table = format!(
        "Boots: 1 % between boots, 0.5 % within; false positives % / power % for a true change of 2 %\n\
         ({REPEATS} sessions each)\n\n{:22}{:>20}{:>20}{:>20}\n{:22}{:>20}{:>20}{:>20}\n",
        "",
        "all trials pooled,",
        "mean of each boot,",
        "mean of each boot,",
        "boots x trials a side",
        "Welch t",
        "Welch t",
        "aligned-rank",
    );
    for (boots, trials) in [(4, 5), (10, 2), (20, 1)] {
        let [wrong, right] = [1.0, 1.02].map(|effect: f64| {
            means(&format!("boots {boots} {trials} {effect}"), study.seed, REPEATS, |random| {
                let (base, new) = (side(random, boots, trials, 1.0), side(random, boots, trials, effect));
                let (base_means, new_means) = (means_of(&base), means_of(&new));
                [
                    count(welch(&base.concat(), &new.concat())),
                    count(welch(&base_means, &new_means)),
                    count(Rule::AlignedRank.fires(&base_means, &new_means, random)),
                ]
            })
        });
        write!(table, "{:22}", format!("{boots} x {trials}"))?;
        for rule in 0..3 {
            let cell = match rule {
                2 if boots < stats::MIN_BLOCKS => "never decides".to_string(),
                _ => format!("{:.1} / {:.1}", 100.0 * wrong[rule], 100.0 * right[rule]),
            };
            write!(table, "{cell:>20}")?;
        }
        table.push('\n');
        if boots >= stats::MIN_BLOCKS {
            study.limits.false_positives(format!("{boots} boots x {trials} trials"), wrong[2]);
        }
        // The power that is stated, 59 and 98 %, is that of a t test on the means of the boots.
        match (boots, trials) {
            (4, 5) => study.limits.power("4 boots x 5 trials, Welch t", right[1], REPEATS, 0.585, None),
            (10, 2) => study.limits.power("10 boots x 2 trials, Welch t", right[1], REPEATS, 0.975, None),
            _ => {}
        }
    }
    let [share, spread] = means("boots icc", study.seed, REPEATS, |random| {
        let groups = side(random, 10, 2, 1.0);
        let groups: Vec<&[f64]> = groups.iter().map(Vec::as_slice).collect();
        let icc = stats::variance_components(&groups).map_or(0.0, |components| components.icc);
        [icc, icc * icc]
    });
    let truth = BETWEEN * BETWEEN / (BETWEEN * BETWEEN + WITHIN * WITHIN);
    writeln!(
        table,
        "\nShare of variance between boots: {:.0} % in truth; estimated from 10 x 2: {:.0} % +- {:.0}",
        100.0 * truth,
        100.0 * share,
        100.0 * (spread - share * share).sqrt(),
    )?;
    study.print(&table)
}

fn side(random: &mut Random, boots: usize, trials: usize, effect: f64) -> Vec<Vec<f64>> {
    let boot = |_| {
        let common = BETWEEN * normal(random) + effect.ln();
        (0..trials).map(|_| 100.0 * (common + WITHIN * normal(random)).exp()).collect()
    };
    (0..boots).map(boot).collect()
}

fn means_of(boots: &[Vec<f64>]) -> Vec<f64> {
    boots.iter().map(|trials| trials.iter().sum::<f64>() / trials.len() as f64).collect()
}
