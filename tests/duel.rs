//! A duel from the command line to its verdicts.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support.rs"]
mod support;

use std::io::Read as _;
use std::process::Stdio;
use support::{Kduel, PLANTED, SHORT, stderr, words};

fn short(kduel: &Kduel, more: &[&str]) -> String {
    kduel.ok(&words(SHORT, more))
}

#[test]
fn a_duel_ends_in_a_table_a_verdict_per_cell_and_a_footer() {
    let kduel = Kduel::new();
    let output = kduel.output(&words(SHORT, &["--blocks", "6", "--seed", "42"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.is_ascii(), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    assert!(text.contains("A/A"), "{text}");
    assert!(text.contains("seed 42, 6 blocks"), "{text}");
    assert!(text.contains("kduel reproduce kd1:"), "{text}");
    let cells = kduel.json()["cells"].as_array().unwrap().clone();
    let judged: Vec<_> =
        cells.iter().filter(|cell| cell["metric"] == "time" && cell["variant"] == "mcs").collect();
    assert_eq!(judged.len(), 2);
    for cell in judged {
        let verdict = cell["verdict"].as_str().unwrap();
        assert!(["better", "worse", "same", "undecided"].contains(&verdict), "{cell}");
        assert!(!cell["reason"].as_str().unwrap().is_empty());
    }
    assert!(stderr(&output).contains("Next:"), "{}", stderr(&output));
}

#[test]
fn s23_blocks_are_exact_and_every_block_holds_every_side_once() {
    let kduel = Kduel::new();
    short(&kduel, &["--blocks", "3"]);
    let trials = kduel.trials();
    assert_eq!(trials.len(), 3 * 2 * 3, "blocks x points x (baseline, twin, variant)");
    for block in 1..=3 {
        for point in ["1", "2"] {
            let mut sides: Vec<String> = trials
                .iter()
                .filter(|trial| trial["block"] == block && trial["point"] == point)
                .map(|trial| format!("{}{}", trial["variant"].as_str().unwrap(), trial["twin"]))
                .collect();
            sides.sort();
            assert_eq!(sides, ["mcsfalse", "tasfalse", "tastrue"]);
        }
    }
}

#[test]
fn the_order_follows_from_the_seed() {
    let order = |seed: &str| {
        let kduel = Kduel::new();
        short(&kduel, &["--blocks", "8", "--seed", seed]);
        let trials = kduel.trials();
        trials.iter().map(|trial| format!("{}{}", trial["variant"], trial["twin"])).collect::<Vec<_>>()
    };
    let first = order("7");
    assert_eq!(first, order("7"));
    assert_ne!(first, order("8"));
}

#[test]
fn a_footer_reproduces_the_experiment() {
    let kduel = Kduel::new();
    let text = short(&kduel, &["--blocks", "2", "--seed", "5"]);
    let first = kduel.records()[0]["experiment"].clone();
    let footer = &text[text.find("kd1:").unwrap()..];
    kduel.ok(&["reproduce", footer]);
    assert_eq!(kduel.records()[0]["experiment"], first);
    kduel.ok(&["reproduce", "latest"]);
    assert_eq!(kduel.records()[0]["experiment"], first);
    assert!(kduel.ok(&["list", "runs"]).lines().count() >= 3);
}

#[test]
fn a_file_and_flags_ask_the_same() {
    let kduel = Kduel::new();
    short(&kduel, &["--blocks", "2", "--seed", "5", "--margin", "3"]);
    let from_flags = kduel.records()[0]["experiment"].clone();
    let file = kduel.file(
        "same.toml",
        r#"
blocks = 2
seed = 5
margin = 3
[set]
total = 2000
settle = 0
[[workload]]
name = "global-lock"
points = [1, 2]
[[variant]]
name = "tas"
lock = "tas"
[[variant]]
name = "mcs"
lock = "mcs"
"#,
    );
    kduel.ok(&["run", "--experiment", file.to_str().unwrap()]);
    assert_eq!(kduel.records()[0]["experiment"], from_flags);
    // And what a run keeps as its experiment.toml asks the same once more.
    let kept = kduel.home().join("latest/experiment.toml");
    kduel.ok(&["run", "--experiment", kept.to_str().unwrap()]);
    assert_eq!(kduel.records()[0]["experiment"], from_flags);
}

#[test]
fn unknown_words_name_the_nearest_and_bad_files_are_pointed_at() {
    let kduel = Kduel::new();
    assert!(kduel.fails(&["run", "hakbench"]).contains("`hackbench`"));
    assert!(kduel.fails(&["run", "global-lock", "--set", "totl=5"]).contains("`total`"));
    assert!(kduel.fails(&["run", "global-lock", "-V", "a:lok=tas"]).contains("`lock`"));
    assert!(kduel.fails(&["run", "global-lock", "-V", "a:lock=msc"]).contains("`mcs`"));
    assert!(kduel.fails(&["run", "global-lock", "-V", "a:sysctrl.kernel.x=1"]).contains("`sysctl`"));
    assert!(kduel.fails(&["run", "global-lock", "--target", "moon"]).contains("ssh:HOST"));
    assert!(kduel.fails(&["run", "global-lock", "-V", "a:kernel=bzImage"]).contains("--target vm"));
    assert!(kduel.fails(&["run", "global-lock", "--set", "vm.cpus=2"]).contains("--target vm"));
    let of_vm = ["run", "global-lock", "--target", "vm", "-V"];
    assert!(kduel.fails(&[&of_vm[..], &["a:vm.cpu=2"]].concat()).contains("`vm.cpus`"));
    assert!(kduel.fails(&[&of_vm[..], &["a:vm.cpus=two"]].concat()).contains("whole number"));
    assert!(kduel.fails(&["run", "global-lock", "--points", "0"]).contains("from 1"));
    assert!(kduel.fails(&["report", "--style", "boxd"]).contains("`boxed`"));
    assert!(kduel.fails(&["run", "global-lock", "--scale", "small"]).contains("[scale.small]"));
    let file =
        kduel.file("bad.toml", "blocks = 3\n\n[[workload]]\nname = \"global-lock\"\npoint = [1, {}]\n");
    let error = kduel.fails(&["run", "--experiment", file.to_str().unwrap()]);
    assert!(error.contains("bad.toml") && error.contains("line 5, column 9"), "{error}");
    assert!(!kduel.home().join("runs").exists(), "nothing was begun");
}

#[test]
fn a_knob_that_cannot_be_turned_stops_the_run_before_its_first_trial() {
    let kduel = Kduel::new();
    let error = kduel.fails(&[
        "run",
        "global-lock",
        "--set",
        "total=1000",
        "-V",
        "a",
        "-V",
        "b:sysctl.kernel.no_such_thing=1",
        "-V",
        "c:cpus=4000",
    ]);
    assert!(error.contains("no_such_thing") && error.contains("4000"), "{error}");
    assert_eq!(kduel.ok(&["list", "runs"]), "", "nothing is left of it");
}

#[test]
fn variants_that_measure_different_things_are_not_compared() {
    let kduel = Kduel::new();
    let error = kduel.fails(&["run", "netperf", "-V", "a:test=tcp_stream", "-V", "b:test=udp_rr"]);
    assert!(error.contains("netperf: a and b do not measure the same"), "{error}");
    assert!(error.contains("throughput in 10^6bits/s, the other throughput in Trans/s"), "{error}");
    let error =
        kduel.fails(&["run", "mixed", "-V", "a:measured=sched-pipe", "-V", "b:measured=wakeup-timer"]);
    assert!(error.contains("do not measure the same"), "{error}");
}

#[test]
fn s22_a_regression_fails_only_when_asked() {
    let kduel = Kduel::new();
    let planted = |fail_on: &[&str]| kduel.output(&words(PLANTED, fail_on)).status.code();
    assert_eq!(planted(&[]), Some(0));
    assert_eq!(planted(&["--fail-on", "regression"]), Some(1));
    let report = kduel.output(&["report", "--fail-on", "regression"]);
    assert_eq!(report.status.code(), Some(1));
    let cells = kduel.json()["cells"].as_array().unwrap().clone();
    assert!(cells.iter().any(|cell| cell["variant"] == "slow" && cell["verdict"] == "worse"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let kduel = Kduel::new();
    short(&kduel, &["--blocks", "2"]);
    for args in
        [&["report"][..], &["report", "--format", "json"], &["list", "workloads"], &["show", "hackbench"]]
    {
        let mut child =
            kduel.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kduel starts");
        drop(child.stdout.take());
        let mut complaints = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}: {complaints}");
        assert_eq!(complaints, "", "{args:?}");
    }
}

#[test]
fn a_closed_pipe_hides_no_regression() {
    let kduel = Kduel::new();
    kduel.ok(&words(PLANTED, &[]));
    let mut report = kduel
        .command(&["report", "--fail-on", "regression"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("kduel starts");
    drop(report.stdout.take());
    assert_eq!(report.wait().unwrap().code(), Some(1));
}

#[test]
fn a_run_that_is_kept_elsewhere_is_named_by_its_directory() {
    let kduel = Kduel::new();
    let elsewhere = kduel.home().join("elsewhere");
    let out = elsewhere.to_str().unwrap();
    let output = kduel.output(&words(SHORT, &["--blocks", "1", "--out", out]));
    assert!(stderr(&output).contains(&format!("kduel report {out} ")), "{}", stderr(&output));
    assert!(kduel.ok(&["report", out]).contains("mcs"));
}

#[test]
fn lists_begin_with_names_and_every_workload_can_be_shown() {
    let kduel = Kduel::new();
    let list = kduel.ok(&["list", "workloads"]);
    // A text that is too long for one line goes on in lines that begin with spaces.
    let names = list.lines().filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    for name in ["global-lock", "lock-busy", "hackbench", "futex-wake", "futex-hash", "exec"] {
        assert!(names.contains(&name), "{list}");
    }
    for name in names {
        let page = kduel.ok(&["show", name]);
        for parameter in ["semantics", "via", "warmup", "settle"] {
            assert!(page.contains(parameter), "{name} lacks {parameter}");
        }
    }
    assert!(kduel.ok(&["list", "locks"]).lines().any(|line| line.starts_with("mcs ")));
    assert!(kduel.ok(&["list", "styles"]).lines().any(|line| line.starts_with("normalized ")));
}

#[test]
fn what_explains_the_command_fits_a_terminal() {
    let kduel = Kduel::new();
    short(&kduel, &["--blocks", "1", "--set", "think=1", "--set", "count=claim"]);
    let help = kduel.ok(&["--help"]);
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"run") && commands.contains(&"help"), "{commands:?}");
    let mut all: Vec<Vec<&str>> = vec![vec!["--help"], vec!["show", "latest"]];
    for command in commands.into_iter().filter(|command| *command != "help") {
        all.extend([vec![command, "--help"], vec![command, "-h"]]);
    }
    let lists = kduel.ok(&["list", "--help"]);
    let lists = lists.lines().filter_map(|line| line.trim_start().strip_prefix("- ")?.split_once(':'));
    let lists: Vec<&str> = lists.map(|(what, _)| what).collect();
    assert!(lists.contains(&"workloads"), "{lists:?}");
    all.extend(lists.into_iter().map(|what| vec!["list", what]));
    for args in all {
        let text = kduel.ok(&args);
        assert!(!text.is_empty() && text.is_ascii(), "{args:?}: {text}");
        for line in text.lines() {
            assert!(line.len() <= 100, "{args:?}, {} columns: {line}", line.len());
        }
    }
}

#[test]
fn a_variant_that_does_not_touch_a_workload_is_not_exercised_there() {
    let kduel = Kduel::new();
    kduel.ok(&[
        "run",
        "global-lock",
        "exec",
        "--set",
        "total=1000",
        "--set",
        "command=true",
        "--set",
        "settle=0",
        "-V",
        "tas",
        "-V",
        "mcs:lock=mcs",
        "--blocks",
        "6",
        "--seed",
        "1",
    ]);
    let cells = kduel.json()["cells"].as_array().unwrap().clone();
    let of = |workload: &str| {
        let cell = cells.iter().find(|cell| {
            cell["workload"] == workload && cell["variant"] == "mcs" && cell["metric"] == "time"
        });
        cell.unwrap_or_else(|| panic!("no cell of {workload}"))["verdict"].clone()
    };
    assert_eq!(of("exec"), "not-exercised");
    assert_ne!(of("global-lock"), "not-exercised");
}
