use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// What is wrong with a parameter or a point.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ParamError {
    /// No parameter has this name.
    #[error("workload `{workload}` has no parameter `{name}`; {hint}")]
    Unknown {
        /// The workload that was asked.
        workload: String,
        /// The name that was given.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// A value that the parameter does not take.
    #[error("parameter `{name}` cannot be `{value}`: it takes {wanted}")]
    Value {
        /// The parameter.
        name: String,
        /// The value that was given.
        value: String,
        /// What it takes.
        wanted: String,
    },
    /// A point that is not on the axis.
    #[error("`{point}` is no point of workload `{workload}`: it takes {wanted}")]
    Point {
        /// The workload that was asked.
        workload: String,
        /// The point that was given.
        point: String,
        /// What it takes.
        wanted: String,
    },
}

/// The values of all parameters of a workload, each already checked against its description.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    pub(crate) fn new(values: BTreeMap<String, String>) -> Params {
        Params(values)
    }

    /// The value as it is written.
    ///
    /// # Errors
    /// When the description does not have the parameter: a fault of the workload that asks.
    pub fn text(&self, name: &str) -> Result<&str, ParamError> {
        self.0.get(name).map(String::as_str).ok_or_else(|| ParamError::Value {
            name: name.into(),
            value: String::new(),
            wanted: "a place in the workload's description, which it does not have".into(),
        })
    }

    /// The value as a whole number.
    ///
    /// # Errors
    /// When it is none.
    pub fn integer(&self, name: &str) -> Result<i64, ParamError> {
        self.parsed(name, "a whole number")
    }

    /// The value as a whole number that is not negative.
    ///
    /// # Errors
    /// When it is none.
    pub fn count(&self, name: &str) -> Result<u64, ParamError> {
        self.parsed(name, "a whole number from 0")
    }

    /// The value as a number.
    ///
    /// # Errors
    /// When it is none.
    pub fn decimal(&self, name: &str) -> Result<f64, ParamError> {
        self.parsed(name, "a number")
    }

    /// Whether the switch is on.
    ///
    /// # Errors
    /// When the parameter is not there.
    pub fn flag(&self, name: &str) -> Result<bool, ParamError> {
        Ok(self.text(name)? == "on")
    }

    /// All parameters with their values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str, wanted: &str) -> Result<T, ParamError> {
        let value = self.text(name)?;
        value.parse().map_err(|_| ParamError::Value {
            name: name.into(),
            value: value.into(),
            wanted: wanted.into(),
        })
    }
}
