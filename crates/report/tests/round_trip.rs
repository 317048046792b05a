//! What kduel prints it reads again, and no text makes a reader panic.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::Analysis;
use common::{absent, analysis_of, global_lock, hackbench, reference};
use experiment::{Record, Summary};
use proptest::prelude::*;
use report::{Format, Import, ImportError, Options, Style, import, render};

fn figures(import: &Import) -> Vec<Summary> {
    let mut figures: Vec<Summary> = import
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Summary(summary) => Some(summary.clone()),
            _ => None,
        })
        .collect();
    figures.sort_by(|a, b| {
        (&a.workload, &a.metric, &a.point, &a.variant).cmp(&(&b.workload, &b.metric, &b.point, &b.variant))
    });
    figures
}

fn text(analysis: &Analysis, style: &str) -> String {
    let style = Some(Style::parse(style).unwrap());
    render(analysis, &Options { style, all_metrics: true, ..Options::default() }).unwrap()
}

/// The lines of a report that hold its results.
fn results(text: &str) -> Vec<&str> {
    let begin = text.find("o Benchmark results").unwrap();
    let rest = &text[begin..];
    let end = ["\no Verdicts", "\n-- "].iter().filter_map(|mark| rest.find(mark)).min().unwrap_or(rest.len());
    rest[..end].lines().map(str::trim_end).collect()
}

#[test]
fn imported_reports_come_back_as_they_were() {
    for name in ["slice-extension.txt", "futex-wake.txt", "proxy-execution.txt", "rwsem-handoff.txt"] {
        let first = import(&reference(name), name).unwrap();
        let printed = render(&analysis_of(&first), &Options::default()).unwrap();
        let second = import(&printed, name).unwrap_or_else(|error| panic!("{name}: {error}\n{printed}"));
        assert_eq!(figures(&second), figures(&first), "{name}\n{printed}");
        let (a, b) = (second.header.imported.as_ref().unwrap(), first.header.imported.as_ref().unwrap());
        assert_eq!(a.notes, b.notes, "{name}");
        assert_eq!(a.style, b.style, "{name}");
        let again = render(&analysis_of(&second), &Options::default()).unwrap();
        // The overhead of the futex table was printed from unrounded values; ours is of what is printed.
        assert_eq!(results(&again), results(&printed), "{name}");
    }
}

#[test]
fn own_reports_come_back_with_the_figures_that_they_printed() {
    let names: Vec<String> =
        (0..7).map(|n| format!("a-variant-with-a-name-of-{n}{}", "x".repeat(n * 2))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut broken = hackbench();
    broken.tables[0].rows[1].cells[1] = absent(
        "patched",
        "signal: killed by SIGSEGV, in words that go over the line \
         since the trial, as trials will, had much to say about why it died when and where it did",
    );
    let duel = global_lock(&["plain", "slice:nice=1"]);
    for analysis in [hackbench(), broken, duel, global_lock(&names), global_lock(&["alone"])] {
        let mut fitting = 0;
        for style in Style::all().map(Style::name) {
            let options = Options {
                style: Some(Style::parse(style).unwrap()),
                all_metrics: true,
                ..Options::default()
            };
            // A style that does not fit has nothing to read back.
            let Ok(printed) = render(&analysis, &options) else { continue };
            fitting += 1;
            let import =
                import(&printed, "x.txt").unwrap_or_else(|error| panic!("{style}: {error}\n{printed}"));
            let imported = import.header.imported.as_ref().unwrap();
            assert_eq!(imported.style, style);
            let again = text(&analysis_of(&import), style);
            let second =
                report::import(&again, "x.txt").unwrap_or_else(|error| panic!("{style}: {error}\n{again}"));
            assert_eq!(figures(&second), figures(&import), "{style}\n{printed}\n{again}");
            let variants = |header: &experiment::Header| -> Vec<String> {
                header.experiment.variants.iter().map(|variant| variant.name.clone()).collect()
            };
            assert_eq!(variants(&import.header), variants(&analysis.header), "{style}\n{printed}");
            for check in &imported.checks {
                assert!(!check.contains("DIFFER"), "{style}: {check}\n{printed}");
            }
            // Every figure that was there came back, at the precision at which it was printed.
            for table in &analysis.tables {
                for (row, cell) in
                    table.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)))
                {
                    let Ok(value) = cell.value.as_ref().map(|value| *value) else { continue };
                    let found = figures(&import).into_iter().find(|figure| {
                        figure.workload == table.workload
                            && figure.point == row.point
                            && figure.variant == cell.variant
                            && (figure.metric == table.metric.name
                                || figure.metric == table.metric.units_line)
                    });
                    let found = found
                        .and_then(|figure| figure.value)
                        .unwrap_or_else(|| panic!("{style}: {} {}\n{printed}", row.point, cell.variant));
                    assert!(
                        (found - value).abs() <= value.abs() * 1e-3 + 5e-5,
                        "{style}: {found} for {value}"
                    );
                }
            }
        }
        assert!(fitting >= 3, "{fitting} styles fit");
    }
}

#[test]
fn every_format_of_a_report_can_be_offered_to_the_readers() {
    for format in Format::all() {
        let out = render(&global_lock(&["a", "b"]), &Options { format, ..Options::default() }).unwrap();
        let _ = import(&out, "x");
    }
}

#[test]
fn a_broken_line_is_named_with_what_was_expected() {
    let at = |name: &str, from: &str, to: &str| {
        let text = reference(name);
        assert!(text.contains(from), "{from}");
        import(&text.replacen(from, to, 1), name).unwrap_err().to_string()
    };
    let error = at("slice-extension.txt", ".086320", "fast");
    assert!(
        error.starts_with("slice-extension.txt:6: a time in seconds in the second column is expected"),
        "{error}"
    );
    let error = at("slice-extension.txt", "|     71%   |", "|     71   |");
    assert!(error.contains("a percentage in the fourth column"), "{error}");
    let error = at("futex-wake.txt", "| 0.3997 |", "|");
    assert!(error.starts_with("futex-wake.txt:6: a row of 6 cells between `|` is expected here"), "{error}");
    let error = at("futex-wake.txt", "0.3997", "nan");
    assert!(error.contains("figures such as `4.2410`"), "{error}");
    let error = at("proxy-execution.txt", "1.03 [ -3.20]( 8.80)", "1.03 -3.20 8.80");
    assert!(error.starts_with("proxy-execution.txt:19: a label and 2 cells such as"), "{error}");
    let error = at("proxy-execution.txt", "Lower is better", "Smaller is better");
    assert!(error.contains("`Lower is better` or `Higher is better`"), "{error}");
    let error = at("proxy-execution.txt", "2-groups", "1-groups");
    assert!(error.contains("another row than `1-groups`, which stands there already"), "{error}");
    let error = at("rwsem-handoff.txt", "- 7,567,568", "about the same");
    assert!(error.contains("the value of the variant above, such as `- 8,092,486`"), "{error}");
}

#[test]
fn a_text_without_a_table_says_how_tables_begin() {
    for text in ["", "\n\n", "Dear list,\n\nmy kernel is faster.\n", "| a | b |\n| 1 | 2 |\n"] {
        let error = import(text, "mail.txt").unwrap_err();
        assert!(matches!(error, ImportError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains("`Case: NAME[pct imp](CV) ...` (normalized)"), "{error}");
    }
    // A head without rows is a table without figures.
    let error = import("| Threads | Threaded (s) | Threaded/s |\n", "x").unwrap_err();
    assert!(error.to_string().contains("at least one row of figures"), "{error}");
}

#[test]
fn readers_take_long_files_in_their_stride() {
    let mut text = String::from("| threads | a time (ms) [stddev] | b time (ms) [stddev] |\n");
    (1..=50_000).for_each(|n| text += &format!("| {n} | 1.0000 [0.1000] | 1.1000 [0.1000] |\n"));
    assert_eq!(import(&text, "x").unwrap().records.len(), 100_000);
    let mut text = String::from(
        "Test : x\nUnits : Normalized y\nInterpretation: Lower is better\nCase: a[pct imp](CV) b[pct imp](CV)\n",
    );
    (1..=50_000).for_each(|n| text += &format!("{n} 1.00 [ -0.00]( 1.00) 1.10 [-10.00]( 1.00)\n"));
    assert_eq!(import(&text, "x").unwrap().records.len(), 100_000);
    let prose = "1) a\nb c d\n".repeat(50_000);
    let _ = import(&prose, "x");
    let _ = import(&format!("1) a\n    - 5\n{prose}"), "x");
}

/// Pieces of tables, put together in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("Test : hackbench".to_string()),
        Just("Units : Normalized time in seconds".into()),
        Just("Interpretation: Lower is better".into()),
        Just("Statistic : HMean".into()),
        Just("==================".into()),
        Just("Case: a[pct imp](CV) b[pct imp](CV)".into()),
        Just("Benchmarks: %diff".into()),
        Just("1-groups 1.00 [ -0.00](13.74) 1.03 [ -3.20]( 8.80)".into()),
        Just("Absolute, s: a b".into()),
        Just("1-groups 0.5 0.6".into()),
        Just("x 0.82%".into()),
        Just("  | Threads |    Threaded (s) |   Threaded/s | %diff (s) |".into()),
        Just("  |       1 |         .036438 | 274437690.71 |     40%   |".into()),
        Just("| threads | a time (ms) | stddev | b time (ms) | stddev | overhead |".into()),
        Just("| 1 | 4.2 | 0.9 | 12.3 | 5.1 | +191.58% |".into()),
        Just("| threads | a time (ms) [stddev] | b time (ms) [stddev] |".into()),
        Just("|   | 2.8 [0.5] | n/a |".into()),
        Just("1) a".into()),
        Just("    - 8,092".into()),
        Just("o a: time (s) by x, lower is better, AMean".into()),
        Just("o Machine details".into()),
        Just("~1 = a".into()),
        Just("".into()),
        "[ -~]{0,40}",
        "[|+(\\[\\])%:.,0-9a-z \u{1f980}-]{0,60}",
    ];
    prop::collection::vec((piece, any::<prop::sample::Index>(), any::<bool>()), 0..30).prop_map(|pieces| {
        let cut = |(text, at, whole): (String, prop::sample::Index, bool)| {
            let letters: Vec<char> = text.chars().collect();
            match whole || letters.is_empty() {
                true => text,
                false => letters[..at.index(letters.len())].iter().collect(),
            }
        };
        pieces.into_iter().map(cut).collect::<Vec<String>>().join("\n")
    })
}

/// A reference with some of its lines dropped, doubled, cut, changed in a character, or replaced by another.
fn damaged() -> impl Strategy<Value = String> {
    let names = ["slice-extension.txt", "futex-wake.txt", "proxy-execution.txt", "rwsem-handoff.txt"];
    let changes =
        prop::collection::vec((any::<prop::sample::Index>(), 0..5u8, any::<char>(), any::<u8>()), 0..6);
    (prop::sample::select(names.to_vec()), changes).prop_map(|(name, changes)| {
        let mut lines: Vec<String> = reference(name).lines().map(String::from).collect();
        for (index, kind, letter, at) in changes {
            let place = index.index(lines.len());
            let line = lines[place].clone();
            let letters: Vec<char> = line.chars().collect();
            let at = usize::from(at) % (letters.len() + 1);
            match kind {
                0 => drop(lines.remove(place)),
                1 => lines.insert(place, line),
                2 => lines[place] = letters[..at].iter().collect(),
                3 => lines[place] = letters[..at].iter().chain([&letter]).chain(&letters[at..]).collect(),
                _ => lines[place] = lines[usize::from(letter as u8) % lines.len()].clone(),
            }
            if lines.is_empty() {
                break;
            }
        }
        lines.join("\n")
    })
}

/// Every report that can be made of what was read, if anything was.
fn report_in_every_way(text: &str, source: &str) -> Result<bool, TestCaseError> {
    let Ok(read) = import(text, source) else { return Ok(false) };
    prop_assert!(!read.records.is_empty());
    let analysis = analysis_of(&read);
    for style in Style::all() {
        for format in Format::all() {
            let out = render(&analysis, &Options { style: Some(style), format, ..Options::default() });
            prop_assert!(!out.is_ok_and(|out| out.contains("NaN")));
        }
    }
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC{0,400}") {
        let _ = import(&text, "x");
    }

    #[test]
    fn no_mix_of_tables_makes_a_reader_or_a_report_panic(text in pieces(), source in "\\PC{0,20}") {
        report_in_every_way(&text, &source)?;
    }

    #[test]
    fn no_damage_to_a_table_makes_a_reader_or_a_report_panic(text in damaged()) {
        report_in_every_way(&text, "x")?;
    }
}
