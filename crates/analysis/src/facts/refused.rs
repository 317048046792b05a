//! Comparisons that are refused: across CPU models, preemption models and debug options.

use super::Difference;
use experiment::{Refusal, Variant, cost_of};

/// A comparison that is refused, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What would have to be accepted.
    pub refusal: Refusal,
    /// What differs, in words.
    pub why: String,
}

impl Refused {
    /// A difference between variants.
    pub(super) fn between(variants: &[Variant], difference: &Difference) -> Option<Refused> {
        let refusal = difference.refusal()?;
        let sides: Vec<(&str, &Option<String>)> =
            variants.iter().map(|variant| variant.name.as_str()).zip(&difference.values).collect();
        let with = |wanted: &str| {
            let names = sides.iter().filter(|(_, value)| value.as_deref() == Some(wanted));
            names.map(|(name, _)| *name).collect::<Vec<&str>>().join(", ")
        };
        let why = match &refusal {
            Refusal::DebugOption(option) => {
                let does = cost_of(option).unwrap_or("costs time");
                format!("{option} is on in {} and not in {}: it {does}", with("y"), with("n"))
            }
            _ => {
                let values = sides.iter().map(|(name, value)| {
                    format!("`{}` under {name}", value.as_deref().unwrap_or("not known"))
                });
                format!("{} is {}", difference.fact, values.collect::<Vec<String>>().join(", "))
            }
        };
        Some(Refused { refusal, why })
    }

    /// A difference between two readings of the same variant.
    pub(super) fn within(variant: &str, change: &Difference) -> Option<Refused> {
        let refusal = change.refusal()?;
        let values: Vec<&str> =
            change.values.iter().map(|value| value.as_deref().unwrap_or("not known")).collect();
        let why = format!(
            "{} of {variant} changed while the run lasted, from `{}`",
            change.fact,
            values.join("` to `")
        );
        Some(Refused { refusal, why })
    }
}

/// What is said where a comparison is refused: what differs, and how to compare all the same. Empty where nothing is
/// refused.
pub fn refusal_in_words(refused: &[Refused]) -> String {
    if refused.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "the variants are not compared, because they differ in what nobody asked for and what alone may make the \
         difference:\n",
    );
    let mut names: Vec<String> = Vec::new();
    let mut debug = 0;
    for Refused { refusal, why } in refused {
        text.push_str(&format!("  - {why}\n"));
        debug += usize::from(matches!(refusal, Refusal::DebugOption(_)));
        let name = refusal.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // A debug build has a dozen of them.
    if debug > 3 {
        names.retain(|name| !name.starts_with("CONFIG_"));
        names.push(Refusal::DebugOptions.to_string());
    }
    text.push_str("Give them kernels and machines that agree");
    if refused.iter().any(|refused| refused.refusal == Refusal::Preemption) {
        text.push_str(" (the boot argument preempt= chooses the model: --set append=preempt=full)");
    }
    text.push_str(&format!(", or compare all the same: --accept-difference {}", names.join(",")));
    text
}
