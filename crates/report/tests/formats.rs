//! The forms of a report that are not text.

#![allow(clippy::unwrap_used)]

mod common;

use common::{global_lock, hackbench};
use report::{Format, Options, render};

#[test]
fn the_page_is_one_file_with_plots_for_everybody() {
    let html =
        render(&global_lock(&["plain", "slice"]), &Options { format: Format::Html, ..Options::default() })
            .unwrap();
    for outside in ["http", "src=", "@import", "url(", "<link", "<script"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("prefers-color-scheme: dark"));
    let pictures = html.matches("<svg ").count();
    // Values, changes and a panel per point; and the A/A pairs.
    assert_eq!(pictures, 2 + 4 + 1, "{html}");
    assert_eq!(html.matches("<desc>").count(), pictures);
    assert_eq!(html.matches("<svg ").count(), html.matches("</svg>").count());
    for word in [
        "time of global-lock",
        "change of time of global-lock against plain",
        "A/A: the baseline against itself",
    ] {
        assert!(html.contains(word), "{word}");
    }
}

#[test]
fn markdown_shows_cells_as_they_are() {
    let out = render(&hackbench(), &Options { format: Format::Markdown, ..Options::default() }).unwrap();
    assert!(out.contains("| Case | base | patched |\n| --- | ---: | ---: |\n"), "{out}");
    assert!(
        out.contains(
            "| 1-groups | 1.00 \\[ -0.00\\]( 0.12) (0.06900 s) | 1.03 \\[ -3.20\\]( 0.12) - (0.07121 s) |"
        ),
        "{out}"
    );
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let tables: Vec<&str> = out.lines().filter(|line| line.starts_with('|')).collect();
    for pair in tables.windows(2).filter(|pair| pair[1].starts_with("| ---")) {
        assert_eq!(columns(pair[0]), columns(pair[1]), "{out}");
    }
}

#[test]
fn csv_is_quoted_as_rfc_4180_has_it() {
    let mut analysis = hackbench();
    analysis.tables[0].workload = "hack, \"bench\"\nnew line".into();
    let cells = render(&analysis, &Options { format: Format::Csv, ..Options::default() }).unwrap();
    assert!(
        cells.contains("\r\n\"hack, \"\"bench\"\"\nnew line\",groups,1,time,s,lower,amean,base,8,"),
        "{cells}"
    );
    assert_eq!(cells.matches("\r\n").count(), 1 + 4);
    let samples = render(&analysis, &Options { format: Format::CsvSamples, ..Options::default() }).unwrap();
    // A head, two points of two variants and the twin, eight blocks each.
    assert_eq!(samples.matches("\r\n").count(), 1 + 2 * 3 * 8);
    assert!(samples.starts_with("workload,axis,point,metric,unit,variant,twin,block,value\r\n"), "{samples}");
}

#[test]
fn benchstat_lines_have_the_form_of_go() {
    let analysis = hackbench();
    let out = render(&analysis, &Options { format: Format::Benchstat, ..Options::default() }).unwrap();
    assert!(out.contains("\nUnit sec/op better=lower\n"), "{out}");
    assert!(out.contains("\nvariant: base\nBenchmarkHackbench/groups=1-2 1 0.069 sec/op\n"), "{out}");
    let lines: Vec<Vec<&str>> = out
        .lines()
        .filter(|line| line.starts_with("Benchmark"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 2 * 2 * 8);
    for line in lines {
        assert_eq!(line.len(), 4, "{line:?}");
        assert!(line[1].parse::<u64>().is_ok() && line[2].parse::<f64>().is_ok(), "{line:?}");
    }
}
