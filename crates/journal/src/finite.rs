use crate::JournalError;
use experiment::{Outcome, Record, Summary};

/// Refuses a record with NaN or infinity in it, which JSON cannot hold: serde_json writes `null` for both, and the
/// journal would not be readable again.
pub(crate) fn check_finite(record: &Record) -> Result<(), JournalError> {
    let not_finite = |what: String| Err(JournalError::NotFinite { what });
    match record {
        Record::Trial(trial) => {
            let cell = || format!("{} {} {}", trial.workload, trial.point, trial.variant);
            if let Outcome::Done { samples, counters, .. } = &trial.outcome {
                for (metric, values) in samples {
                    if values.iter().any(|value| !value.is_finite()) {
                        return not_finite(format!("a sample of `{metric}` of {}", cell()));
                    }
                }
                for (name, value) in counters {
                    if !value.is_finite() {
                        return not_finite(format!("the counter `{name}` of {}", cell()));
                    }
                }
            }
            Ok(())
        }
        Record::Summary(Summary {
            workload,
            point,
            variant,
            metric,
            value,
            stddev,
            cv_pct,
            improvement_pct,
        }) => {
            let all = [value, stddev, cv_pct, improvement_pct];
            if all.into_iter().flatten().any(|number| !number.is_finite()) {
                return not_finite(format!("a figure of `{metric}` of {workload} {point} {variant}"));
            }
            Ok(())
        }
        // These are rare, so that reading them back costs nothing that counts; NaN is not equal to itself.
        Record::Header(_) | Record::Facts { .. } | Record::Boot(_) => {
            let back = serde_json::to_string(record).and_then(|text| serde_json::from_str::<Record>(&text));
            match back {
                Ok(same) if same == *record => Ok(()),
                _ => not_finite("a number of the header, of the facts or of a boot".into()),
            }
        }
        Record::Resumed { .. } | Record::Notice { .. } | Record::End { .. } => Ok(()),
    }
}
