//! What a command printed, as numbers.

use crate::Failure;
use crate::originals::last_line;
use experiment::Params;
use regex::Regex;
use serde_json::{Deserializer, Value};

/// Where the value stands in what the command prints.
#[derive(Debug)]
pub enum Figures {
    /// Nowhere: no value was asked for.
    None,
    /// In the group of each match.
    Matches(Regex),
    /// At this JSON pointer.
    Pointer(String),
}

impl Figures {
    /// What `regex` or `json` say.
    ///
    /// # Errors
    /// When both are given, or the regular expression is none, or has no single group.
    pub fn new(params: &Params) -> Result<Figures, Failure> {
        match (params.text("regex")?, params.text("json")?) {
            ("", "") => Ok(Figures::None),
            ("", path) => Ok(Figures::Pointer(pointer(path))),
            (text, "") => {
                let regex = Regex::new(text).map_err(|error| {
                    Failure::Refused(format!("`{text}` is no regular expression: {error}"))
                })?;
                match regex.captures_len() {
                    2 => Ok(Figures::Matches(regex)),
                    groups => Err(Failure::Refused(format!(
                        "`{text}` must have one group, (...), around the value, and has {}",
                        groups - 1
                    ))),
                }
            }
            _ => Err(Failure::Refused("give either `regex` or `json`, not both".into())),
        }
    }

    /// The values in what the command printed, at least one unless none were asked for.
    ///
    /// # Errors
    /// When there is none, or one that is no finite number.
    pub fn read(&self, stdout: &str, stderr: &str) -> Result<Vec<f64>, Failure> {
        let said = || last_line(stdout).or_else(|| last_line(stderr)).unwrap_or("nothing");
        match self {
            Figures::None => Ok(Vec::new()),
            Figures::Matches(regex) => {
                let both = [stdout, stderr];
                let found =
                    both.iter().flat_map(|text| regex.captures_iter(text)).filter_map(|found| found.get(1));
                let values =
                    found.map(|group| number(group.as_str())).collect::<Result<Vec<f64>, Failure>>()?;
                if values.is_empty() {
                    return Err(Failure::Refused(format!(
                        "`{}` matches nothing that the command printed; its last line: {}",
                        regex.as_str(),
                        said()
                    )));
                }
                Ok(values)
            }
            Figures::Pointer(pointer) => {
                let document = document(stdout).ok_or_else(|| {
                    Failure::Refused(format!("the command printed no JSON; its last line: {}", said()))
                })?;
                let value = document.pointer(pointer).ok_or_else(|| {
                    Failure::Refused(format!("the JSON of the command has nothing at `{pointer}`"))
                })?;
                match value {
                    Value::Array(values) if !values.is_empty() => values.iter().map(json_number).collect(),
                    value => Ok(vec![json_number(value)?]),
                }
            }
        }
    }
}

/// A dotted path as a JSON pointer; a pointer stays what it is.
fn pointer(path: &str) -> String {
    if path.starts_with('/') {
        return path.into();
    }
    path.split('.').map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1"))).collect()
}

/// The JSON in what a command printed: all of it, or else the last line that is JSON by itself, or what begins
/// at the first brace, whatever follows it.
fn document(stdout: &str) -> Option<Value> {
    let lines = || stdout.lines().rev().filter(|line| line.starts_with(['{', '[']));
    let from_brace = || Deserializer::from_str(&stdout[stdout.find('{')?..]).into_iter().next()?.ok();
    serde_json::from_str(stdout)
        .ok()
        .or_else(|| lines().find_map(|line| serde_json::from_str(line).ok()))
        .or_else(from_brace)
}

fn json_number(value: &Value) -> Result<f64, Failure> {
    match value {
        Value::Number(digits) => number(&digits.to_string()),
        Value::String(text) => number(text),
        other => {
            Err(Failure::Refused(format!("the JSON of the command has {other} where a number was expected")))
        }
    }
}

fn number(text: &str) -> Result<f64, Failure> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| Failure::Refused(format!("`{text}`, which the command printed, is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(regex: &str) -> Figures {
        Figures::Matches(Regex::new(regex).unwrap())
    }

    #[test]
    fn each_match_and_each_number_of_an_array_is_a_sample() {
        assert_eq!(
            matches(r"in ([\d.]+) ms").read("a in 1.5 ms\nb in 2 ms\n", "in 3 ms").unwrap(),
            [1.5, 2.0, 3.0]
        );
        let json = Figures::Pointer(pointer("jobs.0.iops"));
        assert_eq!(json.read(r#"{"jobs": [{"iops": [1, 2.5e3]}]}"#, "").unwrap(), [1.0, 2500.0]);
        assert_eq!(json.read("fio: starting\n{\"jobs\": [{\"iops\": \"7\"}]}\n", "warning").unwrap(), [7.0]);
        assert_eq!(json.read("start\n{\n\"jobs\": [{\"iops\": 8}]\n}\nend\n", "").unwrap(), [8.0]);
        assert_eq!(Figures::Pointer(pointer("/a~1b")).read("{\n\"a/b\": -1\n}", "").unwrap(), [-1.0]);
        assert!(Figures::None.read("1", "2").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_number_is_quoted() {
        let error = |figures: Figures, stdout: &str| figures.read(stdout, "").unwrap_err().to_string();
        assert!(error(matches(r"time (\S+)"), "time nan").contains("`nan`"));
        assert!(error(matches(r"time (\S+)"), "oops\n\n").contains("oops"));
        assert!(error(matches(r"time (\S+)"), "").contains("nothing"));
        assert!(error(Figures::Pointer("/a".into()), "oops").contains("oops"));
        assert!(error(Figures::Pointer("/a".into()), "{}").contains("/a"));
        assert!(error(Figures::Pointer("/a".into()), r#"{"a": [true]}"#).contains("true"));
        assert!(error(Figures::Pointer("/a".into()), r#"{"a": []}"#).contains("[]"));
    }
}
