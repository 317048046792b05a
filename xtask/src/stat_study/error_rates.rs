//! How often each rule is wrong, how often it finds a change of 2 %, and whether intervals hold the truth.
use super::Study;
use super::noise::{Noise, Order, session};
use super::rules::Rule;
use super::simulate::{count, means, standard_error};
use anyhow::Result;
use std::fmt::Write as _;

/// Sizes that the limits are stated for.
const BLOCKS: [usize; 4] = [8, 10, 20, 40];

/// The true change that power is measured with.
const CHANGE: f64 = 1.02;

const REPEATS: u32 = 5000;

/// The table of all rules.
pub fn rules(study: &mut Study) -> Result<()> {
    let columns: [(Order, Noise); 5] = [
        (Order::OneAfterTheOther, Noise::Drift),
        (Order::OneAfterTheOther, Noise::Outliers),
        (Order::RandomBlocks, Noise::Iid),
        (Order::RandomBlocks, Noise::Drift),
        (Order::RandomBlocks, Noise::Outliers),
    ];
    for blocks in BLOCKS {
        let mut found = Vec::new();
        for (order, noise) in columns {
            found.push([1.0, CHANGE].map(|effect| {
                let name = format!("rules {blocks} {order:?} {noise:?} {effect}");
                means(&name, study.seed, REPEATS, |random| {
                    let (base, new) = session(random, blocks, order, noise, effect);
                    Rule::ALL.map(|rule| count(rule.fires(&base, &new, random)))
                })
            }));
        }
        let mut table = format!(
            "Rules, {blocks} runs a side: false positives % / power % for a true change of 2 %\n\
             ({REPEATS} sessions each; standard error {:.1} at 5 %, {:.1} at 80 %)\n\n\
             {:34}{:>13}{:>13}{:>13}{:>13}{:>13}\n{:34}{:>13}{:>13}{:>13}{:>13}{:>13}\n",
            100.0 * standard_error(0.05, REPEATS),
            100.0 * standard_error(0.8, REPEATS),
            "order",
            "AAABBB",
            "AAABBB",
            "random",
            "random",
            "random",
            "noise",
            "drift",
            "+ outliers",
            "iid",
            "drift",
            "+ outliers",
        );
        for (row, rule) in Rule::ALL.into_iter().enumerate() {
            write!(table, "{:34}", rule.name())?;
            for ((order, noise), [wrong, right]) in columns.iter().zip(&found) {
                let (wrong, right) = (wrong[row], right[row]);
                write!(table, "{:>13}", format!("{:.1} / {:.1}", 100.0 * wrong, 100.0 * right))?;
                if rule == Rule::AlignedRank && *order == Order::RandomBlocks {
                    let what = format!("{} blocks, {}", blocks, noise.name());
                    study.limits.false_positives(&what, wrong);
                    if let Some(stated) = stated_power(blocks, *noise) {
                        study.limits.power(&what, right, REPEATS, stated, None);
                    }
                }
            }
            table.push('\n');
        }
        study.print(&table)?;
    }
    Ok(())
}

/// The power that is stated. With 8 blocks, the least for any noise.
fn stated_power(blocks: usize, noise: Noise) -> Option<f64> {
    match (blocks, noise) {
        (8, _) => Some(0.65),
        (10, Noise::Drift) => Some(0.937),
        (10, Noise::Outliers) => Some(0.801),
        (20 | 40, _) => Some(0.98),
        _ => None,
    }
}

/// The table of coverage, and of what lies outside the model.
pub fn coverage(study: &mut Study) -> Result<()> {
    const REPEATS: u32 = 4000;
    let noises = [Noise::Iid, Noise::Drift, Noise::Outliers, Noise::Unequal, Noise::Ticks];
    let mut table = format!(
        "Intervals of 95 % for a true change of 2 %: coverage % (mean half-width %); and false positives %\n\
         ({REPEATS} sessions each; standard error {:.2}. The last two kinds of noise are outside the limits.)\n\n\
         {:22}{:>14}{:>14}{:>14}{:>14}   {}\n",
        100.0 * standard_error(0.05, REPEATS),
        "blocks",
        BLOCKS[0],
        BLOCKS[1],
        BLOCKS[2],
        BLOCKS[3],
        "false positives",
    );
    for noise in noises {
        let mut wrongs = String::new();
        write!(table, "{:22}", noise.name())?;
        for blocks in BLOCKS {
            let name = format!("coverage {blocks} {noise:?}");
            let [covers, half_width, wrong] = means(&name, study.seed, REPEATS, |random| {
                let (base, new) = session(random, blocks, Order::RandomBlocks, noise, CHANGE);
                let Ok(compared) = stats::compare(&base, &new, 0) else { return [0.0; 3] };
                let (low, high) = compared.interval(0.95);
                let (base, new) = session(random, blocks, Order::RandomBlocks, noise, 1.0);
                let wrong = Rule::AlignedRank.fires(&base, &new, random);
                [count(low <= CHANGE && CHANGE <= high), (high - low) / 2.0, count(wrong)]
            });
            write!(table, "{:>14}", format!("{:.1} ({:.2})", 100.0 * covers, 100.0 * half_width))?;
            write!(wrongs, " {:4.1}", 100.0 * wrong)?;
            if Noise::STATED.contains(&noise) {
                study.limits.coverage(format!("{} blocks, {}", blocks, noise.name()), covers);
            }
        }
        writeln!(table, "  {wrongs}")?;
    }
    study.print(&table)
}
