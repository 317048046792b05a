//! What workloads are under the variants of an experiment, and whether these can be compared.

use crate::{AskError, Description, Entry, Experiment, Scope, Variant};
use std::collections::BTreeMap;

impl Experiment {
    /// What is set for `entry` under `variant`: the variant's knobs before the entry's own, before the experiment's.
    pub(crate) fn settings(&self, entry: &Entry, variant: &Variant) -> BTreeMap<String, String> {
        let mut set = self.set.clone();
        set.extend(entry.set.clone());
        set.extend(variant.knobs.iter().filter_map(|knob| match &knob.scope {
            Scope::Parameter(name) => Some((name.clone(), knob.value.clone())),
            _ => None,
        }));
        set
    }

    /// The description of each workload, in their order, as it is for this experiment: what a workload yields may depend
    /// on what is set for it, by a variant, too. `describe` knows the workloads; one that it does not know has none.
    ///
    /// # Errors
    /// When variants of a workload do not measure the same.
    pub fn descriptions(
        &self,
        describe: impl Fn(&str, &BTreeMap<String, String>) -> Option<Description>,
    ) -> Result<Vec<Description>, AskError> {
        let mut descriptions = Vec::new();
        for entry in &self.workloads {
            // What one variant alone sets is described, too; where they differ, the baseline goes before the others.
            let mut all = BTreeMap::new();
            for variant in self.variants.iter().rev() {
                all.extend(self.settings(entry, variant));
            }
            let Some(mut description) = describe(&entry.workload, &all) else { continue };
            let under = |variant: &Variant| describe(&entry.workload, &self.settings(entry, variant));
            let each: Vec<Description> = self.variants.iter().filter_map(under).collect();
            self.check_alike(entry, &each)?;
            name_every_test(&mut description, entry, &each);
            descriptions.push(description);
        }
        Ok(descriptions)
    }

    /// Makes sure that a workload yields the same under all variants; `each` is what it is under them.
    fn check_alike(&self, entry: &Entry, each: &[Description]) -> Result<(), AskError> {
        let mut yields = self.variants.iter().zip(each.iter().map(judged));
        let Some((baseline, wanted)) = yields.next() else { return Ok(()) };
        match yields.find(|(_, found)| *found != wanted) {
            None => Ok(()),
            Some((variant, found)) => Err(AskError::Unlike {
                workload: entry.label.clone(),
                variants: format!("{} and {}", baseline.name, variant.name),
                wanted,
                found,
            }),
        }
    }
}

/// The metrics that are judged, in words.
fn judged(description: &Description) -> String {
    let judged = description.metrics.iter().filter(|metric| metric.primary);
    let names = judged.map(|metric| match metric.unit.as_str() {
        "" => metric.name.clone(),
        unit => format!("{} in {unit}", metric.name),
    });
    names.collect::<Vec<String>>().join(", ")
}

/// Where the name of a metric's block depends on a parameter and variants differ in that, the block has the names of all.
fn name_every_test(description: &mut Description, entry: &Entry, each: &[Description]) {
    for metric in &mut description.metrics {
        let mut names: Vec<&str> = Vec::new();
        for theirs in each.iter().filter_map(|one| one.metric(&metric.name)) {
            let name = theirs.test.as_deref().unwrap_or(&entry.label);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.len() > 1 {
            metric.test = Some(names.join(" / "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Direction, Metric, Parameter};

    /// A workload whose block is named by `over`, and whose unit is the parameter `unit`.
    fn toy(name: &str, set: &BTreeMap<String, String>) -> Option<Description> {
        let text = |name: &str, default: &str| set.get(name).cloned().unwrap_or_else(|| default.into());
        let metric = Metric::new("time", &text("unit", "s"), Direction::Lower, "time", "how long");
        let over = text("over", "");
        (name == "toy").then(|| Description {
            name: name.into(),
            summary: String::new(),
            about: String::new(),
            source: String::new(),
            axis: Axis {
                name: "threads".into(),
                heading: "Threads".into(),
                suffix: String::new(),
                points: Vec::new(),
                range: None,
            },
            parameters: set.keys().map(|name| Parameter::text(name, "", "")).collect(),
            metrics: vec![if over.is_empty() { metric } else { metric.titled(&format!("toy-{over}")) }],
            requirements: Vec::new(),
        })
    }

    fn described(variants: &[&str]) -> Result<Vec<Description>, AskError> {
        let variants = variants.iter().map(|text| Variant::parse(text).unwrap()).collect();
        let mut experiment = Experiment::new(vec![Entry::of("toy"), Entry::of("unknown")], variants);
        experiment.set.insert("loops".into(), "5".into());
        experiment.descriptions(toy)
    }

    #[test]
    fn a_block_is_named_by_what_all_its_variants_do() {
        let test = |variants: &[&str]| described(variants).unwrap()[0].metrics[0].test.clone();
        assert_eq!(test(&["a", "b:nice=1"]), None);
        assert_eq!(test(&["a:over=pipe", "b:over=pipe,nice=1"]).as_deref(), Some("toy-pipe"));
        assert_eq!(test(&["a", "b:over=pipe", "c"]).as_deref(), Some("toy / toy-pipe"));
        let all = described(&["a", "b:over=pipe"]).unwrap();
        assert_eq!(all.len(), 1, "the unknown one has no description");
        assert!(all[0].parameter("over").is_ok() && all[0].parameter("loops").is_ok());
    }

    #[test]
    fn variants_that_measure_different_things_are_named_with_what_they_yield() {
        let error = described(&["a", "b:nice=1", "c:unit=ms"]).unwrap_err().to_string();
        assert!(
            error.starts_with("toy: a and c do not measure the same: the one yields time in s, "),
            "{error}"
        );
        assert!(error.contains("the other time in ms"), "{error}");
    }
}
