//! Counting and profiling: the CPU's counters, the software clock, and what this user may watch.

use super::perf_event::{Counted, Event, Watched, count};
use super::{Finding, Subject};
use crate::Root;
use std::io;

const PMU: &str = "PMU";
const CLOCK: &str = "software clock";
const PERMISSIONS: &str = "perf permissions";
const WITHOUT_PMU: &str = "Profiles take the software clock instead. In a VM the hypervisor must pass on a PMU \
                           (QEMU: -cpu host); some clouds have one only on whole machines.";
const WITHOUT_CLOCK: &str =
    "Without it and without a PMU nothing can be profiled here; duels go on as before.";

/// Whether cycles and instructions can be counted, by counting some.
pub(super) fn pmu(subject: &Subject) -> Finding {
    match subject.root.is_real() {
        true => judge_pmu(
            count(Event::Cycles, Watched::UserMode),
            count(Event::Instructions, Watched::UserMode),
            paranoid(subject.root),
        ),
        false => listed_pmu(subject.facts.pmu.as_deref()),
    }
}

fn judge_pmu(
    cycles: io::Result<Counted>,
    instructions: io::Result<Counted>,
    paranoid: Option<i64>,
) -> Finding {
    match (cycles, instructions) {
        (Ok(cycles), Ok(instructions)) if cycles.value > 0 && instructions.value > 0 => Finding::ok(
            PMU,
            format!(
                "counted {} cycles and {} instructions in {:.1} ms",
                cycles.value,
                instructions.value,
                cycles.running_ns as f64 / 1e6
            ),
        ),
        (Ok(cycles), Ok(_)) if cycles.running_ns == 0 => {
            Finding::limited(PMU, "the counters open and are never scheduled: something else holds them")
                .command("sysctl -w kernel.nmi_watchdog=0")
        }
        // Some hypervisors take the registers and count nothing.
        (Ok(_), Ok(_)) => Finding::no(PMU, "the counters open and stay at zero").advice(WITHOUT_PMU),
        (Ok(_), Err(error)) => Finding::limited(PMU, format!("cycles count, instructions do not: {error}"))
            .advice("Shares of time are right; work per instruction cannot be told."),
        (Err(error), _) => match error.raw_os_error() {
            Some(libc::ENOSYS) => no_perf_events(PMU),
            Some(libc::EACCES | libc::EPERM) => not_permitted(PMU, paranoid),
            _ => Finding::no(PMU, format!("a counter of cycles does not open: {error}")).advice(WITHOUT_PMU),
        },
    }
}

/// What a tree says: the kernel lists each PMU that it drives.
fn listed_pmu(listed: Option<&[String]>) -> Finding {
    match listed {
        None => Finding::of_a_tree(PMU),
        Some([]) => Finding::no(PMU, "the kernel lists no PMU of its CPUs").advice(WITHOUT_PMU),
        Some(names) => {
            Finding::unknown(PMU, format!("the kernel lists {}; not tried here", names.join(", ")))
        }
    }
}

/// Whether there is a timer to sample by.
pub(super) fn software_clock(root: &Root) -> Finding {
    if !root.is_real() {
        return Finding::of_a_tree(CLOCK);
    }
    match count(Event::CpuClock, Watched::UserMode) {
        Ok(counted) if counted.value > 0 => {
            Finding::ok(CLOCK, format!("counted {:.1} ms of CPU time", counted.value as f64 / 1e6))
        }
        Ok(_) => Finding::no(CLOCK, "it opens and stays at zero").advice(WITHOUT_CLOCK),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOSYS) => no_perf_events(CLOCK),
            Some(libc::EACCES | libc::EPERM) => not_permitted(CLOCK, paranoid(root)),
            _ => Finding::no(CLOCK, format!("it does not open: {error}")).advice(WITHOUT_CLOCK),
        },
    }
}

/// How much of the machine this user may watch.
pub(super) fn permissions(root: &Root) -> Finding {
    if !root.is_real() {
        return match paranoid(root) {
            Some(level) => {
                let seen = format!("kernel.perf_event_paranoid is {level}; not tried here");
                Finding::unknown(PERMISSIONS, seen)
            }
            None => Finding::of_a_tree(PERMISSIONS),
        };
    }
    let may = |watched| count(Event::CpuClock, watched);
    judge_permissions(may(Watched::UserMode), may(Watched::KernelMode), may(Watched::Machine), paranoid(root))
}

fn judge_permissions(
    user: io::Result<Counted>,
    kernel: io::Result<Counted>,
    machine: io::Result<Counted>,
    paranoid: Option<i64>,
) -> Finding {
    let level = match paranoid {
        Some(level) => format!("; kernel.perf_event_paranoid is {level}"),
        None => String::new(),
    };
    match (user, kernel, machine) {
        (Ok(_), Ok(_), Ok(_)) => {
            Finding::ok(PERMISSIONS, format!("opened: own tasks, the kernel below them, all CPUs{level}"))
        }
        (Ok(_), Ok(_), Err(_)) => {
            Finding::ok(PERMISSIONS, format!("opened: own tasks and the kernel below them{level}"))
        }
        (Ok(_), Err(_), _) => {
            Finding::limited(PERMISSIONS, format!("opened: own tasks in user mode, not the kernel{level}"))
                .command("sysctl -w kernel.perf_event_paranoid=1")
        }
        (Err(error), ..) => match error.raw_os_error() {
            Some(libc::ENOSYS) => no_perf_events(PERMISSIONS),
            _ => not_permitted(PERMISSIONS, paranoid),
        },
    }
}

fn no_perf_events(ability: &'static str) -> Finding {
    Finding::no(ability, "the kernel has no perf_event_open")
        .advice("Boot a kernel that was built with CONFIG_PERF_EVENTS.")
}

fn not_permitted(ability: &'static str, paranoid: Option<i64>) -> Finding {
    match paranoid {
        // Debian's and Android's kernels have a level 3 that forbids everything.
        Some(level) if level > 2 => {
            Finding::no(ability, format!("not permitted; kernel.perf_event_paranoid is {level}"))
                .command("sysctl -w kernel.perf_event_paranoid=1")
        }
        _ => Finding::no(
            ability,
            "not permitted, though kernel.perf_event_paranoid allows it: a filter of system calls",
        )
        .advice("In a container allow perf_event_open (Docker: --cap-add PERFMON)."),
    }
}

fn paranoid(root: &Root) -> Option<i64> {
    root.text("proc/sys/kernel/perf_event_paranoid").ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Remedy, State};

    fn counted(value: u64, running_ns: u64) -> io::Result<Counted> {
        Ok(Counted { value, running_ns })
    }

    fn refused(code: i32) -> io::Result<Counted> {
        Err(io::Error::from_raw_os_error(code))
    }

    #[test]
    fn k5_counters_that_stay_at_zero_are_no_pmu() {
        let finding = judge_pmu(counted(0, 2_000_000), counted(0, 2_000_000), Some(2));
        assert_eq!(finding.state, State::No, "{finding:?}");
        let finding = judge_pmu(counted(7, 1_000_000), counted(9, 1_000_000), Some(2));
        assert_eq!(finding.state, State::Ok);
        assert!(finding.seen.contains("7 cycles and 9 instructions in 1.0 ms"), "{finding:?}");
    }

    #[test]
    fn k5_a_machine_without_a_pmu_is_told_what_profiles_do_instead() {
        for code in [libc::ENOENT, libc::ENODEV, libc::EOPNOTSUPP] {
            let finding = judge_pmu(refused(code), refused(code), Some(2));
            assert_eq!(finding.state, State::No);
            assert!(matches!(&finding.remedy, Some(Remedy::Advice(text)) if text.contains("software clock")));
        }
    }

    #[test]
    fn a_counter_that_another_holds_is_not_called_absent() {
        let finding = judge_pmu(counted(0, 0), counted(0, 0), Some(2));
        assert_eq!(finding.state, State::Limited);
        assert_eq!(finding.remedy, Some(Remedy::Command("sysctl -w kernel.nmi_watchdog=0".into())));
    }

    #[test]
    fn k4_what_is_forbidden_names_the_sysctl_or_the_filter() {
        let by_level = judge_pmu(refused(libc::EACCES), refused(libc::EACCES), Some(3));
        assert_eq!(by_level.remedy, Some(Remedy::Command("sysctl -w kernel.perf_event_paranoid=1".into())));
        let by_filter = judge_pmu(refused(libc::EPERM), refused(libc::EPERM), Some(1));
        assert!(by_filter.seen.contains("filter"), "{by_filter:?}");
        let no_kernel =
            judge_permissions(counted(1, 1), refused(libc::EACCES), refused(libc::EACCES), Some(2));
        assert_eq!(no_kernel.state, State::Limited);
        assert!(no_kernel.seen.contains("kernel.perf_event_paranoid is 2"), "{no_kernel:?}");
        let nothing =
            judge_permissions(refused(libc::ENOSYS), refused(libc::ENOSYS), refused(libc::ENOSYS), None);
        assert_eq!(nothing.state, State::No);
        assert!(nothing.seen.contains("no perf_event_open"));
    }
}
