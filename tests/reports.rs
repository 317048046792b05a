//! Published figures through `import` and `report`, and the formats of a run of one's own.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support.rs"]
mod support;

use std::path::PathBuf;
use support::{Kduel, SHORT, words};

fn reference(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference").join(name)
}

/// Imports a reference table and gives what its report prints.
fn imported(kduel: &Kduel, name: &str, view: &[&str]) -> Option<String> {
    let file = reference(name);
    if !file.exists() {
        println!("skipped: {} is not here", file.display());
        return None;
    }
    kduel.ok(&["import", file.to_str().unwrap()]);
    Some(kduel.ok(&[&["report"][..], view].concat()))
}

#[test]
fn the_slice_extension_table_is_derived_again_with_its_crossover() {
    let kduel = Kduel::new();
    let Some(text) = imported(&kduel, "slice-extension.txt", &[]) else { return };
    let published = std::fs::read_to_string(reference("slice-extension.txt")).unwrap();
    let rows = published.lines().filter(|line| line.trim_start().starts_with('|') && line.contains('.'));
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: Vec<String> = text.lines().map(squeezed).collect();
    let mut found = 0;
    for row in rows {
        assert!(printed.contains(&squeezed(row)), "missing: {row}\n{text}");
        found += 1;
    }
    assert_eq!(found, 26);
    assert!(text.contains("between 64 and 96 threads"), "{text}");
    assert!(text.contains("( Lower %diff is better )"), "{text}");
}

#[test]
fn the_futex_wake_tables_are_derived_again() {
    let kduel = Kduel::new();
    let Some(text) = imported(&kduel, "futex-wake.txt", &[]) else { return };
    // Two figures were computed by the author from unrounded values; the report says so.
    for figure in ["+191.58%", "+153.05%", "+151.04%", "+185.06%", "+212.15%", "3.8150 [1.3293]"] {
        assert!(text.contains(figure), "missing: {figure}\n{text}");
    }
    assert!(text.contains("printed 153.04") && text.contains("printed 151.03"), "{text}");
}

#[test]
fn the_proxy_execution_tables_survive_unchanged() {
    let kduel = Kduel::new();
    let Some(text) = imported(&kduel, "proxy-execution.txt", &["--plain"]) else { return };
    let published = std::fs::read_to_string(reference("proxy-execution.txt")).unwrap();
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join("");
    let printed: Vec<String> = text.lines().map(squeezed).collect();
    let mut found = 0;
    for row in published.lines().filter(|line| line.contains("1.00 [") || line.trim_end().ends_with('%')) {
        assert!(printed.contains(&squeezed(row)), "missing: {row}\n{text}");
        found += 1;
    }
    assert_eq!(found, 82);
    // The layout is that of reports.md, not the squeezed one.
    assert!(text.contains("1.00 [ -0.00](13.74)     1.03 [ -3.20]( 8.80)"), "{text}");
}

#[test]
fn every_format_prints_the_same_run() {
    let kduel = Kduel::new();
    kduel.ok(&words(SHORT, &["--blocks", "6"]));
    let markdown = kduel.ok(&["report", "--format", "markdown"]);
    assert!(markdown.lines().any(|line| line.starts_with('|') && line.contains("mcs")), "{markdown}");
    let html = kduel.ok(&["report", "--format", "html"]);
    // The names of XML's vocabularies look like addresses and are none.
    let addresses = html.replace("http://www.w3.org/", "");
    assert!(
        html.contains("<svg") && !addresses.contains("http://") && !addresses.contains("https://"),
        "{addresses}"
    );
    let csv = kduel.ok(&["report", "--format", "csv"]);
    assert!(csv.lines().next().unwrap().contains("verdict"), "{csv}");
    let samples = kduel.ok(&["report", "--format", "csv-samples"]);
    assert!(samples.lines().count() > 36, "{samples}");
    let benchstat = kduel.ok(&["report", "--format", "benchstat"]);
    assert!(benchstat.lines().any(|line| line.starts_with("Benchmark")), "{benchstat}");
    for style in ["normalized", "scaling", "boxed", "enumerated"] {
        let text = kduel.ok(&["report", "--style", style]);
        assert!(text.contains("tas") && text.contains("mcs"), "{style}: {text}");
    }
}

#[test]
fn one_s_own_figures_stand_beside_published_ones() {
    let kduel = Kduel::new();
    let file = reference("slice-extension.txt");
    if !file.exists() {
        println!("skipped: {} is not here", file.display());
        return;
    }
    let name = kduel.ok(&["import", file.to_str().unwrap()]).trim().to_string();
    kduel.ok(&words(SHORT, &["--blocks", "2"]));
    let text = kduel.ok(&["report", "--beside", &name]);
    assert!(text.contains("slice-extension.txt"), "{text}");
    assert!(text.contains("-39.59 %"), "{text}");
}
