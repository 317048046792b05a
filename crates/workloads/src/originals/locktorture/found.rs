//! What locktorture writes into the kernel log.

use crate::fairness::leave_unfairness;
use crate::{Failure, Trial};

/// What it wrote at its end.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    writes: Counts,
    reads: Option<Counts>,
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
        let found = Found { writes, reads: last("Reads") };
        let failures = writes.failures + found.reads.map_or(0, |reads| reads.failures);
        if failures > 0 || result == "FAILURE" {
            return Err(Failure::Invariant(format!(
                "locktorture ended with {result}: in {failures} acquisitions of {} a thread was not alone under the lock",
                writes.total + found.reads.map_or(0, |reads| reads.total)
            )));
        }
        Ok(found)
    }

    /// Leaves it in `trial` as what was done in `elapsed_s`.
    ///
    /// # Errors
    /// When the clock went backwards.
    pub fn leave(&self, elapsed_s: f64, trial: &mut Trial) -> Result<(), Failure> {
        let Counts { total, most, least, .. } = self.writes;
        if elapsed_s <= 0.0 {
            return Err(Failure::Invariant(format!("locktorture ran for {elapsed_s} s by the clock")));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_string).collect()
    }

    #[test]
    fn the_last_counts_before_the_end_are_read() {
        let log = "[   10.1] spin_lock-torture:--- Start of test: acq_writer_lim=0 nwriters_stress=4\n\
                   [   11.1] Writes:  Total: 500  Max/Min: 200/40 ???  Fail: 0 \n\
                   [   12.0] eth0: link is up\n\
                   [   12.1] Writes:  Total: 93746064  Max/Min: 23500000/23400000   Fail: 0 \n\
                   [   12.2] Reads :  Total: 71  Max/Min: 40/31   Fail: 0 \n\
                   [   12.3] spin_lock-torture:--- End of test: SUCCESS: acq_writer_lim=0 nwriters_stress=4";
        let found = Found::read(&lines(log)).unwrap();
        let writes = Counts { total: 93_746_064, most: 23_500_000, least: 23_400_000, failures: 0 };
        assert_eq!(
            found,
            Found { writes, reads: Some(Counts { total: 71, most: 40, least: 31, failures: 0 }) }
        );
        let old = "[   12.1] spin_lock-torture: Writes:  Total: 7  Max/Min: 4/3   Fail: 0 \n\
                   [   12.3] spin_lock-torture:--- End of test: LOCK_HOTPLUG: nwriters_stress=4";
        assert_eq!(Found::read(&lines(old)).unwrap().writes.total, 7);
    }

    #[test]
    fn a_broken_lock_of_the_kernel_is_an_invariant_failure() {
        let log = "[   12.1] Writes:  Total: 12  Max/Min: 7/5   Fail: 3 !!!\n\
                   [   12.3] lock_busted-torture:--- End of test: FAILURE: nwriters_stress=2";
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
