//! What was asked for: the differences that the knobs of the variants explain.

use super::command_line::{apart, without};
use super::{About, Difference};
use experiment::{BootSpec, Experiment, Knob, Scope, is_woken_by};
use std::collections::BTreeMap;

/// What the variants of an experiment change against each other.
pub(super) struct Asked {
    /// What is turned to different values, or by some variants only.
    scopes: Vec<Scope>,
    /// The boot arguments that each variant asks for, in their order, with those that are asked for all.
    arguments: Vec<Vec<String>>,
}

impl Asked {
    pub(super) fn by(experiment: &Experiment) -> Asked {
        let mut turned: BTreeMap<&Scope, Vec<&str>> = BTreeMap::new();
        for Knob { scope, value } in experiment.variants.iter().flat_map(|variant| &variant.knobs) {
            turned.entry(scope).or_default().push(value);
        }
        let count = experiment.variants.len();
        let differs =
            |values: &[&str]| values.len() < count || values.iter().any(|value| *value != values[0]);
        let specs = experiment.variants.iter().map(|variant| experiment.boot_spec(variant));
        Asked {
            scopes: turned
                .into_iter()
                .filter(|(_, values)| differs(values))
                .map(|(scope, _)| scope.clone())
                .collect(),
            arguments: specs.map(|BootSpec { append, .. }| append).collect(),
        }
    }

    /// What is left of a difference when what was asked for is taken away.
    pub(super) fn rest(&self, difference: Difference) -> Option<Difference> {
        let fact = difference.fact.as_str();
        match difference.about {
            About::KernelOption(_) => Some(difference),
            About::DebugOption => (!self.wakes(fact)).then_some(difference),
            About::Fact if self.scopes.iter().any(|scope| explains(scope, fact)) => None,
            About::Fact if fact == "preemption" && self.gives("preempt=") => None,
            About::Fact if fact == "command line" => self.other_words(difference),
            About::Fact => Some(difference),
        }
    }

    /// The arguments that some variants ask for and others do not.
    fn own_arguments(&self) -> impl Iterator<Item = &str> {
        let is_common = |word: &String| self.arguments.iter().all(|words| words.contains(word));
        self.arguments.iter().flatten().filter(move |word| !is_common(word)).map(String::as_str)
    }

    /// Whether a boot argument that begins so was asked for, and not for all.
    fn gives(&self, beginning: &str) -> bool {
        self.own_arguments().any(|word| word.starts_with(beginning))
    }

    /// Whether a boot argument that was asked for wakes a debug option.
    fn wakes(&self, option: &str) -> bool {
        let words: Vec<&str> = self.own_arguments().collect();
        is_woken_by(option, &words)
    }

    /// The words of the command lines that were not asked for, where those differ.
    fn other_words(&self, difference: Difference) -> Option<Difference> {
        let another_kernel = self.scopes.contains(&Scope::Kernel);
        let lines: Vec<Option<Vec<&str>>> = difference
            .values
            .iter()
            .zip(&self.arguments)
            .map(|(line, asked)| Some(without(line.as_deref()?, asked, another_kernel)))
            .collect();
        let values = apart(&lines)?;
        Some(Difference { values, ..difference })
    }
}

/// Whether turning a knob changes a fact.
fn explains(scope: &Scope, fact: &str) -> bool {
    let shown_by = |prefix: &str, name: &str| fact.strip_prefix(prefix).is_some_and(|fact| fact == name);
    match scope {
        Scope::Sysctl(name) => shown_by("sysctl ", name),
        Scope::Debugfs(path) => {
            let of_preemption = path == "sched/preempt" && fact == "preemption";
            of_preemption
                || shown_by("sched ", path.strip_prefix("sched/").unwrap_or(path))
                || shown_by("sched ", path)
        }
        Scope::Cpus => fact == "CPUs allowed",
        Scope::Sysfs(path) => of_sysfs(path, fact),
        Scope::Kernel => matches!(fact, "kernel" | "kernel version" | "kernel build id"),
        Scope::Vm(name) => of_vm(name, fact),
        // The words of the command line are compared one by one.
        Scope::Append | Scope::Proxy => false,
        Scope::Parameter(_) | Scope::Env(_) | Scope::Policy | Scope::Nice | Scope::Rseq => false,
    }
}

/// Whether a fact is about which CPUs there are and how they are laid out.
fn is_layout(fact: &str) -> bool {
    matches!(
        fact,
        "CPUs online"
            | "CPUs offline"
            | "CPUs allowed"
            | "sockets"
            | "cores"
            | "SMT"
            | "kinds of cores"
            | "last-level caches"
            | "last-level cache"
    ) || fact.starts_with("NUMA node")
}

fn of_sysfs(path: &str, fact: &str) -> bool {
    let part = |text: &str| path.contains(text);
    match fact {
        "transparent hugepages" => part("transparent_hugepage/enabled"),
        "governor" => part("scaling_governor"),
        "frequency limits" => part("scaling_min_freq") || part("scaling_max_freq"),
        "energy preference" => part("energy_performance_preference"),
        "turbo" => part("no_turbo") || part("cpufreq/boost"),
        "idle states" => part("cpuidle/current_governor"),
        "clocksource" => part("current_clocksource"),
        _ if part("smt/control") || path.ends_with("/online") => is_layout(fact),
        _ => match (fact.strip_prefix("mm "), path.strip_prefix("kernel/mm/")) {
            (Some("transparent_hugepage/hugepages"), Some(path)) => path.contains("/hugepages-"),
            (Some(setting), Some(path)) => setting == path,
            _ => false,
        },
    }
}

fn of_vm(name: &str, fact: &str) -> bool {
    let of_machine = matches!(
        fact,
        "product" | "firmware" | "hypervisor" | "paravirtual" | "clocksource" | "command line"
    );
    match name {
        "cpus" | "topology" => is_layout(fact),
        "memory" => fact.starts_with("memory"),
        "numa" => fact.starts_with("NUMA node") || fact.starts_with("memory of NUMA node"),
        "machine" | "clock" => of_machine,
        // Emulation has CPUs of its own.
        "accel" => {
            of_machine
                || matches!(fact, "CPU model" | "CPU stepping" | "microcode" | "PMU")
                || is_layout(fact)
                || fact.starts_with("mitigation ")
        }
        _ => false,
    }
}
