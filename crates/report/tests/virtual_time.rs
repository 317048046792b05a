//! What reports say of runs whose clock counts instructions.

#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_mailable, flat, hackbench, in_virtual_time};
use report::{Format, Options, Style, render};

fn text(analysis: &analysis::Analysis, intervals: bool) -> String {
    let options = Options { intervals, ..Options::default() };
    render(analysis, &options).unwrap()
}

#[test]
fn exact_differences_have_many_digits_and_neither_interval_nor_p() {
    let text = text(&in_virtual_time(), true);
    assert_mailable(&text);
    let text = flat(&text);
    for words in [
        "Change of the metric against base, raw sign, exact.",
        "workload point variant verdict change hackbench",
        "worse +3.2000 %",
        "the same to the digit.",
        "All repeats of 4 cells gave the same to the digit",
        "It is one of path length",
        "base 69,000,000 34,500,000 0.2 %",
        "patched 71,000,000 at most 35,500,000 12 %",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert!(
        !text.contains(" interval p ") && !text.contains("p corrected") && !text.contains(".."),
        "{text}"
    );
}

#[test]
fn repeats_that_differ_are_named() {
    let mut analysis = in_virtual_time();
    if let Some(found) = &mut analysis.virtual_time {
        found.differing = vec!["hackbench 1 under patched".into()];
    }
    let text = flat(&text(&analysis, false));
    assert!(
        text.contains("The repeats of 1 of 4 cells differ, and count as noise: hackbench 1 under patched.")
    );
}

#[test]
fn by_the_hosts_clock_nothing_is_said_of_it() {
    for style in Style::all() {
        let options = Options { style: Some(style), ..Options::default() };
        let Ok(text) = render(&hackbench(), &options) else { continue };
        assert!(!text.contains("Virtual time") && !text.contains("exact"), "{text}");
    }
    let csv = render(&in_virtual_time(), &Options { format: Format::Csv, ..Options::default() }).unwrap();
    assert!(csv.contains(",1.032,,,ratio,,,worse,"), "{csv}");
}
