//! The TOML form of an experiment. It is read value by value, so that each fault has a line and a column.

use crate::experiment::ScaleEntry;
use crate::{
    AskError, Blocks, Entry, Experiment, Knob, Point, Refusal, RefusalError, Scale, TargetKind, Variant,
    did_you_mean,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with an experiment file, and where.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("line {line}, column {column}: {what}")]
pub struct TomlError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there and what would be right.
    pub what: String,
}

/// Reads an experiment.
///
/// # Errors
/// At the first thing that is no TOML or no part of an experiment, with its place.
pub fn from_toml(text: &str) -> Result<Experiment, TomlError> {
    read(text).map_err(|Fault { at, what }| {
        let before = text.get(..at.min(text.len())).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        TomlError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what,
        }
    })
}

struct Fault {
    at: usize,
    what: String,
}

type Read<T> = Result<T, Fault>;
type Value<'a> = Spanned<DeValue<'a>>;

fn fault<T>(span: Range<usize>, what: impl Into<String>) -> Read<T> {
    Err(Fault { at: span.start, what: what.into() })
}

const KEYS: [&str; 12] = [
    "title",
    "workload",
    "variant",
    "set",
    "blocks",
    "margin",
    "seed",
    "aa",
    "target",
    "deadline",
    "scale",
    "accept-differences",
];

fn read(text: &str) -> Read<Experiment> {
    let document = DeTable::parse(text).map_err(|error| Fault {
        at: error.span().map_or(0, |span| span.start),
        what: error.message().trim().to_string(),
    })?;
    let mut experiment = Experiment::new(Vec::new(), Vec::new());
    for (key, value) in document.get_ref() {
        match key.get_ref().as_ref() {
            "title" => experiment.title = Some(string(value)?),
            "workload" => {
                experiment.workloads =
                    tables(value)?.map(|(table, span)| entry(table, span)).collect::<Read<_>>()?
            }
            "variant" => {
                experiment.variants =
                    tables(value)?.map(|(table, span)| variant(table, span)).collect::<Read<_>>()?
            }
            "set" => experiment.set = settings(table(value)?.iter())?,
            "blocks" => experiment.blocks = blocks(value)?,
            "margin" => experiment.margin_pct = decimal(value)?,
            "seed" => experiment.seed = Some(whole(value)?),
            "aa" => experiment.aa = switch(value)?,
            "target" => {
                experiment.target = TargetKind::parse(&string(value)?)
                    .or_else(|error| fault(value.span(), error.to_string()))?;
            }
            "deadline" => experiment.deadline_s = decimal(value)?,
            "accept-differences" => experiment.accept_differences = refusals(value)?,
            "scale" => experiment.small = scale(table(value)?)?,
            other => {
                return fault(
                    key.span(),
                    format!("no setting is called `{other}`; {}", did_you_mean(other, KEYS)),
                );
            }
        }
    }
    if experiment.workloads.is_empty() {
        return fault(0..0, format!("{}", AskError::NoWorkload));
    }
    Ok(experiment)
}

fn entry(table: &DeTable<'_>, span: Range<usize>) -> Read<Entry> {
    let mut name = None;
    let mut label = None;
    let mut points = Vec::new();
    let mut rest = Vec::new();
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "name" => name = Some(string(value)?),
            "label" => match string(value)? {
                text if text.trim().is_empty() || text.contains(char::is_control) => {
                    return fault(
                        value.span(),
                        "a label takes at least one letter, and no control characters",
                    );
                }
                text => label = Some(text),
            },
            "points" => points = point_list(value)?,
            _ => rest.push((key, value)),
        }
    }
    let Some(workload) = name else {
        return fault(span, "this [[workload]] has no `name`");
    };
    let label = label.unwrap_or_else(|| workload.clone());
    Ok(Entry { workload, label, points, set: settings(rest.into_iter())? })
}

fn variant(table: &DeTable<'_>, span: Range<usize>) -> Read<Variant> {
    let mut name = None;
    let mut knobs = Vec::new();
    for (key, value) in table {
        if key.get_ref() == "name" {
            name = Some(string(value)?);
            continue;
        }
        for (key, value, span) in flattened(key.get_ref(), value)? {
            knobs.push(Knob::parse(&key, &value).or_else(|error| fault(span, error.to_string()))?);
        }
    }
    let Some(name) = name else {
        return fault(span, "this [[variant]] has no `name`");
    };
    Variant::new(&name, knobs).or_else(|error| fault(span, error.to_string()))
}

/// `sysctl.kernel.x = 1` is a nest of tables to TOML and one dotted knob to us.
fn flattened(key: &str, value: &Value<'_>) -> Read<Vec<(String, String, Range<usize>)>> {
    match value.get_ref() {
        DeValue::Table(table) => {
            let mut all = Vec::new();
            for (inner, value) in table {
                all.extend(flattened(&format!("{key}.{}", inner.get_ref()), value)?);
            }
            Ok(all)
        }
        _ => Ok(vec![(key.to_string(), plain(value)?, value.span())]),
    }
}

fn scale(table_of_scales: &DeTable<'_>) -> Read<Option<Scale>> {
    let mut small = None;
    for (key, value) in table_of_scales {
        if key.get_ref() != "small" {
            return fault(key.span(), format!("no scale is called `{}`; known is: small", key.get_ref()));
        }
        let mut scale = Scale::default();
        for (key, value) in table(value)? {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("blocks", _) => scale.blocks = Some(blocks(value)?),
                ("vm", DeValue::Table(_)) => {
                    let vm = flattened("vm", value)?;
                    scale.set.extend(vm.into_iter().map(|(key, value, _)| (key, value)));
                }
                (label, DeValue::Table(inner)) => {
                    let mut entry = ScaleEntry::default();
                    let mut rest = Vec::new();
                    for (key, value) in inner {
                        match key.get_ref().as_ref() {
                            "points" => entry.points = point_list(value)?,
                            _ => rest.push((key, value)),
                        }
                    }
                    entry.set = settings(rest.into_iter())?;
                    scale.workloads.insert(label.to_string(), entry);
                }
                (name, _) => {
                    scale.set.insert(name.to_string(), plain(value)?);
                }
            }
        }
        small = Some(scale);
    }
    Ok(small)
}

fn settings<'a, 'b: 'a>(
    pairs: impl Iterator<Item = (&'a Spanned<std::borrow::Cow<'b, str>>, &'a Value<'b>)>,
) -> Read<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for (key, value) in pairs {
        all.extend(flattened(key.get_ref(), value)?.into_iter().map(|(key, value, _)| (key, value)));
    }
    Ok(all)
}

fn blocks(value: &Value<'_>) -> Read<Blocks> {
    match value.get_ref() {
        DeValue::String(word) if word == "until-decided" => Ok(Blocks::UntilDecided),
        DeValue::Integer(_) => match u32::try_from(whole(value)?) {
            Ok(blocks) if (1..=100_000).contains(&blocks) => Ok(Blocks::Exactly(blocks)),
            _ => fault(value.span(), "`blocks` takes a whole number from 1 to 100000"),
        },
        _ => fault(value.span(), "`blocks` takes a whole number or \"until-decided\""),
    }
}

fn point_list(value: &Value<'_>) -> Read<Vec<Point>> {
    let points: Vec<Point> = match value.get_ref() {
        DeValue::Array(items) => {
            items.iter().map(|item| Ok(Point::new(plain(item)?))).collect::<Read<_>>()?
        }
        DeValue::String(list) => Point::list(list),
        _ => Vec::new(),
    };
    if points.is_empty() {
        return fault(
            value.span(),
            "`points` takes an array such as [1, 2, 4] or a list such as \"1-4,8\"; leave it out for the usual ones",
        );
    }
    Ok(points)
}

fn refusals(value: &Value<'_>) -> Read<Vec<Refusal>> {
    let DeValue::Array(items) = value.get_ref() else {
        return fault(value.span(), "`accept-differences` takes an array such as [\"preemption\"]");
    };
    let refusal = |item: &Value<'_>| {
        string(item)?.parse::<Refusal>().or_else(|error: RefusalError| fault(item.span(), error.to_string()))
    };
    items.iter().map(refusal).collect()
}

fn table<'a, 'b>(value: &'a Value<'b>) -> Read<&'a DeTable<'b>> {
    match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        _ => fault(value.span(), "a table is wanted here"),
    }
}

/// The tables of an array of tables, each with its place, ready to be read by one function.
fn tables<'a, 'b>(value: &'a Value<'b>) -> Read<impl Iterator<Item = (&'a DeTable<'b>, Range<usize>)>> {
    let DeValue::Array(items) = value.get_ref() else {
        return fault(value.span(), "write [[workload]] and [[variant]] with double brackets");
    };
    let tables = items
        .iter()
        .map(|item| Ok((table(item)?, item.span())))
        .collect::<Read<Vec<(&DeTable<'b>, Range<usize>)>>>()?;
    Ok(tables.into_iter())
}

fn string(value: &Value<'_>) -> Read<String> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        _ => fault(value.span(), "a string in quotes is wanted here"),
    }
}

fn switch(value: &Value<'_>) -> Read<bool> {
    match value.get_ref() {
        DeValue::Boolean(on) => Ok(*on),
        _ => fault(value.span(), "`true` or `false` is wanted here"),
    }
}

fn whole(value: &Value<'_>) -> Read<u64> {
    match value.get_ref() {
        DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix())
            .or_else(|_| fault(value.span(), "a whole number from 0 is wanted here")),
        _ => fault(value.span(), "a whole number is wanted here"),
    }
}

fn decimal(value: &Value<'_>) -> Read<f64> {
    let digits = match value.get_ref() {
        DeValue::Float(digits) => digits.as_str(),
        DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str(),
        _ => return fault(value.span(), "a number is wanted here"),
    };
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => fault(value.span(), "a finite number is wanted here"),
    }
}

/// The value of a parameter or knob in the form that a flag would have.
fn plain(value: &Value<'_>) -> Read<String> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(digits) if digits.radix() == 10 => Ok(digits.as_str().to_string()),
        DeValue::Integer(_) => Ok(whole(value)?.to_string()),
        DeValue::Float(_) => Ok(decimal(value)?.to_string()),
        DeValue::Boolean(on) => Ok(if *on { "on".into() } else { "off".into() }),
        _ => fault(value.span(), "a string, a number, or `true` or `false` is wanted here"),
    }
}

/// Writes an experiment so that [`from_toml`] reads the same again.
pub fn to_toml(experiment: &Experiment) -> String {
    let mut out = String::new();
    let quoted = |text: &str| toml::Value::String(text.to_string()).to_string();
    let points = |points: &[Point]| {
        let labels: Vec<String> = points.iter().map(|point| quoted(point.as_str())).collect();
        format!("[{}]", labels.join(", "))
    };
    let blocks = |blocks: Blocks| match blocks {
        Blocks::Exactly(count) => count.to_string(),
        Blocks::UntilDecided => quoted("until-decided"),
    };
    // Writing to a String cannot fail, so the results are dropped.
    if let Some(title) = &experiment.title {
        let _ = writeln!(out, "title = {}", quoted(title));
    }
    let _ = writeln!(out, "blocks = {}", blocks(experiment.blocks));
    let _ = writeln!(out, "margin = {:?}", experiment.margin_pct);
    if let Some(seed) = experiment.seed {
        let _ = writeln!(out, "seed = {seed}");
    }
    let _ = writeln!(out, "aa = {}", experiment.aa);
    let _ = writeln!(out, "target = {}", quoted(&experiment.target.to_string()));
    let _ = writeln!(out, "deadline = {:?}", experiment.deadline_s);
    if !experiment.accept_differences.is_empty() {
        let names: Vec<String> =
            experiment.accept_differences.iter().map(|refusal| quoted(&refusal.to_string())).collect();
        let _ = writeln!(out, "accept-differences = [{}]", names.join(", "));
    }
    let set = |out: &mut String, set: &BTreeMap<String, String>| {
        for (name, value) in set {
            let _ = writeln!(out, "{} = {}", quoted(name), quoted(value));
        }
    };
    if !experiment.set.is_empty() {
        let _ = writeln!(out, "\n[set]");
        set(&mut out, &experiment.set);
    }
    for entry in &experiment.workloads {
        let _ = writeln!(out, "\n[[workload]]\nname = {}", quoted(&entry.workload));
        if entry.label != entry.workload {
            let _ = writeln!(out, "label = {}", quoted(&entry.label));
        }
        if !entry.points.is_empty() {
            let _ = writeln!(out, "points = {}", points(&entry.points));
        }
        set(&mut out, &entry.set);
    }
    for variant in &experiment.variants {
        let _ = writeln!(out, "\n[[variant]]\nname = {}", quoted(&variant.name));
        for knob in &variant.knobs {
            let _ = writeln!(out, "{} = {}", quoted(&knob.key()), quoted(&knob.value));
        }
    }
    if let Some(small) = &experiment.small {
        let _ = writeln!(out, "\n[scale.small]");
        if let Some(count) = small.blocks {
            let _ = writeln!(out, "blocks = {}", blocks(count));
        }
        set(&mut out, &small.set);
        for (label, entry) in &small.workloads {
            let _ = writeln!(out, "\n[scale.small.{}]", quoted(label));
            if !entry.points.is_empty() {
                let _ = writeln!(out, "points = {}", points(&entry.points));
            }
            set(&mut out, &entry.set);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: &str = r#"
title = "Does the slice help?"
blocks = "until-decided"
margin = 1.5
seed = 42
aa = false
deadline = 30
target = "vm"
accept-differences = ["preemption", "CONFIG_KASAN"]

[set]
total = 1_000_000
vm.cpus = 4

[[workload]]
name = "global-lock"
label = "small lock"
points = [1, 2, 4]
count = "claim"

[[workload]]
name = "hackbench"
points = "1-3"

[[variant]]
name = "plain"
kernel = "installed"

[[variant]]
name = "tuned"
lock = "mcs"
kernel = "bzImage"
append = "preempt=full nosmt"
proxy = true
vm.memory = 512
sysctl.kernel.sched_autogroup_enabled = 0
env.GLIBC_TUNABLES = "glibc.pthread.rseq=0"
"sysfs.kernel/mm/transparent_hugepage/enabled" = "never"

[scale.small]
blocks = 6
total = 1000
vm.cpus = 2
[scale.small."small lock"]
points = [1]
count = "split"
"#;

    #[test]
    fn the_written_form_reads_as_the_same_experiment() {
        let experiment = from_toml(EVERYTHING).unwrap();
        assert_eq!(experiment.variants[1].knobs.len(), 8);
        assert_eq!((experiment.target.to_string(), experiment.set["vm.cpus"].as_str()), ("vm".into(), "4"));
        assert_eq!(experiment.small.as_ref().unwrap().set["vm.cpus"], "2");
        assert_eq!(experiment.accept_differences.len(), 2);
        assert_eq!(experiment.workloads[1].points.len(), 3);
        assert_eq!(experiment.small.as_ref().unwrap().workloads["small lock"].points.len(), 1);
        assert_eq!(from_toml(&to_toml(&experiment)).unwrap(), experiment, "{}", to_toml(&experiment));
    }

    #[test]
    fn the_small_scale_goes_before_what_a_workload_sets_for_itself() {
        let text = "[[workload]]\nname = \"x\"\ntotal = 9\nloops = 9\n[scale.small]\ntotal = 1\nloops = 1\n\
                    [scale.small.x]\nloops = 2\n";
        let small = from_toml(text).unwrap().scaled_small().unwrap();
        let value =
            |name: &str| small.workloads[0].set.get(name).or_else(|| small.set.get(name)).map(String::as_str);
        assert_eq!((value("total"), value("loops")), (Some("1"), Some("2")));
    }

    #[test]
    fn a_small_scale_of_no_workload_names_those_there_are() {
        let text = "[[workload]]\nname = \"hackbenhc\"\n[scale.small.hackbench]\npoints = [1]\n";
        let error = from_toml(text).unwrap().scaled_small().unwrap_err().to_string();
        assert!(error.starts_with("[scale.small.hackbench]: ") && error.contains("`hackbenhc`?"), "{error}");
    }

    #[test]
    fn a_fault_is_pointed_at() {
        let at = |text: &str| {
            let error = from_toml(text).unwrap_err();
            (error.line, error.column, error.what)
        };
        let (line, column, what) = at("blocks = 10\nmargni = 2\n");
        assert_eq!((line, column), (2, 1));
        assert!(what.contains("`margin`"), "{what}");
        let (line, column, what) = at("accept-differences = [\"cpu-model\", \"preemtion\"]\n");
        assert_eq!((line, column), (1, 36), "{what}");
        assert!(what.contains("`preemption`"), "{what}");
        let (line, column, what) = at("[[workload]]\nname = \"x\"\npoints = [1, {a = 1}]\n");
        assert_eq!((line, column), (3, 14), "{what}");
        let (line, _, what) = at("[[variant]]\nname = \"a\"\nsysctrl.kernel.x = 1\n");
        assert_eq!(line, 3);
        assert!(what.contains("`sysctl`"), "{what}");
        for points in ["[]", "\"\"", "3"] {
            let (line, column, what) = at(&format!("[[workload]]\nname = \"x\"\npoints = {points}\n"));
            assert_eq!((line, column), (3, 10), "{what}");
        }
        let (line, column, what) = at("[[workload]]\nname = \"x\"\nlabel = \"\"\n");
        assert_eq!((line, column), (3, 9), "{what}");
        let (line, column, _) = at("blocks = \n");
        assert_eq!((line, column), (1, 10));
        assert_eq!(at("blocks = 0\n").0, 1);
        assert!(at("blocks = 5\n").2.contains("no workload"));
    }
}
