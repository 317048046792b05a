//! The JSON form: always valid, as its schema and its documentation say.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::{About, Analysis, Difference, OptionGroup, State};
use common::{
    absent, analysis_of, feature, global_lock, hackbench, in_virtual_time, reference, run, table, time,
};
use experiment::Missing;
use report::{Format, Options, import, render};
use serde_json::Value;
use std::collections::BTreeSet;

fn json(analysis: &Analysis) -> Value {
    let text = render(analysis, &Options { format: Format::Json, ..Options::default() }).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn docs(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(&docs("json.schema.json")).unwrap()
}

/// Checks `value` against the part of JSON Schema that ours uses, and fails on a word that it does not know.
fn check(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let fail = |why: String| Err(format!("{path}: {why}: {value}"));
    for (word, wanted) in schema.as_object().unwrap() {
        match word.as_str() {
            "$schema" | "title" | "description" | "$defs" => {}
            "$ref" => {
                let target = root.pointer(wanted.as_str().unwrap().trim_start_matches('#')).unwrap();
                check(root, target, value, path)?;
            }
            "type" => {
                let is = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    "number" => value.is_number(),
                    "integer" => value.is_u64() || value.is_i64(),
                    other => panic!("type {other}"),
                };
                let fits = wanted.as_array().map_or_else(|| is(wanted), |all| all.iter().any(is));
                if !fits {
                    return fail(format!("not of type {wanted}"));
                }
            }
            "enum" => {
                if !wanted.as_array().unwrap().contains(value) {
                    return fail(format!("not one of {wanted}"));
                }
            }
            "anyOf" => {
                if !wanted.as_array().unwrap().iter().any(|one| check(root, one, value, path).is_ok()) {
                    return fail("none of the alternatives".into());
                }
            }
            "required" => {
                for name in wanted.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        return fail(format!("lacks {name}"));
                    }
                }
            }
            "properties" => {
                for (name, inner) in value.as_object().unwrap() {
                    if let Some(schema) = wanted.get(name) {
                        check(root, schema, inner, &format!("{path}/{name}"))?;
                    }
                }
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object().unwrap();
                if let Some(name) = value.as_object().unwrap().keys().find(|name| !known.contains_key(*name))
                {
                    return fail(format!("has {name}, which nobody knows"));
                }
            }
            "items" => {
                for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, item, &format!("{path}/{place}"))?;
                }
            }
            "minItems" | "maxItems" => {
                let (length, limit) = (value.as_array().unwrap().len() as u64, wanted.as_u64().unwrap());
                if (word == "minItems" && length < limit) || (word == "maxItems" && length > limit) {
                    return fail(format!("{word} {limit}"));
                }
            }
            "minimum" => {
                if value.as_f64().unwrap() < wanted.as_f64().unwrap() {
                    return fail(format!("below {wanted}"));
                }
            }
            other => panic!("the schema uses {other}, which this test does not check"),
        }
    }
    Ok(())
}

fn assert_valid(value: &Value) {
    let schema = schema();
    check(&schema, &schema, value, "").unwrap();
}

#[test]
fn every_kind_of_run_fits_the_schema() {
    assert_valid(&json(&hackbench()));
    assert_valid(&json(&global_lock(&["a", "b:nice=1", "c"])));
    let mut broken = hackbench();
    broken.state = State::Interrupted("SIGINT".into());
    broken.unasked = [
        ("microcode", About::Fact),
        ("CONFIG_KASAN", About::DebugOption),
        ("CONFIG_FUTEX", About::KernelOption(OptionGroup::Locks)),
    ]
    .map(|(fact, about)| Difference { fact: fact.into(), values: vec![Some("0x1".into()), None], about })
    .into();
    broken.features = vec![feature("slice=on", 0, "no grant")];
    broken.missing = vec![("hang: it passed its deadline".into(), 3)];
    broken.tables[0].rows[0].cells[1] = absent("patched", "signal: SIGSEGV");
    broken.tables[0].tick = Some(1e-6);
    assert_valid(&json(&broken));
    let mut booted = hackbench();
    booted.header.experiment.set.insert("append".into(), "quiet".into());
    let ready = table(&booted, 0, &time().secondary(), &["every"], |_, _, block| f64::from(block));
    booted.boots = Some(analysis::Boots { count: 26, failed: 2, ready });
    assert_valid(&json(&booted));
    let counted = json(&in_virtual_time());
    assert_valid(&counted);
    let cell = &counted["cells"][1];
    assert_eq!((&cell["exact"], &cell["interval"], &cell["p"]), (&true.into(), &Value::Null, &Value::Null));
    let mut empty = run(&[], &[]);
    empty.aa = Err(Missing::because("no block has ended"));
    assert_valid(&json(&empty));
    for name in ["slice-extension.txt", "futex-wake.txt", "proxy-execution.txt", "rwsem-handoff.txt"] {
        let imported = analysis_of(&import(&reference(name), name).unwrap());
        assert_valid(&json(&imported));
        let options = Options { format: Format::Json, beside: Some(&imported), ..Options::default() };
        let both: Value = serde_json::from_str(&render(&hackbench(), &options).unwrap()).unwrap();
        assert_valid(&both);
        assert_eq!(both["beside"]["imported"]["source"], name);
    }
}

#[test]
fn the_schema_is_strict() {
    let schema = schema();
    let good = json(&hackbench());
    for (path, bad) in [
        ("/cells/0/value", Value::from("0.069")),
        ("/cells/0/verdict", Value::from("maybe")),
        ("/cells/1/interval", serde_json::json!([1.0])),
        ("/seed", Value::from(-1)),
        ("/state", Value::Null),
    ] {
        let mut wrong = good.clone();
        *wrong.pointer_mut(path).unwrap() = bad;
        assert!(check(&schema, &schema, &wrong, "").is_err(), "{path}");
    }
    let mut wrong = good.clone();
    wrong["cells"][0].as_object_mut().unwrap().remove("reason");
    assert!(check(&schema, &schema, &wrong, "").is_err());
    let mut wrong = good;
    wrong["extra"] = Value::Null;
    assert!(check(&schema, &schema, &wrong, "").is_err());
}

#[test]
fn cells_hold_what_scripts_rely_on() {
    let json = json(&hackbench());
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    let cell = &cells[1];
    assert_eq!(
        (&cell["workload"], &cell["point"], &cell["metric"]),
        (&"hackbench".into(), &"1".into(), &"time".into())
    );
    assert_eq!(
        (&cell["variant"], &cell["statistic"], &cell["verdict"]),
        (&"patched".into(), &"amean".into(), &"worse".into())
    );
    assert!((cell["ratio"].as_f64().unwrap() - 1.032).abs() < 1e-4);
    assert_eq!(cell["values"].as_array().unwrap().len(), 8);
    assert_eq!(cells[0]["values"][0], serde_json::json!({"block": 1, "value": 0.069}));
    assert!(cell["interval"][0].as_f64().unwrap() < cell["interval"][1].as_f64().unwrap());
    // The baseline's improvement keeps the sign of its formula.
    assert!(cells[0]["improvement_pct"].as_f64().unwrap().is_sign_negative());
    assert_eq!(cells[0]["aa"]["fired"], false);
}

#[test]
fn s11_what_is_no_number_is_null_with_a_reason() {
    let mut analysis = hackbench();
    analysis.tables = vec![table(&analysis, 0, &time(), &["1"], |_, v, _| if v == 0 { 0.0 } else { 0.069 })];
    analysis.tables[0].rows[0].cells[1].value = Ok(f64::NAN);
    analysis.tables[0].rows[0].cells[1].stddev = Ok(f64::INFINITY);
    analysis.tables[0].rows[0].cells[1].values[0].value = f64::NAN;
    let json = json(&analysis);
    assert_valid(&json);
    let cell = &json["cells"][1];
    for field in ["value", "stddev", "ratio", "change_pct", "interval"] {
        assert!(cell[field].is_null(), "{field}: {cell}");
        let reason = cell[format!("{field}_missing")].as_str();
        assert!(reason.is_some_and(|reason| !reason.is_empty()), "{field}: {cell}");
    }
    assert!(cell["values"][0]["value"].is_null());
}

#[test]
fn the_documentation_names_every_field_of_the_schema_and_no_other() {
    let schema = schema();
    let mut fields = BTreeSet::new();
    for part in ["report", "cell"] {
        fields.extend(schema["$defs"][part]["properties"].as_object().unwrap().keys().cloned());
    }
    let page = docs("json.md");
    // The first column of its tables.
    let named: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split_once(" |"))
        .flat_map(|(names, _)| {
            names.split(", ").map(|name| name.trim_matches(['`', ' ']).to_string()).collect::<Vec<_>>()
        })
        .collect();
    let missing_forms: BTreeSet<String> =
        fields.iter().filter(|field| field.ends_with("_missing")).cloned().collect();
    let wanted: BTreeSet<String> = fields.difference(&missing_forms).cloned().collect();
    assert_eq!(named, wanted);
}
