//! Runs that stop as soon as they are decided.
use super::Study;
use super::noise::{Noise, Order, session};
use super::simulate::{count, means, standard_error};
use anyhow::Result;
use stats::{Comparison, LOOKS};
use std::fmt::Write as _;

const MARGIN: f64 = 0.02;

/// The end of a run by the four looks.
enum End {
    Difference,
    Same,
    Undecided,
}

/// The table of runs that end in a difference or in "same".
pub fn until_decided(study: &mut Study) -> Result<()> {
    const REPEATS: u32 = 2000;
    // The power stated, as measured in 120 experiments each: ends in a difference, by change and noise.
    let stated = [
        (1.0, [None; 3]),
        (1.005, [None; 3]),
        (1.01, [Some(0.517), Some(0.617), Some(0.508)]),
        (1.02, [Some(0.992), Some(0.992), Some(0.983)]),
        (1.03, [Some(1.0), Some(1.0), Some(1.0)]),
    ];
    let mut table = format!(
        "Four looks, margin 2 %: ends in a difference / in \"same\" / undecided, %; mean blocks used\n\
         ({REPEATS} runs each; standard error {:.1} at 5 %, {:.1} at 50 %)\n\n\
         {:12}{:>28}{:>28}{:>28}\n",
        100.0 * standard_error(0.05, REPEATS),
        100.0 * standard_error(0.5, REPEATS),
        "true change",
        "iid",
        "drift",
        "drift and outliers",
    );
    for (effect, stated) in stated {
        write!(table, "{:12}", format!("{:.1} %", 100.0 * (effect - 1.0)))?;
        for (noise, stated) in Noise::STATED.into_iter().zip(stated) {
            let name = format!("until decided {effect} {noise:?}");
            let [difference, same, undecided, blocks] = means(&name, study.seed, REPEATS, |random| {
                let (base, new) = session(random, LOOKS[3].0, Order::RandomBlocks, noise, effect);
                let (end, blocks) = run(&base, &new);
                let [difference, same] =
                    [matches!(end, End::Difference), matches!(end, End::Same)].map(count);
                [difference, same, 1.0 - difference - same, blocks as f64]
            });
            let shares =
                [difference, same, undecided].map(|share| format!("{:.1}", 100.0 * share)).join(" / ");
            write!(table, "{:>28}", format!("{shares}, {blocks:4.1}"))?;
            let what = format!("four looks, change {:.1} %, {}", 100.0 * (effect - 1.0), noise.name());
            if effect == 1.0 {
                study.limits.false_positives(&what, difference);
            }
            if let Some(stated) = stated {
                study.limits.power(&what, difference, REPEATS, stated, Some(120));
            }
        }
        table.push('\n');
    }
    study.print(&table)
}

/// One run, as `--until-decided` does it: its end, and the blocks it took.
fn run(base: &[f64], new: &[f64]) -> (End, usize) {
    for (blocks, level) in LOOKS {
        let Ok(compared) = stats::compare(&base[..blocks], &new[..blocks], 0) else { continue };
        if compared.p() <= level {
            return (End::Difference, blocks);
        }
        if is_same(&compared, level, MARGIN) {
            return (End::Same, blocks);
        }
    }
    (End::Undecided, base.len())
}

fn is_same(compared: &Comparison, level: f64, margin: f64) -> bool {
    let (low, high) = compared.interval(1.0 - 2.0 * level);
    low >= 1.0 - margin && high <= 1.0 + margin
}

/// The p value of all looks together, and what becomes of those who look after every block.
pub fn repeated_tests(study: &mut Study) -> Result<()> {
    const REPEATS: u32 = 10_000;
    const THRESHOLDS: [f64; 5] = [0.05, 0.025, 0.01, 0.005, 0.00132];
    let mut table = format!(
        "Variants that do not differ, 40 blocks: how often the p value of the four looks together (no stop\n\
         for \"same\") is at most u, in %; and how often a look after every block finds p <= .05 once\n\
         ({REPEATS} runs each; standard error {:.2} at 5 %)\n\n\
         {:22}{:>9}{:>9}{:>9}{:>9}{:>9}{:>20}\n",
        100.0 * standard_error(0.05, REPEATS),
        "u %",
        5,
        2.5,
        1,
        0.5,
        0.132,
        "after every block",
    );
    for noise in Noise::STATED {
        let found: [f64; 6] = means(&format!("looks {noise:?}"), study.seed, REPEATS, |random| {
            let (base, new) = session(random, LOOKS[3].0, Order::RandomBlocks, noise, 1.0);
            let p = |blocks: usize| stats::compare(&base[..blocks], &new[..blocks], 0).map_or(1.0, |c| c.p());
            let overall = stats::sequential_p(&LOOKS.map(|(blocks, _)| (blocks, p(blocks))));
            let mut figures = [0.0; 6];
            figures[5] = count((stats::MIN_BLOCKS..=LOOKS[3].0).any(|blocks| p(blocks) <= 0.05));
            figures.iter_mut().zip(THRESHOLDS).for_each(|(figure, u)| *figure = count(overall <= u));
            figures
        });
        write!(table, "{:22}", noise.name())?;
        found[..5].iter().try_for_each(|share| write!(table, "{:>9.2}", 100.0 * share))?;
        writeln!(table, "{:>20.1}", 100.0 * found[5])?;
        study.limits.false_positives(format!("four looks without \"same\", {}", noise.name()), found[0]);
    }
    study.print(&table)
}

/// How good the estimate of the blocks still needed is.
pub fn blocks_needed(study: &mut Study) -> Result<()> {
    const REPEATS: u32 = 1000;
    const AT: usize = 8;
    const MOST: usize = 200;
    /// Narrow, so that it takes several times the eight blocks to decide.
    const MARGIN: f64 = 0.007;
    let mut table = format!(
        "Undecided after {AT} blocks (level .05, margin 0.7 %): the blocks that stats::blocks_needed names, in the\n\
         mean, and how often the same run is decided when it has them, where 80 % is the aim\n\
         ({REPEATS} runs each, those that {AT} blocks decide or that are to need more than {MOST} left out)\n\n\
         {:12}{:>28}{:>28}\n",
        "true change", "drift", "drift and outliers",
    );
    for effect in [1.0, 1.0035, 1.007] {
        write!(table, "{:12}", format!("{:.2} %", 100.0 * (effect - 1.0)))?;
        for noise in [Noise::Drift, Noise::Outliers] {
            let name = format!("blocks needed {effect} {noise:?}");
            let [asked, needed, decided] = means(&name, study.seed, REPEATS, |random| {
                let (base, new) = session(random, MOST, Order::RandomBlocks, noise, effect);
                let compared = |blocks: usize| stats::compare(&base[..blocks], &new[..blocks], 0).ok();
                let is_decided = |c: &Comparison| c.p() <= 0.05 || is_same(c, 0.05, MARGIN);
                let needed = compared(AT)
                    .filter(|c| !is_decided(c))
                    .and_then(|c| stats::blocks_needed(&c, 0.05, MARGIN))
                    .filter(|needed| *needed <= MOST);
                let decided = |needed| count(compared(needed).is_some_and(|c| is_decided(&c)));
                needed.map_or([0.0; 3], |needed| [1.0, needed as f64, decided(needed)])
            });
            write!(
                table,
                "{:>28}",
                format!("{:.0} blocks, {:.0} %", needed / asked, 100.0 * decided / asked)
            )?;
        }
        table.push('\n');
    }
    study.print(&table)
}
