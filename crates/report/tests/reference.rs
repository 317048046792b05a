//! The five reports of the mission: their figures survive import and rendering.

mod common;

use common::{analysis_of, reference};
use report::{Options, import, render};

#[test]
fn scaling_figures_come_out_as_they_went_in() {
    let source = reference("slice-extension.txt");
    let import = import(&source, "slice-extension.txt").unwrap();
    let text = render(&analysis_of(&import), &Options::default()).unwrap();
    let rows = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("  |") || line.starts_with("  +")).map(String::from).collect()
    };
    assert_eq!(rows(&text), rows(&source));
    assert!(text.contains("between 64 and 96 threads (from slower to faster)"), "{text}");
}
