//! What the kernel that runs was built with and set to, as far as it changes what a duel measures.

use super::{Finding, Subject};
use crate::{cost_of, knobs};

const DEBUG: &str = "debug options";
const MITIGATIONS: &str = "mitigations";
const HUGE_PAGES: &str = "huge pages";
const BALANCING: &str = "NUMA balancing";
const WATCHDOGS: &str = "watchdogs";
const SCHEDULER: &str = "scheduler";
const TRACING: &str = "tracing";
const DEBUGFS: &str = "debugfs";
const LOG: &str = "kernel log";

const HUGE_PAGES_FILE: &str = "sys/kernel/mm/transparent_hugepage/enabled";

pub(super) fn findings(subject: &Subject) -> Vec<Finding> {
    vec![
        debug_options(subject),
        mitigations(subject),
        huge_pages(subject),
        balancing(subject),
        watchdogs(subject),
        scheduler(subject),
        tracing(subject),
        debugfs(subject),
        log(subject),
    ]
}

fn debug_options(subject: &Subject) -> Finding {
    let Some(options) = &subject.facts.debug_options else {
        return Finding::unknown(DEBUG, "the kernel's configuration is neither in /proc nor in /boot")
            .command("modprobe configs || cp YOUR_BUILD/.config /boot/config-$(uname -r)");
    };
    if options.is_empty() {
        return Finding::ok(DEBUG, "none that costs time is on");
    }
    let what = options.iter().map(|option| match cost_of(option) {
        Some(cost) => format!("{option} {cost}"),
        None => option.clone(),
    });
    let off: Vec<String> =
        options.iter().map(|option| format!("-d {}", option.trim_start_matches("CONFIG_"))).collect();
    Finding::limited(DEBUG, what.collect::<Vec<String>>().join("; "))
        .command(format!("scripts/config {} && make   # in the kernel's tree", off.join(" ")))
}

/// No gap: they are what production runs with. They are named since they set the price of entering the kernel.
fn mitigations(subject: &Subject) -> Finding {
    let all = &subject.facts.mitigations;
    if all.is_empty() {
        return Finding::unknown(MITIGATIONS, "the kernel does not list them");
    }
    let that = |begin: &str| -> Vec<&str> {
        all.iter().filter(|(_, text)| text.starts_with(begin)).map(|(name, _)| name.as_str()).collect()
    };
    let (on, off) = (that("Mitigation"), that("Vulnerable"));
    let mut seen = match on.as_slice() {
        [] => "none on".to_string(),
        names => format!("on: {}", names.join(" ")),
    };
    if !off.is_empty() {
        seen += &format!("; vulnerable: {}", off.join(" "));
    }
    Finding::ok(MITIGATIONS, seen)
}

fn huge_pages(subject: &Subject) -> Finding {
    match subject.facts.transparent_hugepages.as_deref() {
        None => {
            Finding::unknown(HUGE_PAGES, "the kernel does not have transparent huge pages, or does not tell")
        }
        Some("always") => Finding::limited(
            HUGE_PAGES,
            "always: memory becomes huge by chance, and a kernel thread works at it",
        )
        .command(format!("echo madvise > /{HUGE_PAGES_FILE}")),
        Some(mode) => Finding::ok(HUGE_PAGES, mode),
    }
}

fn balancing(subject: &Subject) -> Finding {
    let nodes = subject.facts.numa_nodes;
    match subject.root.number("proc/sys/kernel/numa_balancing").ok() {
        None if nodes == Some(1) => Finding::ok(BALANCING, "one node; the kernel has none"),
        None => Finding::unknown(BALANCING, "the kernel does not have it, or does not tell"),
        Some(0) => Finding::ok(BALANCING, "off"),
        Some(_) if nodes == Some(1) => Finding::ok(BALANCING, "on, with one node to balance"),
        Some(_) => Finding::limited(BALANCING, "on: pages and tasks move between nodes while a trial runs")
            .command("sysctl -w kernel.numa_balancing=0"),
    }
}

fn watchdogs(subject: &Subject) -> Finding {
    let number = |name: &str| subject.root.number(format!("proc/sys/kernel/{name}")).ok();
    let switch = |value: u64| if value == 0 { "off" } else { "on" };
    let soft = match (number("watchdog"), number("watchdog_thresh")) {
        // Its timer fires five times in the time after which it barks, which is twice the threshold.
        (Some(1..), Some(threshold_s)) if threshold_s > 0 => {
            format!("on, wakes each CPU every {:.1} s", threshold_s as f64 * 2.0 / 5.0)
        }
        (Some(value), _) => switch(value).to_string(),
        (None, _) => "absent".to_string(),
    };
    match number("nmi_watchdog") {
        Some(1..) => {
            Finding::limited(WATCHDOGS, format!("NMI: on, holds a counter of the PMU; soft: {soft}"))
                .command("sysctl -w kernel.nmi_watchdog=0")
        }
        Some(0) => Finding::ok(WATCHDOGS, format!("NMI: off; soft: {soft}")),
        None if soft == "absent" => {
            Finding::unknown(WATCHDOGS, "the kernel does not have them, or does not tell")
        }
        None => Finding::ok(WATCHDOGS, format!("NMI: absent; soft: {soft}")),
    }
}

fn scheduler(subject: &Subject) -> Finding {
    match subject.facts.sched_ext.as_deref() {
        None => Finding::unknown(SCHEDULER, "the kernel does not say who schedules"),
        Some("none") => Finding::ok(SCHEDULER, "the kernel's own"),
        Some(name) => Finding::limited(SCHEDULER, format!("one that BPF has loaded: {name}"))
            .command("echo S > /proc/sysrq-trigger   # ends it"),
    }
}

fn tracing(subject: &Subject) -> Finding {
    match subject.facts.tracing.as_deref() {
        None => Finding::unknown(TRACING, "tracefs is not mounted, or this user may not see it"),
        Some("nop") => Finding::ok(TRACING, "off"),
        Some(what) => Finding::limited(TRACING, format!("on, and costs time: {what}"))
            .command("cd /sys/kernel/tracing && echo nop > current_tracer && echo > set_event"),
    }
}

/// Knobs of the scheduler and of the slice extension live there.
fn debugfs(subject: &Subject) -> Finding {
    match knobs::debugfs(subject.root) {
        Err(_) if subject.root.text("proc/self/mountinfo").is_err() => {
            Finding::unknown(DEBUGFS, "the table of mounts cannot be read")
        }
        Err(_) => Finding::no(DEBUGFS, "not mounted").command("mount -t debugfs none /sys/kernel/debug"),
        Ok(place) => match std::fs::read_dir(&place) {
            Ok(_) => Finding::ok(DEBUGFS, format!("mounted at {}", place.display())),
            Err(error) => Finding::limited(DEBUGFS, format!("mounted at {}: {error}", place.display()))
                .advice("Knobs of the scheduler (debugfs.sched/...) need root."),
        },
    }
}

fn log(subject: &Subject) -> Finding {
    match (&subject.log, subject.root.is_real()) {
        (Some(_), _) => {
            Finding::ok(LOG, "/dev/kmsg opens: what the kernel says during a trial is kept with it")
        }
        (None, true) if !subject.root.path("dev/kmsg").exists() => {
            Finding::no(LOG, "there is no /dev/kmsg: what the kernel says during a trial is lost")
                .advice("In a container have the device passed in (Docker: --device /dev/kmsg).")
        }
        (None, true) => {
            Finding::limited(LOG, "/dev/kmsg does not open: what the kernel says during a trial is lost")
                .command("sysctl -w kernel.dmesg_restrict=0")
        }
        (None, false) => Finding::of_a_tree(LOG),
    }
}
