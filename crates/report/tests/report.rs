//! What a report says of a run of one's own.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::{About, Analysis, Difference, Feature, State, Verdict};
use common::{
    absent, assert_mailable, description, feature, flat, global_lock, golden, hackbench, run, table, time,
};
use experiment::{Direction, Metric, Missing};
use report::{Format, Options, ReportError, Style, render};

fn options(style: &str) -> Options<'static> {
    Options { style: Some(Style::parse(style).unwrap()), all_metrics: true, ..Options::default() }
}

fn text(analysis: &Analysis, style: &str) -> String {
    let text = render(analysis, &options(style)).unwrap();
    assert_mailable(&text);
    text
}

#[test]
fn every_style_comes_out_as_its_golden_file() {
    let lock = global_lock(&["plain", "slice:nice=1"]);
    for style in Style::all() {
        golden(&format!("own-{style}.txt"), &text(&lock, style.name()));
    }
    golden("own-hackbench.txt", &render(&hackbench(), &Options::default()).unwrap());
    golden(
        "own-hackbench.md",
        &render(&hackbench(), &Options { format: Format::Markdown, ..Options::default() }).unwrap(),
    );
}

#[test]
fn the_default_style_is_the_one_in_which_such_figures_are_posted() {
    assert_eq!(Style::of(&global_lock(&["a", "b"])).name(), "scaling");
    assert_eq!(Style::of(&hackbench()).name(), "normalized");
    let ms = Metric::new("time", "ms", Direction::Lower, "time in ms", "");
    let wake = description("futex-wake", ("threads", "Threads", ""), vec![ms.clone()]);
    let mut futex = run(&[("futex-wake", wake)], &["a", "b"]);
    futex.tables = vec![table(&futex, 0, &ms, &["1"], |_, _, _| 1.0)];
    assert_eq!(Style::of(&futex).name(), "boxed");
    // Two workloads share the one style that fits all.
    let mut both = global_lock(&["a", "b"]);
    both.header.experiment.workloads.push(experiment::Entry::of("hackbench"));
    assert_eq!(Style::of(&both).name(), "normalized");
}

#[test]
fn unknown_names_name_the_nearest() {
    let error = Style::parse("normalised").unwrap_err();
    assert!(matches!(error, ReportError::Style { .. }));
    assert!(error.to_string().contains("did you mean `normalized`?"), "{error}");
    let error = Format::parse("markdwn").unwrap_err();
    assert!(error.to_string().contains("did you mean `markdown`?"), "{error}");
    for format in Format::all() {
        assert_eq!(Format::parse(format.name()).unwrap(), format);
    }
}

#[test]
fn cells_carry_marks_unless_plain_and_stand_in_the_same_place() {
    let marked = text(&hackbench(), "normalized");
    let plain = render(&hackbench(), &Options { plain: true, ..options("normalized") }).unwrap();
    let row =
        |text: &str| text.lines().find(|line| line.starts_with(" 1-groups     1.00")).unwrap().to_string();
    assert_eq!(row(&marked), " 1-groups     1.00 [ -0.00]( 0.12)     1.03 [ -3.20]( 0.12) -");
    assert_eq!(row(&plain), " 1-groups     1.00 [ -0.00]( 0.12)     1.03 [ -3.20]( 0.12)");
    assert!(marked.contains("Marks in the tables: + better, - worse, = same (within 2 %)"));
    assert!(!plain.contains("Marks in the tables"));
}

#[test]
fn intervals_follow_the_cells_when_asked_for() {
    let with = render(&hackbench(), &Options { intervals: true, ..options("normalized") }).unwrap();
    assert!(with.contains("1.03 [ -3.20]( 0.12) - 1.022..1.042"), "{with}");
    assert_mailable(&with);
}

#[test]
fn metrics_that_are_not_judged_are_named_and_shown_when_asked_for() {
    let lock = global_lock(&["a", "b"]);
    let judged = render(&lock, &Options { all_metrics: false, ..options("normalized") }).unwrap();
    assert!(!judged.contains("per second") && judged.contains("Further metrics of global-lock"), "{judged}");
    let all = text(&lock, "normalized");
    assert!(all.contains("per second") && !all.contains("Further metrics"), "{all}");
}

#[test]
fn metrics_that_are_rows_share_a_block_and_are_read_back_as_its_rows() {
    let kernel = |name: &str, label: &str| {
        Metric::new(name, "MB/s", Direction::Higher, "Bandwidth, MB/s", "").as_row(label)
    };
    let metrics = vec![kernel("copy", "Copy"), kernel("scale", "Scale"), kernel("triad", "Triad")];
    let stream = description("stream", ("threads", "Test", ""), metrics.clone());
    let mut analysis = run(&[("stream-10", stream)], &["base", "patched"]);
    let of = |points: &[&str]| -> Vec<analysis::Table> {
        let bandwidth = |place: usize| {
            move |_, variant: usize, block: u32| {
                (place as f64 + 1.0) * 8000.0 + f64::from(block) + 100.0 * variant as f64
            }
        };
        metrics
            .iter()
            .enumerate()
            .map(|(i, metric)| table(&analysis, 0, metric, points, bandwidth(i)))
            .collect()
    };
    let (one, two) = (of(&["16"]), of(&["1", "16"]));

    analysis.tables = one;
    let page = text(&analysis, "normalized");
    assert_eq!(page.matches("Test          : stream-10").count(), 1, "{page}");
    let labels = |page: &str| -> Vec<String> {
        let cells = page.lines().filter(|line| line.contains("1.00 ["));
        cells.map(|line| line.split(" 1.00").next().unwrap().trim().to_string()).collect()
    };
    assert_eq!(labels(&page), ["Copy", "Scale", "Triad"]);
    assert!(page.contains("Copy                     8004                     8104"), "{page}");
    assert!(page.contains("stream-10 was measured at the point 16.\n"), "{page}");
    let read = report::import(&page, "page").unwrap();
    let points: Vec<&str> = read.header.experiment.workloads[0].points.iter().map(|p| p.as_str()).collect();
    assert_eq!(points, ["Copy", "Scale", "Triad"]);

    analysis.tables = two;
    let page = text(&analysis, "normalized");
    assert!(!page.contains("at the point"), "the rows say it: {page}");
    assert_eq!(labels(&page), ["Copy 1", "Copy 16", "Scale 1", "Scale 16", "Triad 1", "Triad 16"]);
}

#[test]
fn absolute_values_stand_below_the_normalized_ones() {
    let text = text(&hackbench(), "normalized");
    assert!(text.contains("Absolute, s:                  base                  patched\n"), "{text}");
    assert!(text.contains(" 1-groups                  0.06900                  0.07121\n"), "{text}");
}

#[test]
fn every_judged_cell_has_its_verdict_in_words() {
    let text = text(&hackbench(), "normalized");
    assert!(text.contains("hackbench  1-groups  patched  worse    +3.2 %  [+2.2, +4.2]"), "{text}");
    assert!(text.contains("hackbench  2-groups  patched  same     +0.0 %"), "{text}");
    assert!(
        flat(&text).contains("Of 2 cells compared with base, patched is worse in 1, same in 1. The largest"),
        "{text}"
    );
    assert!(flat(&text).contains("hackbench 1-groups under patched: time +3.2 %, worse."), "{text}");
}

#[test]
fn colour_is_for_verdicts_and_only_when_asked_for() {
    let coloured = render(&hackbench(), &Options { colour: true, ..options("normalized") }).unwrap();
    assert!(coloured.contains("\x1b[31mworse\x1b[0m"), "{coloured}");
    let bare = coloured.replace("\x1b[31m", "").replace("\x1b[0m", "");
    assert_eq!(bare, text(&hackbench(), "normalized"));
}

#[test]
fn what_a_reader_must_know_stands_above_the_tables() {
    let mut analysis = hackbench();
    analysis.state = State::Interrupted("SIGINT".into());
    analysis.unasked = vec![Difference {
        fact: "microcode".into(),
        values: vec![Some("0x1".into()), None],
        about: About::Fact,
    }];
    analysis.features = vec![feature("slice=on", 5, "7 grants"), feature("proxy=on", 0, "no sign of it")];
    analysis.notices = vec!["the run was interrupted (SIGINT): 8 of 10 blocks are there".into()];
    analysis.missing = vec![("hang: it passed its deadline of 600 s".into(), 3)];
    let aa = analysis.aa.as_mut().unwrap();
    (aa.fired, aa.distrust) = (2, true);
    let text = text(&analysis, "normalized");
    let (above, _) = text.split_once("o Benchmark results").unwrap();
    for wanted in [
        "- microcode: base `0x1`, patched `not known`",
        "- patched, hackbench: slice=on ran in 5 of 8 trials; the last of them: 7 grants",
        "- patched, hackbench: proxy=on ran in none of 8 trials; the last one: no sign of it",
        "- the run was interrupted (SIGINT): 8 of 10 blocks are there",
        "- 3 of 48 trials yielded nothing: 3 x hang: it passed its deadline of 600 s.",
        "This machine cannot be trusted for this workload today",
        "- Test CPU 9000, 1 socket, 1 NUMA node, 24576 MiB of memory",
        "patched: 6.12.117, preemption voluntary, nice=5",
    ] {
        assert!(flat(above).contains(wanted), "{wanted}\n{above}");
    }
    assert!(flat(&text).contains("A/A FIRED (2 of 2)"), "{text}");
}

#[test]
fn workloads_that_saw_the_same_of_a_feature_stand_in_one_sentence() {
    let mut analysis = hackbench();
    let of =
        |workload: &str, ran, seen| Feature { workload: workload.into(), ..feature("proxy=on", ran, seen) };
    analysis.features = vec![
        of("hackbench", 8, "lent"),
        of("tbench", 8, "lent"),
        of("netperf", 5, "lent"),
        of("stream", 8, "7 of 8"),
    ];
    let text = text(&analysis, "normalized");
    let above = flat(text.split_once("o Benchmark results").unwrap().0);
    for wanted in [
        "- patched, hackbench, tbench: proxy=on ran in 16 of 16 trials; the last of them: lent",
        "- patched, netperf: proxy=on ran in 5 of 8 trials; the last of them: lent",
        "- patched, stream: proxy=on ran in 8 of 8 trials; the last of them: 7 of 8",
    ] {
        assert!(above.contains(wanted), "{wanted}\n{above}");
    }
}

#[test]
fn the_footer_names_the_run_and_the_packed_experiment_survives_it() {
    let mut analysis = hackbench();
    analysis.header.experiment.seed = Some(42);
    let packed = experiment::pack(&analysis.header.experiment);
    let text = render(&analysis, &Options { footer: Some(packed), ..options("normalized") }).unwrap();
    assert_mailable(&text);
    let wanted =
        "-- kduel 0.1.0 run 20261130-101500-7f3a seed 42, 8 blocks, A/A ok (0.3 %), margin 2 %, alpha 5 %";
    assert!(text.contains(wanted), "{text}");
    assert!(flat(&text).contains("family-wise over 2 cells"), "{text}");
    assert_eq!(experiment::unpack(&text).unwrap(), analysis.header.experiment);
}

#[test]
fn a_crossover_is_where_decided_differences_turn() {
    let lock = global_lock(&["plain", "slice:nice=1"]);
    assert!(
        flat(&text(&lock, "scaling"))
            .contains("Crossover of slice: between 4 and 8 threads (from worse to better).")
    );
    let mut open = lock.clone();
    open.tables[0].rows[2].cells[1].verdict = Verdict::Undecided;
    assert!(flat(&text(&open, "scaling")).contains(
        "Crossover of slice: between 2 and 8 threads (from worse to better; not decided in between: 4)."
    ));
    let mut none = lock.clone();
    none.tables[0].rows.truncate(3);
    none.tables[1].rows.truncate(3);
    assert!(
        flat(&text(&none, "scaling"))
            .contains("Crossover of slice: none; the sign does not turn (worse at 3 of 3 points).")
    );
    let mut undecided = lock;
    undecided.tables[0].rows.iter_mut().for_each(|row| row.cells[1].verdict = Verdict::Undecided);
    assert!(
        flat(&text(&undecided, "scaling"))
            .contains("Crossover of slice: none; no difference is decided at any point.")
    );
}

#[test]
fn a_style_that_does_not_fit_says_which_do() {
    let error = render(&hackbench(), &options("scaling")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this run does not fit the style scaling: none of its workloads yields both a time and a rate; styles that \
         fit: normalized, boxed, enumerated"
    );
}

#[test]
fn missing_cells_have_their_reason_in_a_numbered_note() {
    let mut analysis = hackbench();
    analysis.tables[0].rows[0].cells[1] = absent("patched", "signal: it was killed by SIGSEGV");
    for style in ["normalized", "boxed"] {
        let text = text(&analysis, style);
        assert!(text.contains("n/a (1)") || text.contains("n/a [   n/a](  n/a) (1)"), "{text}");
        assert!(text.contains("(1) n/a: signal: it was killed by SIGSEGV"), "{text}");
    }
    assert!(text(&analysis, "enumerated").contains("- n/a: signal: it was killed by SIGSEGV"));
}

#[test]
fn p11_cells_that_are_missing_for_one_reason_are_told_in_one_sentence() {
    let points: Vec<String> = (1..=26).map(|point| point.to_string()).collect();
    let points: Vec<&str> = points.iter().map(String::as_str).collect();
    let mut analysis = run(
        &[("hackbench", description("hackbench", ("groups", "Case", "-groups"), vec![time()]))],
        &["base", "new"],
    );
    analysis.tables = vec![table(&analysis, 0, &time(), &points, |_, _, _| 1.0)];
    let rows = &mut analysis.tables[0].rows;
    for row in rows.iter_mut().skip(2) {
        row.cells[1] = absent("new", "no trial has ended");
    }
    rows[1].cells[1] = absent("new", "signal: it was killed by SIGSEGV");
    let verdicts = |analysis: &Analysis| {
        let text = flat(&text(analysis, "normalized"));
        text[text.find("o Verdicts").unwrap()..].to_string()
    };
    let told = verdicts(&analysis);
    assert_eq!(told.matches("no trial has ended").count(), 1, "{told}");
    assert!(
        told.contains("- 24 cells missing: no trial has ended (hackbench at 3-groups, 4-groups, "),
        "{told}"
    );
    assert!(told.contains("26-groups under new)"), "{told}");
    assert!(
        told.contains("hackbench 1-groups new") && told.contains("hackbench 2-groups new missing"),
        "{told}"
    );
    for row in &mut analysis.tables[0].rows {
        row.cells[1] = absent("new", "no trial has ended");
    }
    let told = verdicts(&analysis);
    assert!(
        told.contains("- 26 cells missing: no trial has ended (hackbench at every point under new)"),
        "{told}"
    );
}

#[test]
fn a_metric_that_is_not_judged_may_be_absent_without_a_verdict() {
    let mut analysis = global_lock(&["a", "b"]);
    let secondary = analysis.tables.iter_mut().find(|table| !table.metric.primary).unwrap();
    secondary.rows[0].cells[1] = absent("b", "a single client has no spread");
    let text = text(&analysis, "normalized");
    assert!(text.contains("a single client has no spread"), "{text}");
    assert!(!flat(&text).contains("missing in 1"), "{text}");
    assert!(!text.contains(" missing "), "{text}");
}

#[test]
fn a_baseline_that_is_missing_is_not_counted_as_compared_with_itself() {
    let mut analysis = hackbench();
    for cell in &mut analysis.tables[0].rows[0].cells {
        *cell = absent(&cell.variant, "no trial has ended");
    }
    let text = flat(&text(&analysis, "normalized"));
    assert!(text.contains("Of 2 cells compared with base, "), "{text}");
    assert!(!text.contains("base is missing"), "{text}");
}

#[test]
fn intervals_of_unlike_confidence_each_say_their_own() {
    let mut analysis = hackbench();
    assert!(text(&analysis, "normalized").contains("95 % interval"));
    if let Ok(effect) = &mut analysis.tables[0].rows[0].cells[1].effect {
        effect.confidence = 0.875;
    }
    let text = text(&analysis, "normalized");
    assert!(!text.contains("% interval"), "{text}");
    assert!(text.contains("] 87.5 %") && text.contains("] 95 %"), "{text}");
}

#[test]
fn what_was_set_for_all_variants_stands_in_the_report() {
    let mut analysis = hackbench();
    assert!(!text(&analysis, "normalized").contains("Set for all variants"));
    analysis.header.experiment.set.insert("loops".into(), "200".into());
    analysis.header.experiment.workloads[0].set.insert("mode".into(), "thread".into());
    let text = text(&analysis, "normalized");
    assert!(text.contains("Set for all variants: loops=200; hackbench mode=thread."), "{text}");
}

#[test]
fn aa_that_was_run_but_tells_nothing_is_not_said_to_be_absent() {
    let mut analysis = hackbench();
    analysis.aa = Err(experiment::Missing::because("too few blocks"));
    assert!(text(&analysis, "normalized").contains("A/A not known,"));
    analysis.header.experiment.aa = false;
    assert!(text(&analysis, "normalized").contains("no A/A,"));
}

#[test]
fn s8_a_value_of_minus_one_is_a_value() {
    let mut analysis = hackbench();
    analysis.tables[0].rows[0].cells[1].value = Ok(-1.0);
    assert!(text(&analysis, "boxed").contains("| -1.0000 "), "{}", text(&analysis, "boxed"));
    assert!(text(&analysis, "normalized").contains(" -1.00000\n"), "{}", text(&analysis, "normalized"));
}

#[test]
fn s10_a_run_that_measures_zero_is_below_resolution() {
    let mut analysis = hackbench();
    let zero = table(&analysis, 0, &time(), &["1", "2"], |_, v, _| if v == 0 { 0.0 } else { 0.069 });
    analysis.tables = vec![zero];
    for style in ["normalized", "boxed", "enumerated"] {
        let text = text(&analysis, style);
        assert!(
            flat(&text).contains("below resolution: base measured 0 s at 1-groups, so there is no ratio"),
            "{text}"
        );
        assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
    }
}

#[test]
fn s12_equal_samples_make_a_report_in_every_format() {
    let mut analysis = hackbench();
    analysis.tables = vec![table(&analysis, 0, &time(), &["1"], |_, _, _| 0.069)];
    for format in Format::all() {
        let out = render(&analysis, &Options { format, ..Options::default() }).unwrap();
        assert!(!out.contains("NaN") && !out.contains("inf "), "{format}: {out}");
    }
}

#[test]
fn s19_marks_are_those_of_the_verdicts_and_no_others() {
    // 21 rows of the same data: the analysis says "same", however the last digits differ.
    let mut analysis = hackbench();
    let points: Vec<String> = (1..=21).map(|n| n.to_string()).collect();
    let points: Vec<&str> = points.iter().map(String::as_str).collect();
    let table = table(&analysis, 0, &time(), &points, |row, v, _| 0.069 + 1e-5 * ((row + v) % 3) as f64);
    analysis.tables = vec![table];
    let text = text(&analysis, "normalized");
    let starred = text.lines().filter(|line| line.ends_with(") -") || line.ends_with(") +")).count();
    assert_eq!(starred, 0, "{text}");
    assert_eq!(text.lines().filter(|line| line.ends_with(") =")).count(), 21, "{text}");
}

#[test]
fn s20_percentages_are_of_the_baseline_and_positive_is_good() {
    let mut analysis = hackbench();
    let values = |_: usize, v: usize, _: u32| [1.66990, 1.27731][v];
    analysis.tables = vec![table(&analysis, 0, &time(), &["1"], values)];
    assert!(text(&analysis, "normalized").contains("0.76 [ 23.51]("), "{}", text(&analysis, "normalized"));
    assert!(text(&analysis, "boxed").contains("-23.51%"), "{}", text(&analysis, "boxed"));
    let rate = Metric::new("rate", "1/s", Direction::Higher, "rate", "");
    analysis.tables = vec![table(&analysis, 0, &rate, &["1"], values)];
    assert!(text(&analysis, "normalized").contains("0.76 [-23.51]("), "{}", text(&analysis, "normalized"));
    assert!(text(&analysis, "boxed").contains("-23.51%"), "{}", text(&analysis, "boxed"));
}

#[test]
fn p11_a_failed_trial_is_missing_and_never_zero() {
    let mut analysis = hackbench();
    analysis.tables[0].rows[0].cells[1] = absent("patched", "exit: it left with status 3");
    for format in [Format::Text, Format::Markdown, Format::Csv] {
        let out = render(&analysis, &Options { format, ..Options::default() }).unwrap();
        assert!(out.contains("it left with status 3"), "{out}");
        assert!(!out.contains("0.00 [") && !out.contains(",0,0,"), "{out}");
    }
}

#[test]
fn ten_variants_are_wrapped_each_time_with_the_baseline() {
    let names: Vec<String> = (0..10).map(|n| format!("variant{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lock = global_lock(&names);
    let normalized = text(&lock, "normalized");
    let heads: Vec<&str> = normalized.lines().filter(|line| line.starts_with("Threads:")).collect();
    // Nine others at two beside the baseline, for two metrics.
    assert_eq!(heads.len(), 5 * 2, "{normalized}");
    assert!(heads.iter().all(|head| head.contains("variant0[pct imp](CV)")), "{normalized}");
    for name in &names {
        assert!(normalized.contains(&format!("{name}[pct imp](CV)")), "{name}");
    }
    let boxed = text(&lock, "boxed");
    assert!(boxed.lines().filter(|line| line.starts_with("| threads | variant0 ")).count() > 2, "{boxed}");
}

#[test]
fn long_running_benchmarks_share_one_block_of_percentages() {
    let diff = Metric::new("throughput", "ops/s", Direction::Higher, "%diff in throughput reported", "")
        .titled("Various longer running benchmarks");
    let one =
        |name: &str| (description(name, ("size", "Benchmarks", ""), vec![diff.clone()]), name.to_string());
    let all: Vec<_> = ["ycsb-cassandra", "ycsb-mongodb", "hammerdb+mysql 16VU"].map(one).into();
    let entries: Vec<(&str, experiment::Description)> =
        all.iter().map(|(d, name)| (name.as_str(), d.clone())).collect();
    let named = |variants: &[&str]| {
        let mut analysis = run(&entries, variants);
        analysis.tables = (0..3)
            .map(|w| {
                table(&analysis, w, &diff, &["1"], |_, v, b| 100.0 + (v * w) as f64 + 0.01 * f64::from(b % 3))
            })
            .collect();
        text(&analysis, "normalized")
    };
    let two = named(&["base", "patched"]);
    assert_eq!(two.matches("Units         : %diff in throughput reported").count(), 1, "{two}");
    for row in [
        "Benchmarks:                %diff\n",
        "ycsb-cassandra             0.00% =\n",
        "ycsb-mongodb               1.00% =\n",
        "hammerdb+mysql 16VU        2.00% +\n",
    ] {
        assert!(two.contains(row), "{row}{two}");
    }
    // What is printed of many variants is read back whole.
    let names: Vec<String> = (0..9).map(|n| format!("variant-of-some-name-{n}")).collect();
    let many = named(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let import = report::import(&many, "x").unwrap_or_else(|error| panic!("{error}\n{many}"));
    assert_eq!(import.records.len(), 3 * 8, "{many}");
}

#[test]
fn one_variant_stands_for_itself() {
    let lock = global_lock(&["only"]);
    for style in Style::all() {
        let text = text(&lock, style.name());
        assert!(flat(&text).contains("Nothing is compared here"), "{text}");
    }
    assert!(!text(&lock, "normalized").contains("o Verdicts"));
}

#[test]
fn runs_without_figures_make_a_report_in_every_style_and_format() {
    let mut empty = run(&[], &[]);
    empty.aa = Err(Missing::because("no block has ended"));
    let mut missing = global_lock(&["a", "b"]);
    for row in missing.tables.iter_mut().flat_map(|table| &mut table.rows) {
        row.cells = vec![absent("a", "agent: it died"), absent("b", "agent: it died")];
        row.aa = Err(Missing::because("agent: it died"));
    }
    for style in Style::all() {
        for format in Format::all() {
            let options = Options { format, ..options(style.name()) };
            assert!(!render(&empty, &options).unwrap().is_empty(), "{style} {format}");
            let out = render(&missing, &options).unwrap();
            assert!(!out.contains("NaN"), "{style} {format}: {out}");
            if format == Format::Text {
                assert_mailable(&out);
                assert!(out.contains("agent: it died"), "{style}: {out}");
            }
        }
    }
}

#[test]
fn odd_names_break_nothing() {
    let odd =
        ["a|b,\"c\" <script>alert(1)</script>", "\u{1b}[31m\u{1f980} caf\u{e9}", "x".repeat(300).leak(), ""];
    let odd: Vec<&str> = odd.to_vec();
    let mut lock = global_lock(&odd);
    for table in &mut lock.tables {
        table.workload = "lock | *bold* [link](http://x) `code`".into();
        table.rows[0].point = experiment::Point::new("p\n\u{7}|\u{1f980}".repeat(50));
    }
    lock.header.experiment.title = Some("</title><img src=x onerror=alert(1)>".into());
    for style in Style::all() {
        for width in [0, 60, 100] {
            let text = render(&lock, &Options { width, ..options(style.name()) }).unwrap();
            assert_mailable(&text);
            assert!(text.lines().all(|line| line.len() <= width.max(60)), "{style} {width}:\n{text}");
        }
        let html = render(&lock, &Options { format: Format::Html, ..options(style.name()) }).unwrap();
        for tag in ["<script", "<img", "\u{1b}", "\u{7}"] {
            assert!(!html.contains(tag), "{style}: {tag:?}");
        }
    }
}
