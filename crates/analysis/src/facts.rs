//! What was read of machines and kernels, and what differs although nobody asked for it.

mod asked;
mod command_line;
mod differences;
mod options;
mod refused;

pub use differences::{About, Difference, differences};
pub use options::OptionGroup;
pub use refused::{Refused, refusal_in_words};

pub(crate) use command_line::words_apart;

use asked::Asked;
use experiment::{Experiment, Facts, KernelConfig, Outcome, Record};
use std::collections::{BTreeMap, BTreeSet};

/// What a run says of its machines and kernels.
pub(crate) struct Provenance {
    /// The latest facts of each variant, in the order of the variants.
    pub(crate) facts: Vec<(String, Facts)>,
    /// What differs between variants though nobody asked for it.
    pub(crate) unasked: Vec<Difference>,
    /// Why variants are not compared, unless it was accepted.
    pub(crate) refused: Vec<Refused>,
    /// Sentences on what changed while the run lasted, and on what is not known.
    pub(crate) notices: Vec<String>,
}

/// Why the variants of an experiment cannot be compared from now on: differences across which figures say nothing, and
/// which it does not accept. `records` are those of a run until now; what was read of a machine last counts, whether or
/// not a trial has followed.
pub fn refused(experiment: &Experiment, records: &[Record]) -> Vec<Refused> {
    of_readings(experiment, &readings(records, true)).refused
}

/// What the records of a run say. What was read of a machine on which then no trial ran says nothing of the figures.
pub(crate) fn of_run(experiment: &Experiment, records: &[Record]) -> Provenance {
    of_readings(experiment, &readings(records, false))
}

fn of_readings(experiment: &Experiment, readings: &[Reading<'_>]) -> Provenance {
    let mut latest: BTreeMap<&str, &Facts> = BTreeMap::new();
    let mut refused = Vec::new();
    let mut notices = Vec::new();
    for Reading { variant, facts, .. } in readings {
        let Some(earlier) = latest.insert(variant, facts) else { continue };
        let changes = differences(&[Some(earlier), Some(facts)]);
        refused.extend(changes.iter().filter_map(|change| Refused::within(variant, change)));
        notices.extend(changed(&changes));
    }
    let facts = experiment.variants.iter().filter_map(|variant| {
        let facts = latest.get(variant.name.as_str())?;
        Some((variant.name.clone(), (*facts).clone()))
    });
    let facts: Vec<(String, Facts)> = facts.collect();
    let unasked = unasked(experiment, &facts);
    refused
        .extend(unasked.iter().filter_map(|difference| Refused::between(&experiment.variants, difference)));
    refused.retain(|one| !experiment.accept_differences.iter().any(|accepted| accepted.covers(&one.refusal)));
    notices.extend(unknown_options(&facts));
    notices.extend(one_kernel_twice(experiment, &facts));
    notices.extend(other_preemption(experiment, &facts));
    Provenance { facts, unasked, refused: once_each(refused), notices: once_each(notices) }
}

/// What was read of a variant's machine and kernel at one moment.
struct Reading<'a> {
    variant: &'a str,
    facts: Facts,
    /// Whether a trial of the variant measured something on it.
    measured: bool,
}

/// All readings that count, in their order, each with the options of its kernel, which stand only once in a journal. Of
/// those that nothing was measured on, the last of a variant counts if `to_come`, or if there is no other.
fn readings(records: &[Record], to_come: bool) -> Vec<Reading<'_>> {
    let mut options: BTreeMap<&str, &KernelConfig> = BTreeMap::new();
    let mut readings: Vec<Reading<'_>> = Vec::new();
    let mut latest: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        let (variant, facts) = match record {
            Record::Facts { variant, facts } => (variant.as_str(), facts),
            Record::Boot(boot) => match &boot.facts {
                Some(facts) => (boot.variant.as_str(), facts),
                None => continue,
            },
            Record::Trial(trial) => {
                if let (Outcome::Done { .. }, Some(place)) =
                    (&trial.outcome, latest.get(trial.variant.as_str()))
                {
                    readings[*place].measured = true;
                }
                continue;
            }
            _ => continue,
        };
        let mut whole = (**facts).clone();
        if let (Some(found), Some(config)) = (&facts.config, &mut whole.config) {
            match &found.options {
                Some(own) => {
                    options.insert(&found.id, own);
                }
                None => config.options = options.get(found.id.as_str()).map(|earlier| (*earlier).clone()),
            }
        }
        latest.insert(variant, readings.len());
        readings.push(Reading { variant, facts: whole, measured: false });
    }
    let measured: BTreeSet<&str> =
        readings.iter().filter(|reading| reading.measured).map(|reading| reading.variant).collect();
    let counts = |place: usize, reading: &Reading<'_>| {
        let is_last = latest.get(reading.variant) == Some(&place);
        reading.measured || (is_last && (to_come || !measured.contains(reading.variant)))
    };
    let places = 0..readings.len();
    places
        .zip(readings)
        .filter(|(place, reading)| counts(*place, reading))
        .map(|(_, reading)| reading)
        .collect()
}

/// What changed between two readings of the same variant, a sentence each; of kernel options only how many.
fn changed(changes: &[Difference]) -> Vec<String> {
    let word = |value: &Option<String>| value.as_ref().map_or("unknown".into(), |value| format!("`{value}`"));
    let (options, facts): (Vec<&Difference>, Vec<&Difference>) =
        changes.iter().partition(|change| matches!(change.about, About::KernelOption(_)));
    let told = |what: String| format!("{what}: its blocks are not of one machine");
    let mut sentences: Vec<String> = facts
        .into_iter()
        .map(|Difference { fact, values, .. }| {
            let values: Vec<String> = values.iter().map(word).collect();
            told(format!("{fact} changed while the run lasted, from {}", values.join(" to ")))
        })
        .collect();
    if !options.is_empty() {
        sentences.push(told(format!("kernel options changed while the run lasted ({})", options.len())));
    }
    sentences
}

/// The facts that differ between variants and that no knob of any variant explains.
fn unasked(experiment: &Experiment, facts: &[(String, Facts)]) -> Vec<Difference> {
    // A variant whose facts were not read differs in nothing that is known.
    let sides: Vec<Option<&Facts>> = experiment
        .variants
        .iter()
        .map(|variant| facts.iter().find(|(name, _)| *name == variant.name).map(|(_, facts)| facts))
        .collect();
    let asked = Asked::by(experiment);
    differences(&sides).into_iter().filter_map(|difference| asked.rest(difference)).collect()
}

/// Says where kernels differ and the options of one are not known, since then its debug options are not either.
fn unknown_options(facts: &[(String, Facts)]) -> Option<String> {
    let (_, first) = facts.first()?;
    if facts.iter().all(|(_, facts)| kernel(facts) == kernel(first)) {
        return None;
    }
    let unknown = facts.iter().filter(|(_, facts)| facts.config.is_none()).map(|(name, _)| name.as_str());
    let unknown: Vec<&str> = unknown.collect();
    (!unknown.is_empty()).then(|| {
        format!(
            "the kernel options of {} are not known, so that debug options could not be compared: give a kernel with \
             its configuration beside it (config-RELEASE), or one with CONFIG_IKCONFIG_PROC",
            unknown.join(", ")
        )
    })
}

/// What tells one build of a kernel from another.
fn kernel(facts: &Facts) -> Option<(&str, Option<&str>)> {
    match &facts.kernel_build_id {
        Some(id) => Some((id, None)),
        None => Some((facts.kernel_version.as_deref()?, facts.kernel_release.as_deref())),
    }
}

/// Says where variants ask for different kernels and the same one came up.
fn one_kernel_twice(experiment: &Experiment, facts: &[(String, Facts)]) -> Option<String> {
    let asked = |name: &str| {
        let variant = experiment.variants.iter().find(|variant| variant.name == name)?;
        experiment.boot_spec(variant).kernel
    };
    let ((first, known), rest) = facts.split_first()?;
    let twice = rest.iter().find(|(name, other)| {
        asked(name) != asked(first) && kernel(other).is_some() && kernel(other) == kernel(known)
    });
    twice.map(|(name, _)| {
        format!(
            "{first} and {name} ask for different kernels, and the same one came up for both: what differs between them is \
             not the kernel"
        )
    })
}

/// Says where a variant asks at boot for a preemption model and another one is in force: a word that the kernel does not know
/// changes nothing.
fn other_preemption(experiment: &Experiment, facts: &[(String, Facts)]) -> Vec<String> {
    let ask = |name: &str| {
        let variant = experiment.variants.iter().find(|variant| variant.name == name)?;
        let words = experiment.boot_spec(variant).append;
        words.iter().rev().find_map(|word| word.strip_prefix("preempt=")).map(str::to_string)
    };
    let differing = facts.iter().filter_map(|(name, facts)| {
        let (asked, model) = (ask(name)?, facts.preemption.as_deref()?);
        (asked != model).then(|| format!("{name} asks for preempt={asked}, and its kernel has {model}"))
    });
    differing.collect()
}

fn once_each<T: PartialEq>(all: Vec<T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}
