//! In what two runs, variants, machines, kernels or configurations differ: as text, and as one JSON object.

use crate::document::Block;
use crate::figures::WIDTH;
use crate::formats::text;
use crate::machines::absent;
use crate::options::ReportError;
use analysis::{About, Diff, Difference, OptionGroup, Side};
use experiment::{cost_of, counted};
use serde::Serialize;

/// The version of the object's form. It is raised when a field changes its meaning or goes.
const FORM: u32 = 1;

/// What two sides differ in, as text; all of it.
pub fn diff_text(diff: &Diff) -> String {
    let side = |letter: &str, side: &Side| {
        let config = side.facts.config.as_ref();
        let options = match config.and_then(|config| Some((&config.from, config.options.as_ref()?.len()))) {
            Some((from, count)) if *from == side.name => format!("{count} kernel options"),
            Some((from, count)) => format!("{count} kernel options, from {from}"),
            None => "kernel options not known".into(),
        };
        (letter.to_string(), format!("{}, {}; {options}", side.name, side.what.word()))
    };
    let [a, b] = &diff.sides;
    let mut blocks = vec![Block::Section("A and B".into()), Block::Pairs(vec![side("A", a), side("B", b)])];
    let mut section = |title: String, differences: &[&Difference]| {
        if !differences.is_empty() {
            blocks.push(Block::Section(title));
            blocks.push(Block::Items(differences.iter().map(|difference| line(difference)).collect()));
        }
    };
    let of = |about: fn(About) -> bool| -> Vec<&Difference> {
        diff.differences.iter().filter(|difference| about(difference.about)).collect()
    };
    section("Asked differently".into(), &diff.asked.iter().collect::<Vec<&Difference>>());
    section("Debug options that cost time".into(), &of(|about| about == About::DebugOption));
    let facts = of(|about| about == About::Fact);
    section(
        format!("Machine and kernel: {}, {} alike", counted(facts.len(), "difference"), diff.facts_alike),
        &facts,
    );
    let options = of(|about| about.group().is_some());
    let mut groups: Vec<OptionGroup> = options.iter().filter_map(|option| option.about.group()).collect();
    groups.dedup();
    for group in groups {
        let members: Vec<&Difference> =
            options.iter().filter(|option| option.about.group() == Some(group)).copied().collect();
        section(
            format!("Kernel options, {}: {}", group.word(), counted(members.len(), "difference")),
            &members,
        );
    }
    blocks.push(Block::Section("In short".into()));
    blocks.push(Block::Paragraph(in_short(diff)));
    text::print(&blocks, WIDTH, false)
}

fn line(difference: &Difference) -> String {
    let value = |place: usize| {
        let value = difference.values.get(place).and_then(|value| value.as_deref());
        value.unwrap_or(absent(&difference.fact)).to_string()
    };
    let does = match difference.about {
        About::DebugOption => cost_of(&difference.fact).map(|does| format!("; it {does}")),
        _ => None,
    };
    format!("{}: {} -> {}{}", difference.fact, value(0), value(1), does.unwrap_or_default())
}

fn in_short(diff: &Diff) -> String {
    let options = diff.differences.iter().filter(|difference| difference.about != About::Fact).count();
    let facts = diff.differences.len() - options;
    let of_options = match &diff.options {
        Ok(count) => format!("kernel options: {options} of {count}"),
        Err(missing) => missing.why.clone(),
    };
    let mut text = format!("Facts that differ: {facts} of {}; {of_options}.", facts + diff.facts_alike);
    let mut names: Vec<String> =
        diff.differences.iter().filter_map(Difference::refusal).map(|refusal| refusal.to_string()).collect();
    names.dedup();
    if !names.is_empty() {
        text.push_str(&format!(
            " kduel does not compare figures across {}, unless --accept-difference names it.",
            names.join(", ")
        ));
    }
    text
}

#[derive(Serialize)]
struct DiffOut<'a> {
    form: u32,
    a: SideOut<'a>,
    b: SideOut<'a>,
    asked: Vec<DifferenceOut<'a>>,
    differences: Vec<DifferenceOut<'a>>,
    facts_alike: usize,
    options_compared: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options_missing: Option<&'a str>,
}

#[derive(Serialize)]
struct SideOut<'a> {
    name: &'a str,
    what: &'static str,
}

#[derive(Serialize)]
struct DifferenceOut<'a> {
    fact: &'a str,
    about: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<OptionGroup>,
    a: Option<&'a str>,
    b: Option<&'a str>,
    /// What a debug option does.
    #[serde(skip_serializing_if = "Option::is_none")]
    does: Option<&'static str>,
    /// What `--accept-difference` takes for it, where it refuses a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    accept: Option<String>,
}

/// What two sides differ in, as one JSON object and a line break.
///
/// # Errors
/// When it cannot be written as JSON, which no known difference is.
pub fn diff_json(diff: &Diff) -> Result<String, ReportError> {
    let [a, b] = &diff.sides;
    let out = DiffOut {
        form: FORM,
        a: side_out(a),
        b: side_out(b),
        asked: diff.asked.iter().map(difference_out).collect(),
        differences: diff.differences.iter().map(difference_out).collect(),
        facts_alike: diff.facts_alike,
        options_compared: diff.options.as_ref().ok().copied(),
        options_missing: diff.options.as_ref().err().map(|missing| missing.why.as_str()),
    };
    let text = serde_json::to_string_pretty(&out).map_err(|error| ReportError::Json(error.to_string()))?;
    Ok(text + "\n")
}

fn side_out(side: &Side) -> SideOut<'_> {
    SideOut { name: &side.name, what: side.what.word() }
}

fn difference_out(difference: &Difference) -> DifferenceOut<'_> {
    let value = |place: usize| difference.values.get(place).and_then(|value| value.as_deref());
    DifferenceOut {
        fact: &difference.fact,
        about: difference.about.word(),
        group: difference.about.group(),
        a: value(0),
        b: value(1),
        does: match difference.about {
            About::DebugOption => cost_of(&difference.fact),
            _ => None,
        },
        accept: difference.refusal().map(|refusal| refusal.to_string()),
    }
}
