//! Two runs, variants, machines, kernels or configurations, set against each other as `kduel diff` does.

use crate::facts::{self, About, Difference, differences, words_apart};
use experiment::{Entry, Experiment, Facts, KernelConfig, Known, Missing, Point};
use journal::Run;
use std::collections::BTreeSet;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A run: what was asked, and the machine and kernel of its baseline.
    Run,
    /// A variant of a run.
    Variant,
    /// A machine with its kernel.
    Machine,
    /// A kernel that need not run.
    Kernel,
    /// A kernel configuration.
    Config,
}

/// One side of a comparison.
#[derive(Debug, Clone)]
pub struct Side {
    /// What the user called it.
    pub name: String,
    /// What it is.
    pub what: What,
    /// What was asked, as names and values; empty where nothing was.
    pub asked: Vec<(String, String)>,
    /// What is known of machine and kernel.
    pub facts: Facts,
}

/// In what two sides differ.
#[derive(Debug, Clone)]
pub struct Diff {
    /// The sides.
    pub sides: [Side; 2],
    /// What was asked differently.
    pub asked: Vec<Difference>,
    /// In what machines and kernels differ, the most telling first; each has two values.
    pub differences: Vec<Difference>,
    /// How many facts are known of both sides and the same.
    pub facts_alike: usize,
    /// How many kernel options are set in either side; missing where one of the configurations is not known.
    pub options: Known<usize>,
}

impl What {
    /// What it is, in words.
    pub fn word(self) -> &'static str {
        match self {
            What::Run => "run",
            What::Variant => "variant",
            What::Machine => "machine",
            What::Kernel => "kernel",
            What::Config => "kernel configuration",
        }
    }

    /// Whether only some facts are to be expected.
    fn is_partial(self) -> bool {
        matches!(self, What::Kernel | What::Config)
    }
}

impl Side {
    /// A run, with the machine of its baseline.
    pub fn of_run(name: &str, run: &Run) -> Side {
        let experiment = &run.header.experiment;
        let mut asked = vec![
            ("kduel".to_string(), format!("{} (build {})", run.header.version, run.header.build)),
            ("target".to_string(), experiment.target.to_string()),
            ("blocks".to_string(), experiment.blocks.to_string()),
            ("margin".to_string(), format!("{} %", experiment.margin_pct)),
            ("A/A".to_string(), if experiment.aa { "on".into() } else { "off".into() }),
        ];
        asked.extend(experiment.workloads.iter().map(|entry| workload(experiment, entry)));
        asked.extend(
            experiment
                .variants
                .iter()
                .map(|variant| (format!("variant {}", variant.name), variant.knobs_in_words())),
        );
        let baseline = experiment.baseline().map(|variant| variant.name.as_str());
        let facts = baseline.and_then(|baseline| facts_of(run, baseline));
        Side { name: name.into(), what: What::Run, asked, facts: facts.unwrap_or_default() }
    }

    /// A variant of a run; `None` where the run has none of this name.
    pub fn of_variant(name: &str, run: &Run, variant: &str) -> Option<Side> {
        let found = run.header.experiment.variants.iter().find(|one| one.name == variant)?;
        Some(Side {
            name: name.into(),
            what: What::Variant,
            asked: vec![("knobs".into(), found.knobs_in_words())],
            facts: facts_of(run, variant).unwrap_or_default(),
        })
    }

    /// A machine with its kernel.
    pub fn of_machine(name: &str, facts: Facts) -> Side {
        Side { name: name.into(), what: What::Machine, asked: Vec::new(), facts }
    }

    /// A kernel that need not run: release, build and, where it is known, configuration with its place.
    pub fn of_kernel(
        name: &str,
        release: Option<String>,
        build: Option<String>,
        config: Option<(KernelConfig, String)>,
    ) -> Side {
        let mut facts = Facts { kernel_release: release, kernel_version: build, ..Facts::default() };
        if let Some((config, from)) = config {
            facts.take_config(config, &from);
        }
        Side { name: name.into(), what: What::Kernel, asked: Vec::new(), facts }
    }

    /// A kernel configuration.
    pub fn of_config(name: &str, config: KernelConfig) -> Side {
        let mut facts = Facts::default();
        facts.take_config(config, name);
        Side { name: name.into(), what: What::Config, asked: Vec::new(), facts }
    }
}

fn facts_of(run: &Run, variant: &str) -> Option<Facts> {
    let provenance = facts::of_run(&run.header.experiment, &run.records);
    provenance.facts.into_iter().find(|(name, _)| name == variant).map(|(_, facts)| facts)
}

/// A workload with its points and what is set for it.
fn workload(experiment: &Experiment, entry: &Entry) -> (String, String) {
    let points: Vec<&str> = entry.points.iter().map(Point::as_str).collect();
    let set = experiment.set.iter().chain(&entry.set).map(|(name, value)| format!(" {name}={value}"));
    (
        format!("workload {}", entry.label),
        format!("{} at {}{}", entry.workload, points.join(","), set.collect::<String>()),
    )
}

/// In what two sides differ. Where one of them is only a kernel or its configuration, the facts that it cannot have are
/// passed over.
pub fn diff(a: Side, b: Side) -> Diff {
    let mut all = differences(&[Some(&a.facts), Some(&b.facts)]);
    if a.what.is_partial() || b.what.is_partial() {
        all.retain(|difference| {
            difference.about != About::Fact || difference.values.iter().all(Option::is_some)
        });
    }
    for difference in all.iter_mut().filter(|difference| difference.fact == "command line") {
        if let Some(words) = words_apart(&difference.values) {
            difference.values = words;
        }
    }
    let names = |side: &Side| -> BTreeSet<String> {
        side.facts.rows().into_iter().map(|(name, _)| name).filter(|name| name != "debug options").collect()
    };
    let differs = |name: &&String| all.iter().any(|difference| difference.fact == **name);
    let facts_alike = names(&a).intersection(&names(&b)).filter(|name| !differs(name)).count();
    Diff { asked: asked(&a, &b), facts_alike, options: options(&a, &b), differences: all, sides: [a, b] }
}

/// What was asked differently. Things that were not asked of one side at all, as of a machine, are no difference.
fn asked(a: &Side, b: &Side) -> Vec<Difference> {
    if a.asked.is_empty() || b.asked.is_empty() {
        return Vec::new();
    }
    let value = |side: &Side, name: &str| {
        side.asked.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let only_b = b.asked.iter().filter(|(name, _)| value(a, name).is_none());
    let difference = |(name, _): &(String, String)| {
        let values = vec![value(a, name), value(b, name)];
        (values[0] != values[1]).then(|| Difference { fact: name.clone(), values, about: About::Fact })
    };
    a.asked.iter().chain(only_b).filter_map(difference).collect()
}

fn options(a: &Side, b: &Side) -> Known<usize> {
    let config = |side: &Side| match side.facts.kernel_config() {
        Some(config) => Ok(config.names().map(str::to_string).collect::<BTreeSet<String>>()),
        None => Err(Missing::because(format!("the kernel options of {} are not known", side.name))),
    };
    Ok(config(a)?.union(&config(b)?).count())
}
