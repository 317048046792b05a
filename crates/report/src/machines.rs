//! What a report says of machines and kernels: what they are, in what they differ though nobody asked for it, and which
//! options cost time.

use crate::document::Block;
use crate::figures::trimmed;
use analysis::{About, Analysis, Difference, OptionGroup};
use experiment::{Facts, Variant, cost_of, costly_options, counted};

/// More differences than this between facts are counted and not listed.
const FACTS_LISTED: usize = 30;
/// More kernel options than this are counted and not listed.
const OPTIONS_LISTED: usize = 24;

/// The blocks that stand above the results.
pub(crate) fn blocks(analysis: &Analysis) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some((_, facts)) = analysis.facts.first() {
        let lines = machine_lines(facts);
        if !lines.is_empty() {
            blocks.push(Block::Section("Machine details".into()));
            blocks.push(Block::Items(lines));
        }
    }
    let kernels: Vec<(String, String)> =
        analysis.header.experiment.variants.iter().map(|variant| kernel(analysis, variant)).collect();
    if !kernels.is_empty() {
        blocks.push(Block::Section("Kernel details".into()));
        blocks.push(Block::Pairs(kernels));
    }
    if !analysis.unasked.is_empty() {
        blocks.push(Block::Section("Differences between the variants that nobody asked for".into()));
        blocks.push(Block::Items(unasked(analysis)));
    }
    let costly = costly(analysis);
    if !costly.is_empty() {
        blocks.push(Block::Section("Debug options that cost time".into()));
        blocks.push(Block::Items(costly));
    }
    blocks
}

fn facts_of<'a>(analysis: &'a Analysis, variant: &Variant) -> Option<&'a Facts> {
    analysis.facts.iter().find(|(name, _)| *name == variant.name).map(|(_, facts)| facts)
}

/// A variant, and what tells its kernel from others.
fn kernel(analysis: &Analysis, variant: &Variant) -> (String, String) {
    let mut words = Vec::new();
    if let Some(facts) = facts_of(analysis, variant) {
        words.extend(facts.kernel_release.clone());
        words.extend(facts.preemption.as_ref().map(|model| format!("preemption {model}")));
        let options = facts.debug_options.as_ref().map_or(0, Vec::len);
        if options > 0 {
            words.push(counted(options, "debug option"));
        }
    }
    words.push(variant.knobs_in_words());
    (variant.name.clone(), words.join(", "))
}

fn machine_lines(facts: &Facts) -> Vec<String> {
    let line = |parts: Vec<Option<String>>| {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let named = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
    let listed =
        |name: &str, value: &Option<String>| named(name, value).filter(|_| value.as_deref() != Some(""));
    let switch =
        |name: &str, on: Option<bool>| on.map(|on| format!("{name} {}", if on { "on" } else { "off" }));
    [
        line(vec![
            facts.cpu_model.clone(),
            facts.sockets.map(|count| counted(count as usize, "socket")),
            facts.numa_nodes.map(|count| counted(count as usize, "NUMA node")),
            facts.memory_bytes.map(|bytes| format!("{} MiB of memory", bytes >> 20)),
        ]),
        line(vec![
            named("CPUs online", &facts.cpus_online),
            listed("offline", &facts.cpus_offline),
            named("CPUs allowed", &facts.cpus_allowed),
            listed("isolated", &facts.cpus_isolated),
            facts.cpu_quota.map(|cpus| format!("quota of {} CPUs", trimmed(cpus, 2))),
            switch("SMT", facts.smt),
        ]),
        line(vec![
            named("governor", &facts.governor),
            switch("turbo", facts.turbo),
            named("clocksource", &facts.clocksource),
            named("transparent hugepages", &facts.transparent_hugepages),
        ]),
        line(vec![named("hypervisor", &facts.hypervisor), facts.libc.clone()]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The differences, the most telling first. The lists of facts and of kernel options are cut; what is left is counted,
/// with the command that shows it.
fn unasked(analysis: &Analysis) -> Vec<String> {
    let (options, facts): (Vec<&Difference>, Vec<&Difference>) =
        analysis.unasked.iter().partition(|difference| matches!(difference.about, About::KernelOption(_)));
    let telling = options.iter().filter(|option| option.about != About::KernelOption(OptionGroup::Rest));
    let mut lines: Vec<String> =
        facts.iter().take(FACTS_LISTED).map(|difference| line(analysis, difference)).collect();
    let before = lines.len();
    lines.extend(telling.take(OPTIONS_LISTED).map(|difference| line(analysis, difference)));
    let (more_facts, more_options) = (facts.len() - before, options.len() - (lines.len() - before));
    let mut more = Vec::new();
    if more_facts > 0 {
        more.push(counted(more_facts, "further fact"));
    }
    if more_options > 0 {
        more.push(counted(more_options, "further kernel option"));
    }
    if let Some((baseline, other)) = furthest_apart(analysis)
        && !more.is_empty()
    {
        let run = &analysis.header.run;
        lines.push(format!("and {}: kduel diff {run}:{baseline} {run}:{other}", more.join(" and ")));
    }
    lines
}

/// The baseline, and the first of the variants that differ from it in most of what nobody asked for.
fn furthest_apart(analysis: &Analysis) -> Option<(&str, &str)> {
    let variants = &analysis.header.experiment.variants;
    let apart = |place: usize| {
        let differs = |difference: &&Difference| difference.values.get(place) != difference.values.first();
        analysis.unasked.iter().filter(differs).count()
    };
    // Of equals `max_by_key` takes the last.
    let other = (1..variants.len()).rev().max_by_key(|place| apart(*place))?;
    Some((&variants.first()?.name, &variants.get(other)?.name))
}

fn line(analysis: &Analysis, difference: &Difference) -> String {
    let experiment = &analysis.header.experiment;
    let values = experiment.variants.iter().zip(&difference.values).map(|(variant, value)| {
        format!("{} `{}`", variant.name, value.as_deref().unwrap_or(absent(&difference.fact)))
    });
    let values: Vec<String> = values.collect();
    let accepted = difference.refusal().is_some_and(|refusal| {
        experiment.accept_differences.iter().any(|accepted| accepted.covers(&refusal))
    });
    let accepted = if accepted { " (accepted)" } else { "" };
    format!("{}: {}{accepted}", difference.fact, values.join(", "))
}

/// The word for a fact that is not known. A setting that could be read elsewhere is one that the kernel does not have.
pub(crate) fn absent(fact: &str) -> &'static str {
    let of_settings = ["sysctl ", "sched ", "mm ", "mitigation "];
    if of_settings.iter().any(|prefix| fact.starts_with(prefix)) { "not there" } else { "not known" }
}

/// Every option that costs time in some variant, with what it does and where it is on.
fn costly(analysis: &Analysis) -> Vec<String> {
    let variants = &analysis.header.experiment.variants;
    let has = |variant: &&Variant, option: &str| {
        let options = facts_of(analysis, variant).and_then(|facts| facts.debug_options.as_ref());
        options.is_some_and(|options| options.iter().any(|one| one == option))
    };
    let line = |option: &str| {
        let with: Vec<&str> = variants
            .iter()
            .filter(|variant| has(variant, option))
            .map(|variant| variant.name.as_str())
            .collect();
        let whose = if with.len() == variants.len() { "all variants".into() } else { with.join(", ") };
        let does = cost_of(option).unwrap_or("costs time");
        (!with.is_empty()).then(|| format!("{option} ({whose}) {does}"))
    };
    costly_options().filter_map(line).collect()
}
