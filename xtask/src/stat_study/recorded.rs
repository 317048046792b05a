//! The test on recorded values of a baseline and its twin.
use super::Study;
use super::noise::Random;
use super::simulate::{count, means, standard_error};
use anyhow::{Context, Result, bail};
use rand::RngExt;
use std::fmt::Write as _;
use std::path::Path;

const REPEATS: u32 = 5000;

/// Prints how often the test fires on random blocks of a file.
pub fn recorded(study: &mut Study, path: &Path) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (base, twin) = pairs(&text).with_context(|| path.display().to_string())?;
    let whole = stats::compare(&base, &twin, study.seed).with_context(|| path.display().to_string())?;
    let (low, high) = whole.interval(0.95);
    let mut table = format!(
        "{}: {} blocks; twin against baseline {:.4} ({low:.4} to {high:.4}), p {:.3}\n\
         How often p <= .05 on random blocks of them, kept in their order ({REPEATS} draws each; standard\n\
         error {:.1} at 5 %, but draws of more than a few of the blocks resemble each other):\n\n",
        path.display(),
        base.len(),
        whole.estimate(),
        whole.p(),
        100.0 * standard_error(0.05, REPEATS),
    );
    for blocks in [8, 10, 20, 40].into_iter().filter(|blocks| *blocks < base.len()) {
        let name = format!("recorded {blocks} {}", path.display());
        let [fires] = means(&name, study.seed, REPEATS, |random| {
            let chosen = choose(random, base.len(), blocks);
            let of = |side: &[f64]| -> Vec<f64> { chosen.iter().map(|block| side[*block]).collect() };
            [count(stats::compare(&of(&base), &of(&twin), 0).is_ok_and(|compared| compared.p() <= 0.05))]
        });
        writeln!(table, "{blocks:5} blocks: {:5.1} %", 100.0 * fires)?;
    }
    study.print(&table)
}

/// Reads a pair of numbers from each line. Empty lines and those that begin with `#` are none.
fn pairs(text: &str) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut pairs = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let fields: Vec<f64> = line
            .split_whitespace()
            .map(|field| {
                field.parse().with_context(|| format!("line {}: `{field}` is no number", number + 1))
            })
            .collect::<Result<_>>()?;
        let [base, twin] = fields[..] else {
            bail!(
                "line {}: two numbers are needed, the baseline's and its twin's; there are {}",
                number + 1,
                fields.len()
            );
        };
        pairs.0.push(base);
        pairs.1.push(twin);
    }
    if pairs.0.len() <= 8 {
        bail!("more than 8 blocks are needed to draw from, and there are {}", pairs.0.len());
    }
    Ok(pairs)
}

/// `some` of the numbers below `all`, in ascending order, each set as likely as any other.
fn choose(random: &mut Random, all: usize, some: usize) -> Vec<usize> {
    let mut chosen = Vec::with_capacity(some);
    for candidate in 0..all {
        let wanted = some - chosen.len();
        if random.random_range(0..all - candidate) < wanted {
            chosen.push(candidate);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn lines_are_pairs_and_errors_name_the_line() {
        let good = "# base twin\n1 2\n\n3.5 4e3\n".to_string() + &"5 6\n".repeat(8);
        let (base, twin) = pairs(&good).unwrap();
        assert_eq!((base.len(), base[1], twin[1]), (10, 3.5, 4000.0));
        assert!(pairs("1 2\n3\n").unwrap_err().to_string().starts_with("line 2: two numbers"));
        assert!(pairs("1 x\n").unwrap_err().to_string().starts_with("line 1: `x`"));
        assert!(pairs("1 2\n").unwrap_err().to_string().starts_with("more than 8"));
    }

    #[test]
    fn chosen_blocks_are_distinct_and_in_order() {
        let mut random = Random::seed_from_u64(1);
        for _ in 0..100 {
            let chosen = choose(&mut random, 12, 9);
            assert!(chosen.len() == 9 && chosen.windows(2).all(|pair| pair[0] < pair[1]) && chosen[8] < 12);
        }
    }
}
