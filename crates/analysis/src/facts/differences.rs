//! In what machines and kernels differ.

use super::command_line::words_apart;
use super::options::OptionGroup;
use experiment::{Facts, KernelConfig, Refusal, costly_options};
use std::collections::BTreeSet;

/// Two amounts of memory count as the same up to this share of the larger: what a kernel keeps for itself, and what a
/// boot happens to leave, differs a little.
const MEMORY_SHARE: f64 = 0.02;

/// Rows of facts that are not compared as they stand: debug options are compared one by one, and what debugfs says of
/// preemption is the preemption model.
const TOLD_ELSEWHERE: [&str; 2] = ["debug options", "sched preempt"];

/// Facts that are long lists of words, of which most agree.
const LISTS_OF_WORDS: [&str; 2] = ["sched features", "paravirtual"];

/// A fact that differs between variants, or between whatever else is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The name of the fact, or of the kernel option.
    pub fact: String,
    /// Its value per variant, in the order of the variants.
    pub values: Vec<Option<String>>,
    /// What it is about.
    pub about: About,
}

/// What a difference is about, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// A kernel option that costs time.
    DebugOption,
    /// The machine, its kernel or its settings.
    Fact,
    /// Another kernel option.
    KernelOption(OptionGroup),
}

impl About {
    /// Which kind it is, in one word.
    pub fn word(self) -> &'static str {
        match self {
            About::DebugOption => "debug-option",
            About::Fact => "fact",
            About::KernelOption(_) => "kernel-option",
        }
    }

    /// What a kernel option is about.
    pub fn group(self) -> Option<OptionGroup> {
        match self {
            About::KernelOption(group) => Some(group),
            _ => None,
        }
    }
}

impl Difference {
    /// What has to be accepted before anything is compared across this difference. A value that is not known may be the
    /// same as the others.
    pub fn refusal(&self) -> Option<Refusal> {
        if !differ(&self.values) {
            return None;
        }
        match (self.about, self.fact.as_str()) {
            (About::DebugOption, option) => Some(Refusal::DebugOption(option.into())),
            (About::Fact, "CPU model") => Some(Refusal::CpuModel),
            (About::Fact, "preemption") => Some(Refusal::Preemption),
            _ => None,
        }
    }
}

/// Everything that differs between `sides`, the most telling first. A side that is not known differs in nothing, and so
/// do kernel options of a side whose configuration is not known.
pub fn differences(sides: &[Option<&Facts>]) -> Vec<Difference> {
    let mut all = of_debug_options(sides);
    all.extend(of_rows(sides));
    let mut options = of_options(sides);
    options.retain(|difference| !all.iter().any(|other| other.fact == difference.fact));
    all.extend(options);
    // The sort is stable: rows stay in their order, with those that refuse a comparison first.
    all.sort_by_key(|difference| (difference.refusal().is_none(), difference.about));
    all
}

fn of_rows(sides: &[Option<&Facts>]) -> Vec<Difference> {
    let rows: Vec<Option<Vec<(String, String)>>> =
        sides.iter().map(|side| side.map(|facts| facts.rows())).collect();
    let mut names: Vec<&str> = Vec::new();
    for rows in rows.iter().flatten() {
        // What only a later side has stands where it stands there.
        let mut next = 0;
        for (name, _) in rows.iter().filter(|(name, _)| !TOLD_ELSEWHERE.contains(&name.as_str())) {
            let place = names.iter().position(|known| known == name).unwrap_or_else(|| {
                names.insert(next, name);
                next
            });
            next = place + 1;
        }
    }
    let value = |rows: &[(String, String)], name: &str| {
        rows.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let difference = |name: &str| {
        let values: Vec<Option<Option<String>>> =
            rows.iter().map(|rows| rows.as_ref().map(|rows| value(rows, name))).collect();
        let mut known = values.iter().flatten();
        let first = known.next()?;
        if known.all(|other| alike(name, first.as_deref(), other.as_deref())) {
            return None;
        }
        let mut values: Vec<Option<String>> = values.into_iter().map(Option::flatten).collect();
        if LISTS_OF_WORDS.contains(&name) {
            values = words_apart(&values).unwrap_or(values);
        }
        Some(Difference { fact: name.into(), values, about: About::Fact })
    };
    names.into_iter().filter_map(difference).collect()
}

fn alike(fact: &str, one: Option<&str>, other: Option<&str>) -> bool {
    if fact.starts_with("mitigation ") {
        // A kernel that does not know of a fault of other CPUs does the same about it.
        let needed = |state: Option<&str>| state.is_some_and(|state| state != "Not affected");
        return one == other || !(needed(one) || needed(other));
    }
    let mib = |text: Option<&str>| text?.strip_suffix(" MiB")?.parse::<f64>().ok();
    match (mib(one), mib(other)) {
        (Some(one), Some(other)) if fact.starts_with("memory") => {
            (one - other).abs() <= MEMORY_SHARE * one.max(other)
        }
        _ => one == other,
    }
}

fn of_debug_options(sides: &[Option<&Facts>]) -> Vec<Difference> {
    let of_side = |side: &Option<&Facts>, option: &str| {
        let on = side.as_ref()?.debug_options.as_ref()?.iter().any(|name| name == option);
        Some(if on { "y" } else { KernelConfig::NOT_SET }.to_string())
    };
    let difference = |option: &str| {
        let values: Vec<Option<String>> = sides.iter().map(|side| of_side(side, option)).collect();
        differ(&values).then(|| Difference { fact: option.into(), values, about: About::DebugOption })
    };
    costly_options().filter_map(difference).collect()
}

fn of_options(sides: &[Option<&Facts>]) -> Vec<Difference> {
    let ids: Vec<Option<&str>> =
        sides.iter().map(|side| side.and_then(|facts| Some(facts.config.as_ref()?.id.as_str()))).collect();
    if !differ(&ids) {
        // As most sides are: then there is no need to go through thousands of options.
        return Vec::new();
    }
    let configs: Vec<Option<&KernelConfig>> =
        sides.iter().map(|side| side.and_then(Facts::kernel_config)).collect();
    let names: BTreeSet<&str> = configs.iter().flatten().flat_map(|config| config.names()).collect();
    let difference = |option: &str| {
        let values: Vec<Option<&str>> =
            configs.iter().map(|config| config.map(|config| config.value(option))).collect();
        differ(&values).then(|| Difference {
            fact: option.into(),
            values: values.into_iter().map(|value| value.map(str::to_string)).collect(),
            about: About::KernelOption(OptionGroup::of(option)),
        })
    };
    names.into_iter().filter_map(difference).collect()
}

/// Whether two of the values that are known differ.
fn differ<T: PartialEq>(values: &[Option<T>]) -> bool {
    let mut known = values.iter().flatten();
    known.next().is_some_and(|first| known.any(|other| other != first))
}
