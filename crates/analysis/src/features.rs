//! What trials saw of the features that variants turn on.

use crate::Feature;
use experiment::{Header, Outcome, Record};
use std::collections::BTreeMap;

/// By workload, variant and feature, in the order of the experiment.
pub(crate) fn of(header: &Header, records: &[Record]) -> Vec<Feature> {
    let experiment = &header.experiment;
    let mut found: BTreeMap<(usize, usize, &str), Feature> = BTreeMap::new();
    for record in records {
        let Record::Trial(trial) = record else { continue };
        let Outcome::Done { evidence, .. } = &trial.outcome else { continue };
        let workload = experiment.workloads.iter().position(|entry| entry.label == trial.workload);
        let variant = experiment.variants.iter().position(|variant| variant.name == trial.variant);
        let (Some(workload), Some(variant)) = (workload, variant) else { continue };
        for one in evidence {
            let feature = found.entry((workload, variant, one.feature.as_str())).or_insert_with(|| Feature {
                workload: trial.workload.clone(),
                variant: trial.variant.clone(),
                feature: one.feature.clone(),
                trials: 0,
                ran: 0,
                seen: String::new(),
            });
            feature.trials += 1;
            feature.ran += usize::from(one.ran);
            if one.ran || feature.ran == 0 {
                feature.seen = one.seen.clone();
            }
        }
    }
    found.into_values().collect()
}
