//! What reports say of kernels that were booted.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::{Analysis, Boots};
use common::{absent, assert_mailable, hackbench, table};
use experiment::{Direction, Metric, TargetKind, Variant};
use report::{Format, Options, Style, render};
use serde_json::{Value, json};

fn booted() -> Analysis {
    let mut analysis = hackbench();
    let experiment = &mut analysis.header.experiment;
    experiment.target = TargetKind::Vm;
    experiment.set.insert("vm.cpus".into(), "2".into());
    experiment.variants[1] = Variant::parse("patched:kernel=bzImage,append=preempt=full quiet").unwrap();
    let ready = Metric::new("ready", "s", Direction::Lower, "", "").secondary();
    let mut ready =
        table(&analysis, 0, &ready, &["every"], |_, v, block| [4.0, 3.0][v] + f64::from(block) / 50.0);
    ready.workload = "boot".into();
    analysis.boots = Some(Boots { count: 26, failed: 2, ready });
    analysis
}

fn rendered(analysis: &Analysis, format: Format) -> String {
    render(analysis, &Options { format, ..Options::default() }).unwrap()
}

fn flat(text: &str) -> String {
    text.replace("\n--", "").split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[test]
fn a_report_says_how_long_boots_took_and_what_the_pair_of_the_baseline_is() {
    let text = rendered(&booted(), Format::Text);
    assert_mailable(&text);
    let text = flat(&text);
    for words in [
        "Boot to ready (not judged): base 4.09 s (CV 1.2 %); patched 3.09 s (CV 1.6 %), -24.4 %",
        "26 boots came up; 2 further ones failed and had to be tried again.",
        "A/A: two boots of the same kernel at 2 points",
        "patched: 6.12.117, preemption voluntary, kernel=bzImage, append=preempt=full quiet",
        "Set for all variants: vm.cpus=2.",
        "7f3a on vm seed 42",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    let mut one_failed = booted();
    let boots = one_failed.boots.as_mut().unwrap();
    (boots.count, boots.failed) = (1, 1);
    boots.ready.rows[0].cells[1] = absent("patched", "not booted in any block");
    let text = flat(&rendered(&one_failed, Format::Text));
    assert!(text.contains("patched not booted in any block. 1 boot came up; 1 further one failed"), "{text}");
}

#[test]
fn a_run_without_boots_says_nothing_of_them() {
    for style in Style::all() {
        let options = Options { style: Some(style), ..Options::default() };
        // A style that does not fit the run has nothing to say of boots either.
        let Ok(text) = render(&hackbench(), &options) else { continue };
        assert!(!text.contains("Boot") && !text.contains(" on vm"), "{text}");
    }
}

#[test]
fn data_carry_the_target_the_boots_and_what_was_asked_of_them() {
    let json: Value = serde_json::from_str(&rendered(&booted(), Format::Json)).unwrap();
    assert_eq!(json["target"], "vm");
    assert_eq!(json["variants"][0]["boot"], json!({ "kernel": null, "append": [], "vm": { "cpus": "2" } }));
    assert_eq!(
        json["variants"][1]["boot"],
        json!({ "kernel": "bzImage", "append": ["preempt=full", "quiet"], "vm": { "cpus": "2" } })
    );
    assert_eq!((&json["boots"]["count"], &json["boots"]["failed"]), (&json!(26), &json!(2)));
    let ready = json["boots"]["ready"].as_array().unwrap();
    assert_eq!((ready.len(), ready[1]["verdict"].as_str()), (2, Some("unjudged")));
    let local: Value = serde_json::from_str(&rendered(&hackbench(), Format::Json)).unwrap();
    assert_eq!((&local["target"], &local["boots"]), (&json!("local"), &Value::Null));
    assert_eq!(local["variants"][1]["boot"], Value::Null);

    let cells = rendered(&booted(), Format::Csv);
    let rows: Vec<&str> = cells.lines().filter(|line| line.starts_with("boot,")).collect();
    assert_eq!(rows.len(), 2, "{cells}");
    assert!(rows[1].contains(",every,ready,s,lower,amean,patched,8,"), "{cells}");
    let samples = rendered(&booted(), Format::CsvSamples);
    assert!(
        samples.lines().any(|line| line.starts_with("boot,") && line.contains(",base,no,1,4.02")),
        "{samples}"
    );
}
