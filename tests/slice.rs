//! The time slice extension and rseq, through the real binary: with a kernel that has the extension, and without.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support.rs"]
mod support;

use serde_json::Value;
use support::{Kduel, in_one_line, test_kernel, words};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/slice-extension.toml");

/// Both protocols, and the other workload that has them.
const BOTH: &str = "
target = \"vm\"
blocks = 1
aa = false
[set]
vm.cpus = 2
settle = 0
[[workload]]
name = \"global-lock\"
label = \"section\"
points = [6]
hold = 200
seconds = 1
[[workload]]
name = \"global-lock\"
label = \"try\"
points = [6]
hold = 200
seconds = 1
slice-protocol = \"try\"
[[workload]]
name = \"schbench\"
points = [4]
runtime = 2
sleep-us = 0
cache-footprint-kb = 16
[[variant]]
name = \"plain\"
[[variant]]
name = \"slice\"
slice = 50000
";

/// What issue 4 must show: grants above zero in the slice variant, zero in the plain one.
#[test]
fn l4_l5_a_kernel_with_the_extension_grants_where_it_is_asked_and_nowhere_else() {
    let Some(kernel) = test_kernel("bzImage-7.3.4-features") else { return };
    let kduel = Kduel::new();
    let (file, kernel) = (kduel.file("both.toml", BOTH), format!("kernel={}", kernel.display()));
    let report = in_one_line(&kduel.ok(&["run", "--experiment", file.to_str().unwrap(), "--set", &kernel]));
    let trials = kduel.trials();
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        let counter = |name: &str| trial["outcome"]["counters"][name].as_f64();
        let count = |name: &str| counter(name).unwrap_or_else(|| panic!("{name} in {trial}"));
        if trial["variant"] == "plain" {
            // The length of grants was turned back, and nobody asked for any.
            assert_eq!((count("slice grants, kernel"), counter("slice grants")), (0.0, None));
            continue;
        }
        assert!(count("slice grants, kernel") > 0.0, "{trial}");
        assert!(count("slice grants, kernel") >= count("slice grants"), "{trial}");
        assert!(count("slice yields, kernel") >= count("slice yields"), "{trial}");
        assert!(count("slice requests") >= count("slice grants") + count("slice lost"), "{trial}");
    }
    assert!(report.contains("emulated"), "{report}");
    let features = kduel.json()["features"].clone();
    let ran: Vec<String> = features
        .as_array()
        .unwrap()
        .iter()
        .map(|of| {
            let word = |key: &str| of[key].as_str().unwrap().to_string();
            let what = [word("variant"), word("workload"), word("feature")].join(" ");
            assert!(word("feature") != "slice=off" || word("seen") == "the kernel counted 0 grants", "{of}");
            format!("{what} {}/{}", of["ran"], of["trials"])
        })
        .collect();
    for wanted in [
        "plain section slice=off 1/1",
        "slice section slice=50000 1/1",
        "slice try slice=50000 1/1",
        "slice schbench slice=50000 1/1",
    ] {
        assert!(ran.iter().any(|one| one == wanted), "{wanted}\n{features}");
    }
}

/// What issue 4 must show: without the extension "not exercised", status 0 and no claim.
#[test]
fn l5_a_kernel_without_the_extension_measures_and_claims_nothing() {
    let Err(absent) = rseq_slice::Slice::enable() else {
        println!("skipped: this kernel has the extension");
        return;
    };
    let kduel = Kduel::new();
    let line = "run --target local --scale small --points 1,2 --blocks 6 --set seconds=0.01 --set settle=0 --format json";
    let report: Value = serde_json::from_str(&kduel.ok(&words(line, &["--experiment", EXAMPLE]))).unwrap();
    let judged: Vec<&Value> = report["cells"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|cell| cell["primary"] == true && cell["variant"] != "plain")
        .collect();
    assert_eq!(judged.len(), 4);
    for cell in judged {
        assert_eq!(cell["verdict"], "not-exercised", "{cell}");
        assert!(cell["reason"].as_str().unwrap().contains(&absent.to_string()), "{cell}");
    }
    let features = report["features"].as_array().unwrap();
    assert!(features.iter().all(|feature| feature["ran"] == 0) && features.len() == 2, "{features:?}");
    let text = in_one_line(&kduel.ok(&["report"]));
    assert!(text.contains("Crossover of slice: none; no difference is decided at any point."), "{text}");
}

#[test]
fn whether_libc_registered_rseq_is_seen_and_not_believed() {
    if rseq_slice::is_registered() != Ok(true) || rseq_slice::sizes().libc_bytes.is_none() {
        println!("skipped: this libc registers no rseq area here");
        return;
    }
    let kduel = Kduel::new();
    let line = "run global-lock --points 1 --set total=1000 --blocks 1 --no-aa -V on:rseq=on -V off:rseq=off";
    let report = in_one_line(&kduel.ok(&words(line, &[])));
    assert!(
        report
            .contains("on, global-lock: rseq=on ran in 1 of 1 trial; the last of them: libc has registered"),
        "{report}"
    );
    assert!(
        report.contains(
            "off, global-lock: rseq=off ran in 1 of 1 trial; the last of them: the threads have no rseq area"
        ),
        "{report}"
    );
}

#[test]
fn a_length_of_grants_that_cannot_be_is_refused_before_there_is_a_run() {
    let kduel = Kduel::new();
    for word in ["0", "1", "-1", "4_999", "50_001", "maybe", "5us", "1e4"] {
        let variant = format!("b:slice={word}");
        for workload in ["global-lock", "schbench"] {
            let run = format!("run {workload} --target vm --set kernel=/nowhere/bzImage -V a --points 1 -V");
            let error = kduel.fails(&words(&run, &[variant.as_str()]));
            let refused =
                format!("parameter `slice` cannot be `{word}`: it takes `off`, `on`, or a whole number");
            assert!(error.contains(&refused) && error.contains("from 5000 to 50000"), "{error}");
        }
    }
    assert!(!kduel.home().join("latest").exists());
    // These can be, and then it is the kernel that is not there.
    for word in ["on", "off", "5_000", "50000"] {
        let run = "run global-lock --target vm --set kernel=/nowhere/bzImage -V a --points 1 -V";
        let error = kduel.fails(&words(run, &[format!("b:slice={word}").as_str()]));
        assert!(error.contains("there is no kernel /nowhere/bzImage"), "{word}: {error}");
    }
    let error =
        kduel.fails(&words("run global-lock -V a:slice=on,slice-protocol=try,lock=std --points 1", &[]));
    assert!(error.contains("slice-protocol=section"), "{error}");
}

#[test]
fn a_file_for_a_virtual_machine_serves_another_target_by_one_flag() {
    let kduel = Kduel::new();
    let file = kduel.file(
        "vm.toml",
        "target = \"vm\"\n[set]\nvm.cpus = 4\n[[workload]]\nname = \"global-lock\"\ntotal = 1000\npoints = [1]\n",
    );
    let file = ["--experiment", file.to_str().unwrap()];
    kduel.ok(&words("run --target local --blocks 1 --no-aa -V a", &file));
    let error = kduel.fails(&words("run --target local --set vm.cpus=2 -V a", &file));
    assert!(error.contains("`vm.cpus`"), "{error}");
}
