use serde::{Deserialize, Serialize};
use std::fmt;

/// The absence of a value, always with its reason. It stands where other tools put -1, 0.0 or NaN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Why there is no value, as a clause that can follow "missing: ".
    pub why: String,
}

impl Missing {
    /// An absence with this reason.
    pub fn because(why: impl Into<String>) -> Missing {
        Missing { why: why.into() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// A value, or the reason why there is none.
pub type Known<T> = Result<T, Missing>;
