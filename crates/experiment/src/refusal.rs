//! Differences across which nothing is compared.

use crate::{costly_options, nearest};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A difference between machines or kernels that says so much about every figure that nothing is compared across it,
/// unless it is accepted by name. Written `cpu-model`, `preemption`, `debug-options`, or as a kernel option.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Refusal {
    /// Other CPUs.
    CpuModel,
    /// Another preemption model.
    Preemption,
    /// Any option that costs time; only to accept them all.
    DebugOptions,
    /// An option that costs time, such as `CONFIG_PROVE_LOCKING`.
    DebugOption(String),
}

/// A name that no such difference has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no difference that refuses a comparison is called `{name}`; {hint}")]
pub struct RefusalError {
    /// The name that was given.
    pub name: String,
    /// The nearest, or all kinds.
    pub hint: String,
}

impl Refusal {
    /// Whether accepting this accepts `other`.
    pub fn covers(&self, other: &Refusal) -> bool {
        self == other || matches!((self, other), (Refusal::DebugOptions, Refusal::DebugOption(_)))
    }
}

impl FromStr for Refusal {
    type Err = RefusalError;

    /// Reads the written form; a kernel option may stand without `CONFIG_`, and case does not count.
    fn from_str(text: &str) -> Result<Refusal, RefusalError> {
        const KINDS: [&str; 3] = ["cpu-model", "preemption", "debug-options"];
        let name = text.trim().to_lowercase().replace([' ', '_'], "-");
        match name.as_str() {
            "cpu-model" => return Ok(Refusal::CpuModel),
            "preemption" => return Ok(Refusal::Preemption),
            "debug-options" => return Ok(Refusal::DebugOptions),
            _ => {}
        }
        let upper = text.trim().to_uppercase();
        let option = if upper.starts_with("CONFIG_") { upper } else { format!("CONFIG_{upper}") };
        if costly_options().any(|known| known == option) {
            return Ok(Refusal::DebugOption(option));
        }
        let hint = match nearest(&name, KINDS).or_else(|| nearest(&option, costly_options())) {
            Some(known) => format!("did you mean `{known}`?"),
            None => format!(
                "known are: {}, and each kernel option that costs time, such as CONFIG_PROVE_LOCKING",
                KINDS.join(", ")
            ),
        };
        Err(RefusalError { name: text.into(), hint })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::CpuModel => "cpu-model",
            Refusal::Preemption => "preemption",
            Refusal::DebugOptions => "debug-options",
            Refusal::DebugOption(option) => option,
        })
    }
}

impl TryFrom<String> for Refusal {
    type Error = RefusalError;

    fn try_from(text: String) -> Result<Refusal, RefusalError> {
        text.parse()
    }
}

impl From<Refusal> for String {
    fn from(refusal: Refusal) -> String {
        refusal.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip_and_slips_are_named() {
        for text in ["cpu-model", "preemption", "debug-options", "CONFIG_PROVE_LOCKING"] {
            assert_eq!(text.parse::<Refusal>().unwrap().to_string(), text);
        }
        assert_eq!("CPU model".parse(), Ok(Refusal::CpuModel));
        assert_eq!("debug_mutexes".parse(), Ok(Refusal::DebugOption("CONFIG_DEBUG_MUTEXES".into())));
        let error = "preemtion".parse::<Refusal>().unwrap_err().to_string();
        assert!(error.contains("`preemption`"), "{error}");
        let error = "CONFIG_PROVE_LOKING".parse::<Refusal>().unwrap_err().to_string();
        assert!(error.contains("`CONFIG_PROVE_LOCKING`"), "{error}");
        let error = "CONFIG_HZ".parse::<Refusal>().unwrap_err().to_string();
        assert!(error.contains("called `CONFIG_HZ`"), "{error}");
    }

    #[test]
    fn one_name_covers_all_debug_options() {
        let option = Refusal::DebugOption("CONFIG_KASAN".into());
        assert!(Refusal::DebugOptions.covers(&option) && option.covers(&option));
        assert!(!option.covers(&Refusal::DebugOptions) && !Refusal::Preemption.covers(&option));
    }
}
