//! The clock by which everything is measured.

use super::{Finding, Subject};
use crate::{CpuSet, cpus};
use rustix::time::{ClockId, clock_gettime};

const ABILITY: &str = "clock";
const SOURCE: &str = "sys/devices/system/clocksource/clocksource0";
/// Clocks outside the CPU, each reading of which takes a microsecond and makes CPUs wait for each other.
const SLOW: &[&str] = &["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];
/// What a reading may take. Without the kernel's help in user space, each is a system call.
const READING_MAX_NS: f64 = 200.0;
const BATCHES: u32 = 20;
const READINGS: u32 = 500;
/// As many CPUs are visited, three times around.
const CPUS_VISITED: usize = 128;
/// What the kernel logs when it takes a clock source out of use.
pub(super) const LOG_WORDS: &[&str] = &["Marking clocksource", "Marking TSC unstable", "TSC unstable"];

/// What was measured of the clock on the machine itself.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// The shortest mean time of a reading.
    reading_ns: f64,
    /// How far the clock ran backwards from one CPU to the next, at most.
    backwards_ns: u64,
    /// The CPUs that were visited.
    visited: usize,
}

pub(super) fn finding(subject: &Subject) -> Finding {
    let Some(current) = &subject.facts.clocksource else {
        return Finding::unknown(ABILITY, "the kernel does not say by which clock it goes");
    };
    let available = subject.root.text(format!("{SOURCE}/available_clocksource")).unwrap_or_default();
    let unstable = subject.log.iter().flatten().find(|line| LOG_WORDS.iter().any(|word| line.contains(word)));
    judge(current, &available, unstable.map(String::as_str), subject.root.is_real().then(measure).as_ref())
}

fn judge(current: &str, available: &str, unstable: Option<&str>, measured: Option<&Measured>) -> Finding {
    let mut seen = current.to_string();
    if let Some(measured) = measured {
        seen += &format!(", {:.0} ns a reading", measured.reading_ns);
        seen += &match (measured.backwards_ns, measured.visited) {
            // There were none between which it could differ.
            (0, 0 | 1) => String::new(),
            (0, visited) => format!(", forwards on all of {visited} CPUs"),
            (ns, _) => format!(", backwards by {ns} ns between CPUs"),
        };
    }
    if let Some(line) = unstable {
        seen += &format!("; the kernel logged `{line}`");
    }
    if measured.is_some_and(|measured| measured.backwards_ns > 0) {
        return Finding::no(ABILITY, seen).advice(
            "No figure of this machine can be trusted. Update the firmware, or boot with clocksource=hpet.",
        );
    }
    let is_slow =
        SLOW.contains(&current) || measured.is_some_and(|measured| measured.reading_ns > READING_MAX_NS);
    if !is_slow {
        return Finding::ok(ABILITY, seen);
    }
    let faster = available.split_whitespace().find(|name| *name != current && !SLOW.contains(name));
    match faster {
        Some(faster) => Finding::limited(ABILITY, format!("{seen}: readings are slow"))
            .command(format!("echo {faster} > /{SOURCE}/current_clocksource")),
        None if SLOW.contains(&current) => Finding::limited(ABILITY, format!("{seen}: readings are slow"))
            .advice("The kernel has no faster one. If the TSC is known to be good, boot with tsc=reliable."),
        None => Finding::limited(ABILITY, format!("{seen}: readings are slow")).advice(
            "There is no faster one here: believe figures of long sections, not of single operations.",
        ),
    }
}

fn measure() -> Measured {
    let reading_ns = (0..BATCHES)
        .map(|_| {
            let start = now_ns();
            for _ in 0..READINGS {
                std::hint::black_box(now_ns());
            }
            now_ns().saturating_sub(start) as f64 / f64::from(READINGS)
        })
        .fold(f64::MAX, f64::min);
    // A thread of its own, since it ends up pinned.
    let (backwards_ns, visited) = std::thread::spawn(visit_cpus).join().unwrap_or((0, 0));
    Measured { reading_ns, backwards_ns, visited }
}

/// Reads the clock on one CPU after the other: a later reading must not be smaller.
fn visit_cpus() -> (u64, usize) {
    let allowed = cpus::allowed().map(|cpus| cpus.to_vec()).unwrap_or_default();
    let cpus: Vec<u32> = allowed.into_iter().take(CPUS_VISITED).collect();
    let (mut last, mut backwards, mut visited) = (0_u64, 0, CpuSet::new());
    for cpu in cpus.iter().cycle().take(3 * cpus.len()) {
        if cpus::pin_thread(&CpuSet::one(*cpu)).is_ok() {
            visited.insert(*cpu);
            let now = now_ns();
            backwards = backwards.max(last.saturating_sub(now));
            last = now;
        }
    }
    (backwards, visited.len())
}

/// The clock of all workloads.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicRaw);
    u64::try_from(now.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Remedy, State};

    const GOOD: Measured = Measured { reading_ns: 25.0, backwards_ns: 0, visited: 8 };

    #[test]
    fn m14_a_clock_that_runs_backwards_between_cpus_is_no_clock() {
        let finding = judge("tsc", "tsc hpet", None, Some(&Measured { backwards_ns: 7, ..GOOD }));
        assert_eq!(finding.state, State::No);
        assert!(finding.seen.contains("backwards by 7 ns"), "{finding:?}");
        assert_eq!(judge("tsc", "tsc hpet", None, Some(&GOOD)).state, State::Ok);
        // Where no thread could be pinned nothing is said of other CPUs.
        let unpinned = judge("tsc", "tsc hpet", None, Some(&Measured { visited: 0, ..GOOD }));
        assert_eq!((unpinned.state, unpinned.seen.as_str()), (State::Ok, "tsc, 25 ns a reading"));
    }

    #[test]
    fn m14_a_slow_clock_names_the_faster_one_and_why_it_is_not_in_use() {
        let line = "clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable";
        let finding = judge("hpet", "tsc hpet acpi_pm", Some(line), None);
        assert_eq!(finding.state, State::Limited);
        assert!(finding.seen.contains("as unstable"), "{finding:?}");
        assert_eq!(
            finding.remedy,
            Some(Remedy::Command(format!("echo tsc > /{SOURCE}/current_clocksource")))
        );
        // Slow by what a reading takes, whatever its name.
        let finding = judge("xen", "xen", None, Some(&Measured { reading_ns: 900.0, ..GOOD }));
        assert!(matches!(finding.remedy, Some(Remedy::Advice(_))), "{finding:?}");
    }

    #[test]
    fn the_clock_of_this_machine_is_measured() {
        let measured = measure();
        assert!(measured.reading_ns.is_finite() && measured.visited > 0, "{measured:?}");
    }
}
