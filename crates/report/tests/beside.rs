//! Figures of somebody else beside one's own.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{analysis_of, assert_mailable, flat, hackbench, reference};
use report::{Format, Options, import, render};

fn beside(own: &analysis::Analysis, name: &str, format: Format) -> String {
    let other = analysis_of(&import(&reference(name), name).unwrap());
    render(own, &Options { format, beside: Some(&other), ..Options::default() }).unwrap()
}

#[test]
fn what_both_have_stands_in_one_table() {
    let text = beside(&hackbench(), "proxy-execution.txt", Format::Text);
    assert_mailable(&text);
    let (_, section) = text.split_once("o Beside proxy-execution.txt").unwrap();
    assert!(flat(section).contains("come from another machine, other kernels and other builds"), "{section}");
    assert!(section.contains("Case      ours: patched  theirs: proxy_exec\n"), "{section}");
    assert!(section.contains("1-groups  -3.20 % worse             -3.20 %\n"), "{section}");
    assert!(section.contains("2-groups   -0.00 % same             -4.45 %\n"), "{section}");
}

#[test]
fn what_cannot_be_matched_is_named() {
    let text = flat(&beside(&hackbench(), "proxy-execution.txt", Format::Text));
    assert!(text.contains("hackbench time: only one source has the points 4, 8, 16"), "{text}");
    assert!(text.contains("tbench throughput: this run has no such figures"), "{text}");
    let text = flat(&beside(&hackbench(), "slice-extension.txt", Format::Text));
    assert!(text.contains("hackbench time: slice-extension.txt has no such figures"), "{text}");
}

#[test]
fn json_has_the_other_figures_whole() {
    let text = beside(&hackbench(), "proxy-execution.txt", Format::Json);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["beside"]["imported"]["source"], "proxy-execution.txt");
    assert_eq!(json["beside"]["cells"][1]["improvement_pct"], -3.2);
}
