use crate::{Knob, KnobError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One side of the duel: a name and the knobs that make it what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The name that reports print.
    pub name: String,
    /// What it changes; empty for the machine as it is.
    #[serde(default)]
    pub knobs: Vec<Knob>,
}

/// What is wrong with a variant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VariantError {
    /// The name is empty or would break a table.
    #[error("`{0}` cannot name a variant: use letters, digits and any of `_ - + . @`, at most 40")]
    Name(String),
    /// An item that is not KEY=VALUE.
    #[error("variant `{variant}`: `{item}` is not KEY=VALUE")]
    Item {
        /// The variant.
        variant: String,
        /// The item that was given.
        item: String,
    },
    /// The same knob twice.
    #[error("variant `{variant}` sets `{key}` twice")]
    Twice {
        /// The variant.
        variant: String,
        /// The knob.
        key: String,
    },
    /// A knob that cannot be.
    #[error("variant `{variant}`: {error}")]
    Knob {
        /// The variant.
        variant: String,
        /// What is wrong with its knob.
        error: KnobError,
    },
}

impl Variant {
    /// A variant of this name and these knobs.
    ///
    /// # Errors
    /// When the name would break a table or a knob is given twice.
    pub fn new(name: &str, knobs: Vec<Knob>) -> Result<Variant, VariantError> {
        let legal = !name.is_empty()
            && name.len() <= 40
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-+.@".contains(c));
        if !legal {
            return Err(VariantError::Name(name.into()));
        }
        for (place, knob) in knobs.iter().enumerate() {
            if knobs[..place].iter().any(|earlier| earlier.scope == knob.scope) {
                return Err(VariantError::Twice { variant: name.into(), key: knob.key() });
            }
        }
        Ok(Variant { name: name.into(), knobs })
    }

    /// Reads `NAME[:KEY=VALUE,…]`. An item without `=` continues the value before it, so that `cpus=0,2-3,lock=mcs`
    /// needs no quoting; `\,` is a comma that ends nothing.
    ///
    /// # Errors
    /// When a part cannot be meant.
    pub fn parse(text: &str) -> Result<Variant, VariantError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut continues = false;
        for item in rest.split(',').filter(|_| !rest.is_empty()) {
            let (body, escaped) = match item.strip_suffix('\\') {
                Some(body) => (body, true),
                None => (item, false),
            };
            match (continues, body.split_once('='), pairs.last_mut()) {
                (false, Some((key, value)), _) if !key.is_empty() => pairs.push((key.into(), value.into())),
                (_, _, Some((_, value))) => {
                    value.push(',');
                    value.push_str(body);
                }
                _ => return Err(VariantError::Item { variant: name.into(), item: item.into() }),
            }
            continues = escaped;
        }
        let knobs = pairs
            .iter()
            .map(|(key, value)| {
                Knob::parse(key, value).map_err(|error| VariantError::Knob { variant: name.into(), error })
            })
            .collect::<Result<Vec<Knob>, VariantError>>()?;
        Variant::new(name, knobs)
    }

    /// The knobs in one line, for headers: `lock=mcs, nice=5`, or `as is`.
    pub fn knobs_in_words(&self) -> String {
        if self.knobs.is_empty() {
            return "as is".into();
        }
        self.knobs.iter().map(Knob::to_string).collect::<Vec<String>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_inside_values_need_no_quoting() {
        let variant = Variant::parse("b:cpus=0,2-3,lock=mcs").unwrap();
        assert_eq!(variant.knobs_in_words(), "cpus=0,2-3, lock=mcs");
        let variant = Variant::parse(r"b:command=a\,b=c,nice=1").unwrap();
        assert_eq!(variant.knobs_in_words(), "command=a,b=c, nice=1");
        assert!(Variant::parse("plain").unwrap().knobs.is_empty());
    }

    #[test]
    fn faults_are_named() {
        assert!(matches!(Variant::parse("a:lock"), Err(VariantError::Item { .. })));
        assert!(matches!(Variant::parse("a b"), Err(VariantError::Name(_))));
        assert!(matches!(Variant::parse("a:nice=1,nice=2"), Err(VariantError::Twice { .. })));
    }
}
