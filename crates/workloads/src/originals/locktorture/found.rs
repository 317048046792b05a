//! What locktorture writes into the kernel log.

use crate::fairness::leave_unfairness;
use crate::{Failure, Trial};

/// What it wrote at its end.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    writes: Counts,
    reads: Option<Counts>,
    /// From its start to its last count, by the stamps of the log: its threads run until it is removed, and go on until
    /// the last hold is over.
    elapsed_us: u64,
}

/// A line of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    total: u64,
    most: u64,
    least: u64,
    failures: u64,
}

impl Found {
    /// Reads the lines that the kernel logged meanwhile.
    ///
    /// # Errors
    /// When locktorture found its lock broken, and when it does not say how it ended.
    pub fn read(lines: &[String]) -> Result<Found, Failure> {
        let last = |word| lines.iter().rev().find_map(|line| Counts::read(line, word));
        let result = lines.iter().rev().find_map(|line| line.split_once("End of test: ")).map(|(_, rest)| {
            rest.split(|c: char| c == ':' || c.is_whitespace()).next().unwrap_or_default().to_string()
        });
        let (Some(writes), Some(result)) = (last("Writes"), result) else {
            let torture = lines.iter().rev().find(|line| line.contains("torture"));
            return Err(Failure::Refused(format!(
                "locktorture did not say how it ended; its last line in the kernel log: {}",
                torture.map_or("none", String::as_str)
            )));
        };
        let at = |words: &str| {
            lines.iter().rev().find(|line| line.contains(words)).and_then(|line| stamp_us(line))
        };
        let elapsed_us = at("Start of test").and_then(|start| at("Writes:")?.checked_sub(start));
        let Some(elapsed_us) = elapsed_us.filter(|elapsed_us| *elapsed_us > 0) else {
            return Err(Failure::Refused(
                "the kernel log does not say when locktorture began; more was logged than it holds".into(),
            ));
        };
        let found = Found { writes, reads: last("Reads"), elapsed_us };
        let failures = writes.failures + found.reads.map_or(0, |reads| reads.failures);
        if failures > 0 || result == "FAILURE" {
            return Err(Failure::Invariant(format!(
                "locktorture ended with {result}: in {failures} acquisitions of {} a thread was not alone under the lock",
                writes.total + found.reads.map_or(0, |reads| reads.total)
            )));
        }
        Ok(found)
    }

    /// Leaves it in `trial`.
    ///
    /// # Errors
    /// When it counted nothing.
    pub fn leave(&self, trial: &mut Trial) -> Result<(), Failure> {
        let Counts { total, most, least, .. } = self.writes;
        let elapsed_s = self.elapsed_us as f64 / 1e6;
        if total == 0 {
            return Err(Failure::Invariant(format!("locktorture counted nothing in {elapsed_s} s")));
        }
        trial.sample("rate", total as f64 / elapsed_s)?;
        leave_unfairness(most, least, trial)?;
        if let Some(reads) = self.reads {
            trial.sample("read-rate", reads.total as f64 / elapsed_s)?;
        }
        trial.counter("acquisitions", total as f64);
        trial.counter("failures", 0.0);
        Ok(())
    }
}

impl Counts {
    /// The counts in a line such as `Writes:  Total: 93746064  Max/Min: 0/0   Fail: 0`.
    fn read(line: &str, word: &str) -> Option<Counts> {
        let (_, line) = line.split_once(word)?;
        let (_, line) = line.split_once(':')?;
        let after = |name: &str| line.split_once(name).and_then(|(_, rest)| rest.split_whitespace().next());
        let (most, least) = after("Max/Min:")?.split_once('/')?;
        Some(Counts {
            total: after("Total:")?.parse().ok()?,
            most: most.parse().ok()?,
            least: least.parse().ok()?,
            failures: after("Fail:")?.parse().ok()?,
        })
    }
}

/// The time in a line such as `[    2.160602] spin_lock-torture:--- Start of test`.
fn stamp_us(line: &str) -> Option<u64> {
    let (stamp, _) = line.strip_prefix('[')?.split_once(']')?;
    let (s, us) = stamp.trim().split_once('.')?;
    s.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(us.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_string).collect()
    }

    #[test]
    fn the_last_counts_before_the_end_are_read() {
        let log = "[    2.160602] spin_lock-torture:--- Start of test: acq_writer_lim=0 nwriters_stress=4\n\
                   [    3.100000] Writes:  Total: 500  Max/Min: 200/40 ???  Fail: 0 \n\
                   [    4.000000] eth0: link is up\n\
                   [    4.660602] Writes:  Total: 93746064  Max/Min: 23500000/23400000   Fail: 0 \n\
                   [    4.660700] Reads :  Total: 71  Max/Min: 40/31   Fail: 0 \n\
                   [    4.660800] spin_lock-torture:--- End of test: SUCCESS: acq_writer_lim=0 nwriters_stress=4";
        let found = Found::read(&lines(log)).unwrap();
        let writes = Counts { total: 93_746_064, most: 23_500_000, least: 23_400_000, failures: 0 };
        let reads = Counts { total: 71, most: 40, least: 31, failures: 0 };
        assert_eq!(found, Found { writes, reads: Some(reads), elapsed_us: 2_500_000 });
        let mut trial = Trial::new(experiment::Point::from(4), vec![0], 1);
        found.leave(&mut trial).unwrap();
        let experiment::Outcome::Done { samples, .. } = trial.into_outcome() else { panic!() };
        assert_eq!((samples["rate"][0], samples["read-rate"][0]), (93_746_064.0 / 2.5, 71.0 / 2.5));
        let old = "[   10.000000] spin_lock-torture:--- Start of test: nwriters_stress=4\n\
                   [   12.000001] spin_lock-torture: Writes:  Total: 7  Max/Min: 4/3   Fail: 0 \n\
                   [   12.300000] spin_lock-torture:--- End of test: LOCK_HOTPLUG: nwriters_stress=4";
        assert_eq!(Found::read(&lines(old)).unwrap().writes.total, 7);
    }

    #[test]
    fn a_log_that_has_lost_the_start_yields_no_rate() {
        let end = "[   12.000001] Writes:  Total: 7  Max/Min: 4/3   Fail: 0 \n\
                   [   12.300000] spin_lock-torture:--- End of test: SUCCESS: nwriters_stress=4";
        for start in ["", "no stamp Start of test\n", "[   12.000001] x-torture:--- Start of test: a=b\n"] {
            let error = Found::read(&lines(&format!("{start}{end}"))).unwrap_err().to_string();
            assert!(error.contains("when locktorture began"), "{start}: {error}");
        }
    }

    #[test]
    fn a_broken_lock_of_the_kernel_is_an_invariant_failure() {
        let log = "[   10.000000] lock_busted-torture:--- Start of test: nwriters_stress=2\n\
                   [   12.100000] Writes:  Total: 12  Max/Min: 7/5   Fail: 3 !!!\n\
                   [   12.300000] lock_busted-torture:--- End of test: FAILURE: nwriters_stress=2";
        let error = Found::read(&lines(log)).unwrap_err();
        assert!(
            matches!(&error, Failure::Invariant(why) if why.contains("FAILURE: in 3 acquisitions of 12")),
            "{error}"
        );
    }

    #[test]
    fn a_log_without_an_end_is_quoted() {
        let log = "[    9.9] lock-torture: invalid torture type: \"spin\"\n[   10.0] something else";
        let error = Found::read(&lines(log)).unwrap_err().to_string();
        assert!(error.contains("invalid torture type"), "{error}");
        assert!(Found::read(&[]).unwrap_err().to_string().contains("none"));
    }
}
