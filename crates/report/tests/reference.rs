//! The five reports of the mission: their figures survive import and rendering, and their derived columns come out
//! as printed. The golden files are what kduel makes of them; `UPDATE_GOLDEN=1 cargo test` writes them anew.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{analysis_of, golden, reference};
use experiment::{Record, Summary};
use report::{Import, ImportError, Options, Style, import, render};

fn read(name: &str) -> Import {
    import(&reference(name), name).unwrap()
}

fn text(import: &Import, style: Option<&str>) -> String {
    let style = style.map(|name| Style::parse(name).unwrap());
    render(&analysis_of(import), &Options { style, ..Options::default() }).unwrap()
}

fn checks(import: &Import) -> &[String] {
    &import.header.imported.as_ref().unwrap().checks
}

fn figures(import: &Import) -> Vec<&Summary> {
    import
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Summary(summary) => Some(summary),
            _ => None,
        })
        .collect()
}

fn figure<'a>(import: &'a Import, workload: &str, point: &str, variant: &str, metric: &str) -> &'a Summary {
    let is_it = |s: &&Summary| {
        s.workload == workload && s.point.as_str() == point && s.variant == variant && s.metric == metric
    };
    figures(import).into_iter().find(is_it).unwrap_or_else(|| panic!("{workload} {point} {variant} {metric}"))
}

#[test]
fn every_reference_comes_out_as_its_golden_file() {
    for name in ["slice-extension.txt", "futex-wake.txt", "proxy-execution.txt", "rwsem-handoff.txt"] {
        golden(name, &text(&read(name), None));
    }
}

#[test]
fn scaling_tables_come_out_line_by_line() {
    let import = read("slice-extension.txt");
    let rows = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with("  |") || line.starts_with("  +"))
            .map(String::from)
            .collect()
    };
    let ours = text(&import, None);
    assert_eq!(rows(&ours), rows(&reference("slice-extension.txt")));
    assert!(ours.contains("\n  ( Lower %diff is better )\n"));
    assert_eq!(figures(&import).len(), 13 * 2 * 2);
    let last = figure(&import, "global-lock", "512", "rseq_slice_ext-1", "time");
    assert_eq!(last.value, Some(82.005069));
}

#[test]
fn scaling_says_where_the_sign_turns_and_that_nothing_was_tested() {
    let ours = text(&read("slice-extension.txt"), None);
    let sentence = "Crossover of rseq_slice_ext-1: between 64 and 96 threads (from slower to faster).";
    assert!(ours.contains(sentence), "{ours}");
    assert!(ours.replace('\n', " ").contains("By the printed signs; nothing was tested."), "{ours}");
}

#[test]
fn scaling_columns_are_recomputed() {
    let import = read("slice-extension.txt");
    assert!(
        checks(&import)[0].starts_with("%diff (s) of rseq_slice_ext-1: 13 of 13 recomputed as printed"),
        "{:?}",
        checks(&import)
    );
    assert!(
        checks(&import)[1].starts_with("rate x time: 26 of 26 rows come to 1.000e7"),
        "{:?}",
        checks(&import)
    );
    // A wrong percentage and a wrong rate are found.
    let wrong = reference("slice-extension.txt").replace("71%", "72%").replace(" 5366809.94", " 5966809.94");
    let wrong = import_text(&wrong);
    assert!(checks(&wrong)[0].contains("12 of 13"), "{:?}", checks(&wrong));
    assert!(checks(&wrong)[0].contains("(2 printed 72, recomputed 71)"), "{:?}", checks(&wrong));
    assert!(checks(&wrong)[1].contains("1 DIFFER"), "{:?}", checks(&wrong));
}

fn import_text(text: &str) -> Import {
    import(text, "slice-extension.txt").unwrap()
}

#[test]
fn boxed_tables_come_in_both_forms() {
    let import = read("futex-wake.txt");
    let labels: Vec<&str> = import.header.experiment.workloads.iter().map(|e| e.label.as_str()).collect();
    assert_eq!(labels, ["futex-wake", "futex-wake-2"]);
    assert_eq!(figures(&import).len(), 5 * 2 + 5 * 3);
    let cell = figure(&import, "futex-wake-2", "64", "atomicops", "time");
    assert_eq!((cell.value, cell.stddev), (Some(0.4020), Some(0.2447)));
    let ours = text(&import, None);
    // The first form comes out line by line, but for the two percentages that its author did not compute from it.
    let printed: Vec<String> =
        reference("futex-wake.txt").lines().skip(1).take(9).map(String::from).collect();
    for line in &printed {
        let line = line.replace("+153.04%", "+153.05%").replace("+151.03%", "+151.04%");
        assert!(ours.contains(&line), "{line}\n{ours}");
    }
    assert!(
        ours.contains(
            "|     512 | 2.8360 [0.5168]        | 4.4100 [1.1150]       | 3.8150 [1.3293]         |"
        )
    );
}

#[test]
fn overhead_is_recomputed_and_says_where_it_is_a_unit_off() {
    let import = read("futex-wake.txt");
    let check = &checks(&import)[0];
    assert!(check.starts_with("overhead of futex-wake: 3 of 5 recomputed as printed"), "{check}");
    assert!(check.contains("2 by one unit in the last digit"), "{check}");
    assert!(check.contains("at 256 printed 153.04, recomputed 153.05"), "{check}");
    assert!(check.contains("at 128 printed 151.03, recomputed 151.04"), "{check}");
    assert!(!check.contains("DIFFER"), "{check}");
}

#[test]
fn normalized_figures_survive_unchanged() {
    let source = reference("proxy-execution.txt");
    let ours = text(&read("proxy-execution.txt"), None);
    // Squeezed to one space, as in the source, every row is a line of ours, in the same order.
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows = |text: &str| -> Vec<String> {
        text.lines().map(squeezed).filter(|line| line.contains('[') || line.ends_with('%')).collect()
    };
    let theirs: Vec<String> = rows(&source);
    assert_eq!(theirs.len(), 74 + 9 + 8, "rows, heads and percentages");
    let spaced = |line: &String| line.replace("[ ", "[").replace("( ", "(");
    assert_eq!(
        rows(&ours).iter().map(spaced).collect::<Vec<_>>(),
        theirs.iter().map(spaced).collect::<Vec<_>>()
    );
    assert!(ours.contains("Units         : Normalized Througput\n"), "what was printed is kept");
    assert!(ours.contains("- NPS1 (Each socket is a NUMA node)\n"), "notes are kept");
}

#[test]
fn normalized_layout_is_that_of_the_mail() {
    let ours = text(&read("proxy-execution.txt"), None);
    for line in [
        "Case:           tip[pct imp](CV)      proxy_exec[pct imp](CV)",
        " 1-groups     1.00 [ -0.00](13.74)     1.03 [ -3.20]( 8.80)",
        "16-groups     1.00 [ -0.00]( 1.10)     1.00 [  0.42]( 1.23)",
        "     Copy     1.00 [  0.00]( 8.37)     0.98 [ -2.35]( 8.36)",
        "512-clients     1.00 [  0.00](54.39)     0.99 [ -0.61](52.23)",
        "       16     1.00 [ -0.00]( 3.49)     1.00 [ -0.00]( 8.93)",
        "hammerdb+mysql 64VU       -0.59%",
    ] {
        assert!(ours.lines().any(|ours| ours == line), "{line}\n{ours}");
    }
}

#[test]
fn normalized_ratios_follow_from_the_percentages() {
    let import = read("proxy-execution.txt");
    assert_eq!(
        checks(&import),
        [
            "value over the baseline's, from the percent improvement: 148 of 148 recomputed as printed, to the last \
          digit."
        ]
    );
    let wrong = reference("proxy-execution.txt").replace("1.03 [ -3.20]", "0.97 [ -3.20]");
    let wrong = report::import(&wrong, "x").unwrap();
    assert!(
        checks(&wrong)[0].contains("1-groups proxy_exec printed 0.97, recomputed 1.03"),
        "{:?}",
        checks(&wrong)
    );
}

#[test]
fn enumerated_values_and_shares_are_read_from_prose() {
    let import = read("rwsem-handoff.txt");
    let workload = &import.header.experiment.workloads[0];
    assert_eq!(workload.label, "AIM7 shared_memory");
    assert_eq!(workload.points[0].as_str(), "7000");
    let names: Vec<&str> = import.header.experiment.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["5.2-rc6", "5.2-rc6+tips-rwsem-patches", "5.2-rc6+tips-rwsem-patches+this-patch"]);
    assert_eq!(
        figure(&import, "AIM7 shared_memory", "7000", names[1], "throughput").value,
        Some(7_567_568.0)
    );
    assert_eq!(figure(&import, "AIM7 shared_memory", "7000", names[2], "cpu_share").value, Some(2.08));
    let metric = &import.header.descriptions[0].metrics[0];
    assert_eq!((metric.unit.as_str(), metric.direction), ("jobs/min", experiment::Direction::Higher));
    let ours = text(&import, None);
    assert!(ours.contains("3) 5.2-rc6 + tip's rwsem patches + this patch\n    - 7,954,545\n"), "{ours}");
    assert!(
        ours.replace('\n', " ").contains("for the 3 kernels were 1.70%, 5.46% and 2.08% respectively."),
        "{ours}"
    );
}

#[test]
fn a_profile_is_refused_by_name() {
    let error = import(&reference("rseq-exit.txt"), "rseq-exit.txt").unwrap_err();
    assert!(matches!(error, ImportError::Later { line: 1, .. }), "{error}");
    assert!(error.to_string().contains("`shares`"), "{error}");
}

#[test]
fn references_are_read_out_of_a_quoted_mail_too() {
    for name in ["slice-extension.txt", "futex-wake.txt", "proxy-execution.txt", "rwsem-handoff.txt"] {
        let quoted: String = reference(name).lines().map(|line| format!("> {line}\n")).collect();
        let mail = format!("On Monday somebody wrote:\n\n{quoted}\nThanks!\n");
        let plain = read(name);
        let import = import(&mail, name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(figures(&import), figures(&plain), "{name}");
    }
}

#[test]
fn imported_figures_change_their_style() {
    // Absolute figures are re-rendered in any style; relative ones in all that need no time and rate.
    let slice = read("slice-extension.txt");
    let normalized = text(&slice, Some("normalized"));
    assert!(normalized.contains("        1     1.00 [ -0.00](  n/a)"), "{normalized}");
    assert!(normalized.contains("1.40 [-39.59](  n/a)"), "{normalized}");
    assert!(
        text(&slice, Some("boxed")).contains("| n/a (1) |  +39.59% |"),
        "{}",
        text(&slice, Some("boxed"))
    );
    // Row labels with spaces come back out of sentences, too.
    let listed = text(&read("proxy-execution.txt"), Some("enumerated"));
    let again = report::import(&listed, "x").unwrap_or_else(|error| panic!("{error}\n{listed}"));
    let label = "Various longer running benchmarks";
    assert_eq!(figure(&again, label, "hammerdb+mysql 64VU", "proxy_exec", "throughput").value, None);
    let error = render(
        &analysis_of(&read("proxy-execution.txt")),
        &Options { style: Some(Style::parse("scaling").unwrap()), ..Options::default() },
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("styles that fit: normalized, boxed, enumerated"), "{error}");
}
