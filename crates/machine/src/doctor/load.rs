//! What else runs on the machine, and what the hypervisor takes, over a second in which kduel does nothing.

use super::{Finding, Subject};
use crate::cpu_ticks::CpuTicks;
use crate::{Root, owner};
use experiment::Facts;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const STEAL: &str = "steal";
const LOAD: &str = "other load";

/// The word of KVM for telling its guests what it takes from them.
const OFFER: &str = "steal-time";
const WATCH: Duration = Duration::from_secs(1);
const LOOKS: u32 = 20;
/// A machine whose CPUs are busy for less than this part of one CPU is called quiet.
const QUIET_CPUS: f64 = 0.05;

/// What was seen over the time of the watch.
#[derive(Debug, Clone, PartialEq)]
struct Watch {
    /// How many CPUs were busy, on average.
    busy_cpus: f64,
    /// How many CPUs there are.
    cpus: f64,
    /// CPU seconds per second that the hypervisor took; `None` where the kernel does not count it.
    stolen_cpus: Option<f64>,
    /// Tasks that ran or wanted to, beside the one that looked, on average.
    running: Option<f64>,
    /// The process that used most, with its share of a CPU.
    busiest: Option<(String, f64)>,
}

pub(super) fn findings(subject: &Subject) -> Vec<Finding> {
    let root = subject.root;
    if !root.is_real() {
        return vec![Finding::of_a_tree(STEAL), Finding::of_a_tree(LOAD)];
    }
    let Some(watch) = watch(root) else {
        let unread = |ability| Finding::unknown(ability, "/proc/stat cannot be read");
        return vec![unread(STEAL), unread(LOAD)];
    };
    let since_boot = ticks(root).and_then(|ticks| ticks.stolen);
    let average = root.text("proc/loadavg").ok().and_then(|text| Some(text.split(' ').next()?.to_string()));
    vec![steal(&watch, since_boot, &subject.facts), load(&watch, average)]
}

fn steal(watch: &Watch, since_boot_ticks: Option<u64>, facts: &Facts) -> Finding {
    let (Some(stolen), Some(since_boot)) = (watch.stolen_cpus, since_boot_ticks) else {
        return Finding::unknown(STEAL, "the kernel does not count it");
    };
    let percent = 100.0 * stolen / watch.cpus.max(1.0);
    let tells =
        facts.paravirtual.as_ref().is_some_and(|offers| offers.split(' ').any(|offer| offer == OFFER));
    match (&facts.hypervisor, since_boot) {
        (None, 0) => Finding::ok(STEAL, "none since boot, and no hypervisor shows itself"),
        (Some(_), 0) if tells => Finding::ok(STEAL, "none since boot, and the hypervisor says that it tells"),
        (Some(_), 0) => {
            Finding::unknown(STEAL, "none since the machine was started: the hypervisor may not tell")
                .advice("Look at the run-to-run noise that the A/A pair of a duel shows.")
        }
        (_, ticks) => {
            let seen = format!("{percent:.1} % of all CPU time in the last second, {ticks} ticks since boot");
            match stolen > 0.0 {
                true => Finding::limited(STEAL, seen)
                    .advice("The host is shared: take dedicated CPUs, or more blocks at another hour."),
                false => Finding::ok(STEAL, seen),
            }
        }
    }
}

fn load(watch: &Watch, average: Option<String>) -> Finding {
    let Watch { busy_cpus, cpus, running, busiest, .. } = watch;
    let mut seen = format!("{busy_cpus:.2} of {cpus:.0} CPUs busy for a second");
    if let Some(running) = running {
        seen += &format!(", {running:.1} other tasks running");
    }
    if let Some(average) = average {
        seen += &format!(", load average {average}");
    }
    if *busy_cpus < QUIET_CPUS {
        return Finding::ok(LOAD, seen);
    }
    if let Some((name, share)) = busiest {
        seen += &format!("; most by {name}: {share:.2}");
    }
    Finding::limited(LOAD, seen).advice("End it or wait for its end: what else runs is noise in every trial.")
}

/// Looks on for a second.
fn watch(root: &Root) -> Option<Watch> {
    // There may be thousands of processes, and to read them all is work that must not count.
    let of_processes = ticks_of_processes(root);
    let before = ticks(root)?;
    let start = Instant::now();
    let looks: Vec<Option<u64>> = (1..=LOOKS)
        .map(|look| {
            std::thread::sleep((WATCH * look / LOOKS).saturating_sub(start.elapsed()));
            others_running(&root.text("proc/loadavg").ok()?)
        })
        .collect();
    let after = ticks(root)?;
    let seconds = start.elapsed().as_secs_f64();
    let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
    let per_s = |before: u64, after: u64| after.saturating_sub(before) as f64 / ticks_per_s / seconds;
    let looks: Option<Vec<u64>> = looks.into_iter().collect();
    let later = ticks_of_processes(root);
    let used = later.into_iter().map(|(process, (name, after))| {
        // One that began meanwhile used all of it meanwhile.
        let before = of_processes.get(&process).map_or(0, |(_, before)| *before);
        (format!("{name} ({})", process.0), per_s(before, after))
    });
    Some(Watch {
        busy_cpus: per_s(before.busy, after.busy),
        cpus: crate::cpus::online(root).map_or(1, |online| online.len().max(1)) as f64,
        stolen_cpus: before.stolen.zip(after.stolen).map(|(before, after)| per_s(before, after)),
        running: looks.map(|looks| looks.iter().sum::<u64>() as f64 / f64::from(LOOKS)),
        busiest: used.filter(|(_, share)| *share > 0.0).max_by(|a, b| a.1.total_cmp(&b.1)),
    })
}

fn ticks(root: &Root) -> Option<CpuTicks> {
    CpuTicks::parse(&root.text("proc/stat").ok()?)
}

/// The first figure of the fourth word counts who runs or wants to, the reader included.
fn others_running(loadavg: &str) -> Option<u64> {
    let running: u64 = loadavg.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()?;
    Some(running.saturating_sub(1))
}

/// The name and the used ticks of each process, by its id and its start.
fn ticks_of_processes(root: &Root) -> BTreeMap<(u32, u64), (String, u64)> {
    let of = |pid: u32| {
        let stat = root.text(format!("proc/{pid}/stat")).ok()?;
        let (start, name, ticks) = parse_process(&stat)?;
        (pid != std::process::id()).then_some(((pid, start), (name, ticks)))
    };
    owner::all_pids(root).into_iter().filter_map(of).collect()
}

/// The start, the name and the used ticks in a stat file of a process.
fn parse_process(stat: &str) -> Option<(u64, String, u64)> {
    // The name stands in parentheses and may hold anything, parentheses included.
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Fields 14, 15 and 22 of the manual; the state behind the name is its field 3.
    Some((field(19)?, name.to_string(), field(11)?.saturating_add(field(12)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;
    use proptest::prelude::*;

    const QUIET: Watch =
        Watch { busy_cpus: 0.01, cpus: 4.0, stolen_cpus: Some(0.0), running: Some(0.0), busiest: None };

    #[test]
    fn a_guest_whose_hypervisor_tells_nothing_is_not_called_free_of_steal() {
        let machine = Facts::default();
        let guest = Facts { hypervisor: Some("KVM".into()), ..Facts::default() };
        let told = Facts { paravirtual: Some("kvmclock steal-time".into()), ..guest.clone() };
        assert_eq!(steal(&QUIET, Some(0), &guest).state, State::Unknown);
        assert_eq!(steal(&QUIET, Some(0), &told).state, State::Ok);
        assert_eq!(steal(&QUIET, Some(0), &machine).state, State::Ok);
        assert_eq!(steal(&QUIET, Some(5), &guest).state, State::Ok);
        assert_eq!(steal(&QUIET, None, &machine).state, State::Unknown);
        let stolen = steal(&Watch { stolen_cpus: Some(0.4), ..QUIET }, Some(5), &guest);
        assert_eq!(stolen.state, State::Limited);
        assert!(stolen.seen.starts_with("10.0 % "), "{stolen:?}");
    }

    #[test]
    fn the_busiest_process_is_named_on_a_machine_that_is_not_quiet() {
        assert_eq!(load(&QUIET, None).state, State::Ok);
        let busiest = Some(("cc1 (77)".to_string(), 0.98));
        let busy = load(&Watch { busy_cpus: 1.5, busiest, ..QUIET }, Some("1.07".into()));
        assert_eq!(busy.state, State::Limited);
        assert!(busy.seen.contains("most by cc1 (77): 0.98"), "{busy:?}");
    }

    #[test]
    fn figures_of_processes_are_found_behind_any_name() {
        let stat = "12 (a) b (c) R 1 12 12 0 -1 4194560 100 0 0 0 30 12 0 0 20 0 1 0 987 1 2 3";
        assert_eq!(parse_process(stat), Some((987, "a) b (c".into(), 42)));
        for torn in ["", "12", "12 (a", "12 (a) R 1", "12 a) R", ") ("] {
            assert_eq!(parse_process(torn), None, "{torn}");
        }
        assert_eq!(others_running("0.00 0.01 0.05 3/812 4711"), Some(2));
        assert_eq!(others_running("0.00 0.01"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_passed_over(text in "[0-9() /RS]{0,60}|\\PC{0,40}") {
            let _ = (parse_process(&text), others_running(&text), CpuTicks::parse(&format!("cpu {text}")));
        }
    }
}
