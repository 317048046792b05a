use crate::{Metric, ParamError, Params, Point, did_you_mean};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything there is to say about a workload: the single source of its help, its documentation, the parsing of
/// its parameters and the headers of its reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The name that users type.
    pub name: String,
    /// One line: what it measures.
    pub summary: String,
    /// What it does, for `kduel show` and the documentation: paragraphs separated by blank lines.
    pub about: String,
    /// The benchmark that it stands beside, with its version or date, and what differs; empty for kduel's own.
    pub source: String,
    /// What a table's rows sweep.
    pub axis: Axis,
    /// Its parameters, in the order of the help. The axis is not among them.
    pub parameters: Vec<Parameter>,
    /// Its metrics, in the order of the report.
    pub metrics: Vec<Metric>,
    /// What it needs of the machine, each as a clause: `System V semaphores`.
    pub requirements: Vec<String>,
}

/// The parameter that a table's rows sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// The word for it: `threads`, `groups`.
    pub name: String,
    /// The head of the first column in the normalized style, without its colon: `Case`, `Clients`, `#workers`.
    pub heading: String,
    /// What follows the value in a row label: `-groups`, or nothing.
    pub suffix: String,
    /// The points that are taken when none are asked for.
    pub points: Vec<Point>,
    /// The smallest and largest value, where points are numbers; `None` where they are names.
    pub range: Option<(u64, u64)>,
}

/// One parameter of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// The name that users type.
    pub name: String,
    /// What values it takes.
    pub kind: Kind,
    /// The value when nobody sets it, in the form that users type.
    pub default: String,
    /// One sentence, with the unit.
    pub help: String,
}

/// What values a parameter takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A whole number within limits, both included. Underscores may group its digits.
    Integer {
        /// The smallest legal value.
        min: i64,
        /// The largest legal value.
        max: i64,
    },
    /// A finite number within limits, both included.
    Decimal {
        /// The smallest legal value.
        min: f64,
        /// The largest legal value.
        max: f64,
    },
    /// One of these words.
    Choice(Vec<String>),
    /// One of these words, or a whole number within limits, both included. Underscores may group its digits.
    WordOrNumber {
        /// The words.
        words: Vec<String>,
        /// The smallest legal number.
        min: i64,
        /// The largest legal number.
        max: i64,
    },
    /// `on` or `off`.
    Flag,
    /// Any text.
    Text,
}

impl Parameter {
    /// A whole number from `min` to `max`.
    pub fn integer(name: &str, default: i64, min: i64, max: i64, help: &str) -> Parameter {
        Parameter::of(name, Kind::Integer { min, max }, &default.to_string(), help)
    }

    /// A number from `min` to `max`.
    pub fn decimal(name: &str, default: f64, min: f64, max: f64, help: &str) -> Parameter {
        Parameter::of(name, Kind::Decimal { min, max }, &default.to_string(), help)
    }

    /// One of `choices`; the first is the default.
    pub fn choice(name: &str, choices: &[&str], help: &str) -> Parameter {
        let words = choices.iter().map(|word| word.to_string()).collect();
        Parameter::of(name, Kind::Choice(words), choices.first().unwrap_or(&""), help)
    }

    /// One of `words`, of which the first is the default, or a whole number from `min` to `max`.
    pub fn word_or_number(name: &str, words: &[&str], min: i64, max: i64, help: &str) -> Parameter {
        let all = words.iter().map(|word| word.to_string()).collect();
        Parameter::of(name, Kind::WordOrNumber { words: all, min, max }, words.first().unwrap_or(&""), help)
    }

    /// A switch.
    pub fn flag(name: &str, default: bool, help: &str) -> Parameter {
        Parameter::of(name, Kind::Flag, if default { "on" } else { "off" }, help)
    }

    /// Any text.
    pub fn text(name: &str, default: &str, help: &str) -> Parameter {
        Parameter::of(name, Kind::Text, default, help)
    }

    fn of(name: &str, kind: Kind, default: &str, help: &str) -> Parameter {
        Parameter { name: name.into(), kind, default: default.into(), help: help.into() }
    }

    /// Checks `value` and gives it in its one written form (`1_000` becomes `1000`, `true` becomes `on`).
    ///
    /// # Errors
    /// When the value is not of the parameter's kind or beyond its limits; the error says what would be.
    pub fn check(&self, value: &str) -> Result<String, ParamError> {
        let wrong =
            |wanted: String| ParamError::Value { name: self.name.clone(), value: value.to_string(), wanted };
        match &self.kind {
            Kind::Integer { min, max } => {
                whole(value, *min, *max).ok_or_else(|| wrong(format!("a whole number from {min} to {max}")))
            }
            Kind::WordOrNumber { words, .. } if words.iter().any(|word| word == value) => {
                Ok(value.to_string())
            }
            Kind::WordOrNumber { words, min, max } => whole(value, *min, *max).ok_or_else(|| {
                wrong(format!("`{}`, or a whole number from {min} to {max}", words.join("`, `")))
            }),
            Kind::Decimal { min, max } => match value.parse::<f64>() {
                Ok(number) if number.is_finite() && number >= *min && number <= *max => {
                    Ok(number.to_string())
                }
                _ => Err(wrong(format!("a number from {min} to {max}"))),
            },
            Kind::Choice(words) => match words.iter().find(|word| *word == value) {
                Some(word) => Ok(word.clone()),
                None => Err(wrong(format!(
                    "one of {} ({})",
                    words.join(", "),
                    did_you_mean(value, words.iter().map(String::as_str))
                ))),
            },
            Kind::Flag => match value {
                "on" | "true" | "yes" | "1" => Ok("on".into()),
                "off" | "false" | "no" | "0" => Ok("off".into()),
                _ => Err(wrong("`on` or `off`".into())),
            },
            Kind::Text => Ok(value.to_string()),
        }
    }

    /// The kind in words, for help: `1..64`, `socket|pipe`, `on|off`.
    pub fn kind_in_words(&self) -> String {
        match &self.kind {
            Kind::Integer { min, max: i64::MAX } => format!("{min}.."),
            Kind::Integer { min, max } => format!("{min}..{max}"),
            Kind::Decimal { min, max } => format!("{min}..{max}"),
            Kind::Choice(words) => words.join("|"),
            Kind::WordOrNumber { words, min, max } => format!("{}|{min}..{max}", words.join("|")),
            Kind::Flag => "on|off".into(),
            Kind::Text => "text".into(),
        }
    }
}

/// A whole number from `min` to `max` in its one written form, if `value` is one.
fn whole(value: &str, min: i64, max: i64) -> Option<String> {
    let number = value.replace('_', "").parse::<i64>().ok()?;
    (min..=max).contains(&number).then(|| number.to_string())
}

impl Description {
    /// Whether it stands beside no other benchmark.
    pub fn is_own(&self) -> bool {
        self.source.is_empty()
    }

    /// The parameter of this name.
    ///
    /// # Errors
    /// When there is none; the error names the nearest.
    pub fn parameter(&self, name: &str) -> Result<&Parameter, ParamError> {
        self.parameters.iter().find(|parameter| parameter.name == name).ok_or_else(|| ParamError::Unknown {
            workload: self.name.clone(),
            name: name.to_string(),
            hint: did_you_mean(name, self.parameters.iter().map(|parameter| parameter.name.as_str())),
        })
    }

    /// The metric of this name, if the workload has it.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// The values of all parameters: what is set, checked, and the defaults of the rest.
    ///
    /// # Errors
    /// At the first unknown parameter or bad value.
    pub fn params(&self, set: &BTreeMap<String, String>) -> Result<Params, ParamError> {
        for name in set.keys() {
            self.parameter(name)?;
        }
        let mut values = BTreeMap::new();
        for parameter in &self.parameters {
            let value = match set.get(&parameter.name) {
                Some(value) => parameter.check(value)?,
                None => parameter.default.clone(),
            };
            values.insert(parameter.name.clone(), value);
        }
        Ok(Params::new(values))
    }

    /// Checks that `point` lies on the axis.
    ///
    /// # Errors
    /// When it is not a number where numbers are wanted, or beyond the limits.
    pub fn check_point(&self, point: &Point) -> Result<(), ParamError> {
        match self.axis.range {
            None => Ok(()),
            Some((min, max)) => match point.number() {
                Some(number) if (min..=max).contains(&number) => Ok(()),
                _ => Err(ParamError::Point {
                    workload: self.name.clone(),
                    point: point.to_string(),
                    wanted: format!("a number of {} from {min} to {max}", self.axis.name),
                }),
            },
        }
    }

    /// A point's label in the first column of a table: `16-groups`.
    pub fn row_label(&self, point: &Point) -> String {
        format!("{point}{}", self.axis.suffix)
    }
}
