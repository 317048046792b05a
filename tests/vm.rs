//! Virtual machines, through the real binary: what runs in them, what they come to grief by, and that none is left.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support.rs"]
mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::{Kduel, in_one_line, strays, test_kernel};

const FEATURES: &str = "bzImage-7.3.4-features";

/// `kduel run` in a machine with this kernel.
fn run<'a>(kernel: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["run", "--target", "vm", "--set", kernel];
    words.extend(more);
    words
}

#[test]
fn p7_workloads_run_in_a_machine_that_holds_nothing_but_kduel() {
    let Some(path) = test_kernel(FEATURES) else { return };
    let kernel = format!("kernel={}", path.display());
    let kduel = Kduel::new();
    // One that sleeps and wakes, one over the loopback network, one that forks; and a knob in debugfs.
    let report = kduel.ok(&run(
        &kernel,
        &[
            "sched-pipe",
            "tbench",
            "spawn",
            "--set",
            "vm.cpus=2",
            "--set",
            "settle=0",
            "--set",
            "loops=500",
            "--set",
            "runtime=1",
            "--points",
            "1",
            "--blocks",
            "1",
            "--no-aa",
            "--set",
            "warmup=0",
            "-V",
            "slice:debugfs.sched/base_slice_ns=5000000,append=preempt=full",
        ],
    ));
    assert!(report.contains("emulated"), "{report}");
    let trials = kduel.trials();
    assert_eq!(trials.len(), 3);
    for trial in &trials {
        assert_eq!(trial["outcome"]["state"], "done", "{trial}");
    }
    let boots: Vec<_> = kduel.records().into_iter().filter(|record| record["kind"] == "boot").collect();
    assert_eq!(boots.len(), 2, "one to see what it is, one for the block");
    let facts = &boots[0]["facts"];
    assert!(facts["kernel_release"].as_str().unwrap().ends_with("-kresnj"), "{facts}");
    assert_eq!(facts["cpus_online"], "0-1");
    assert!(facts["debug_options"].is_array(), "the configuration of the kernel is known: {facts}");
    assert!(facts["command_line"].as_str().unwrap().ends_with("preempt=full"), "{facts}");
    assert_eq!(facts["preemption"], "full");
    for boot in &boots {
        assert!(boot["ready_s"].as_f64().unwrap() > 0.0, "{boot}");
        let remarks = boot["remarks"].to_string();
        assert!(!remarks.contains("this kernel has no") && !remarks.contains("not loaded"), "{remarks}");
    }
    assert_eq!(strays(kduel.home()), Vec::<u32>::new());
}

#[test]
fn boots_overlap_where_that_is_asked_for_and_the_report_says_so() {
    let Some(path) = test_kernel(FEATURES) else { return };
    let kernel = format!("kernel={}", path.display());
    let set = ["--set", "vm.cpus=1", "--set", "loops=20000", "--set", "settle=0", "--set", "warmup=0"];
    let words = ["sched-pipe", "--points", "1", "--blocks", "1", "--no-aa", "-V", "a", "-V", "b"];
    for overlap in [true, false] {
        let kduel = Kduel::new();
        let asked: &[&str] = if overlap { &["--set", "vm.overlap=on"] } else { &[] };
        let report = in_one_line(&kduel.ok(&run(&kernel, &[&set, words.as_slice(), asked].concat())));
        assert_eq!(report.contains("boots overlap:"), overlap, "{report}");
        let trials = kduel.trials();
        assert!(
            trials.len() == 2 && trials.iter().all(|trial| trial["outcome"]["state"] == "done"),
            "{trials:?}"
        );
        let boots: Vec<_> = kduel.records().into_iter().filter(|record| record["kind"] == "boot").collect();
        let overlapped: Vec<bool> = boots.iter().map(|boot| boot["overlapped"] == true).collect();
        assert_eq!(overlapped, [false, false, overlap, overlap], "{boots:?}");
        assert_eq!(report.contains("b not timed, since boots overlapped"), overlap, "{report}");
        assert_eq!(strays(kduel.home()), Vec::<u32>::new());
    }
}

#[test]
fn programs_are_not_advised_where_none_can_be() {
    let Some(path) = test_kernel(FEATURES) else { return };
    let kduel = Kduel::new();
    let text = format!(
        "target = 'vm'\nset.kernel = '{}'\nworkload = [{{ name = 'futex-wake', via = 'perf' }}, \
         {{ name = 'exec', command = 'make' }}]\nvariant = [{{ name = 'a' }}]\n",
        path.display()
    );
    let file = kduel.file("programs.toml", &text);
    let error = in_one_line(&kduel.fails(&["run", "--experiment", file.to_str().unwrap()]));
    for program in ["perf", "make"] {
        let words = format!("{program} is not in the virtual machine");
        assert!(error.contains(&words) && error.contains("--target local"), "{words} in {error}");
    }
    assert!(!error.contains("install") && !error.contains("PATH"), "{error}");
}

#[test]
fn in_virtual_time_repeats_are_the_same_to_the_digit() {
    let Some(path) = test_kernel(FEATURES) else { return };
    let kernel = format!("kernel={}", path.display());
    let kduel = Kduel::new();
    let set = ["--set", "vm.clock=virtual", "--set", "loops=20", "--set", "settle=0"];
    // What shows that turns are lent is deterministic, too.
    let words = ["sched-pipe", "--points", "1", "--blocks", "2", "--no-aa", "-V", "base:proxy=on"];
    let report = kduel.ok(&run(&kernel, &[set.as_slice(), &words].concat()));
    assert!(report.contains("All repeats of 1 cell gave"), "{report}");
    assert!(report.contains("proxy=on ran in 2 of 2 trials; the last of them: lent: in "), "{report}");
    let trials = kduel.trials();
    let [one, other] = trials.as_slice() else { panic!("two trials: {trials:?}") };
    assert_eq!(one["outcome"]["state"], "done", "{one}");
    assert_eq!(one["outcome"]["samples"], other["outcome"]["samples"]);
    assert_eq!(one["usage"], other["usage"], "what the kernel counted is the same, too");
    let path = &kduel.json()["virtual_time"]["paths"][0];
    assert!(path["instructions"].as_f64().unwrap() > 1000.0, "{path}");
    assert_eq!(strays(kduel.home()), Vec::<u32>::new());
}

#[test]
fn in_virtual_time_boots_that_overlap_move_no_figure() {
    let Some(path) = test_kernel(FEATURES) else { return };
    let kernel = format!("kernel={}", path.display());
    let set = ["--set", "vm.clock=virtual", "--set", "loops=20", "--set", "settle=0", "--seed", "1"];
    let words = ["sched-pipe", "--points", "1", "--blocks", "1", "--no-aa", "-V", "a", "-V", "b:loops=30"];
    let samples = ["vm.overlap=on", "vm.overlap=off"].map(|overlap| {
        let kduel = Kduel::new();
        kduel.ok(&run(&kernel, &[set.as_slice(), &words, &["--set", overlap]].concat()));
        let samples: Vec<_> =
            kduel.trials().iter().map(|trial| trial["outcome"]["samples"].clone()).collect();
        assert!(samples.len() == 2 && samples.iter().all(serde_json::Value::is_object), "{samples:?}");
        samples
    });
    assert_eq!(samples[0], samples[1]);
}

#[test]
fn p5_each_way_to_fail_has_its_name_within_its_time() {
    let Some(path) = test_kernel(FEATURES) else { return };
    let kernel = format!("kernel={}", path.display());
    let sleeps = "append=rdinit=/lib64/ld-linux-x86-64.so.2 -- --argv0 kduel /init trial";
    for (knobs, words) in [
        (&["append=rdinit=/none"] as &[_], &["the kernel panicked: VFS", "Unable to mount root fs"] as &[_]),
        // A kernel that gives up and does not restart must not be waited for until the end.
        (&["append=rdinit=/none panic=0"], &["the kernel panicked"]),
        (&[sleeps, "vm.timeout=12"], &["never spoke", "12 s", "vm.timeout"]),
        (&["vm.memory=24"], &["too little memory", "vm.memory"]),
    ] {
        let kduel = Kduel::new();
        let mut more = vec!["sched-pipe", "--blocks", "1", "--no-aa", "-V", "a"];
        for knob in knobs {
            more.extend(["--set", knob]);
        }
        let began = Instant::now();
        let error = kduel.fails(&run(&kernel, &more));
        for word in words {
            assert!(error.contains(word), "{knobs:?}: {word} in {error}");
        }
        assert!(error.contains("the console"), "the end of the console is shown: {error}");
        assert!(began.elapsed() < Duration::from_secs(100), "{knobs:?}: {:?}", began.elapsed());
        assert_eq!(strays(kduel.home()), Vec::<u32>::new(), "{knobs:?}");
    }
}

#[test]
fn p5_what_is_no_kernel_and_a_missing_qemu_are_said() {
    let kduel = Kduel::new();
    let text = kduel.file("bzImage", "this is no kernel\n");
    let no_kernel = format!("kernel={}", text.display());
    let error = in_one_line(&kduel.fails(&run(&no_kernel, &["sched-pipe", "-V", "a"])));
    assert!(error.contains("is no kernel"), "{error}");
    assert!(error.contains("nothing was run"), "{error}");
    let Some(path) = test_kernel(FEATURES) else { return };
    let kernel = format!("kernel={}", path.display());
    let without_qemu = |variants: &[&str]| {
        let mut more = vec!["sched-pipe"];
        variants.iter().for_each(|variant| more.extend(["-V", variant]));
        let output = kduel.command(&run(&kernel, &more)).env("PATH", kduel.home()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        in_one_line(&support::stderr(&output))
    };
    let error = without_qemu(&["a"]);
    assert!(error.contains("qemu-system-x86_64 is not in PATH") && error.contains("apt install"), "{error}");
    // What is wrong with the other variants is said, all at once, before the first of them asks for QEMU.
    let no_kernel = format!("b:{no_kernel}");
    let error =
        without_qemu(&["a", &no_kernel, "c:kernel=/nowhere/bzImage", "d:vm.topology=1,1,1,vm.cpus=2"]);
    for words in
        ["- b: ", "is no kernel", "- c: there is no kernel /nowhere/bzImage", "- d: vm.topology=1,1,1"]
    {
        assert!(error.contains(words), "{words} in {error}");
    }
    assert!(!error.contains("- a: ") && !error.contains("qemu"), "{error}");
}

/// A run whose trials take long, once its machine is there.
fn started(kduel: &Kduel, kernel: &str) -> Child {
    let words = run(kernel, &["sched-pipe", "--set", "loops=1000000000", "-V", "a"]);
    let run = kduel.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("QEMU is there", || !machines(kduel).is_empty());
    run
}

/// The QEMUs under this home.
fn machines(kduel: &Kduel) -> Vec<u32> {
    let is_qemu = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"qemu-system-x86_64")
    };
    strays(kduel.home()).into_iter().filter(is_qemu).collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_machine_that_dies_under_a_trial_is_why_the_trial_is_missing() {
    let Some(path) = test_kernel(FEATURES) else { return };
    let kernel = format!("kernel={}", path.display());
    let kduel = Kduel::new();
    let words =
        ["sched-pipe", "--set", "loops=1000000000", "--points", "1", "--blocks", "1", "--no-aa", "-V", "a"];
    let mut run =
        kduel.command(&run(&kernel, &words)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the boot of the first block is up", || {
        let journal = fs::read_to_string(kduel.home().join("latest/journal.jsonl")).unwrap_or_default();
        journal.lines().filter(|line| line.contains("\"kind\":\"boot\"")).count() == 2
    });
    for qemu in machines(&kduel) {
        kill_process(Pid::from_raw(qemu as i32).unwrap(), Signal::KILL).unwrap();
    }
    assert_eq!(run.wait().unwrap().code(), Some(2), "its only trial is missing, so nothing was measured");
    let reasons = support::reasons(&kduel.trials());
    let [(failure, why)] = reasons.as_slice() else { panic!("one missing trial: {reasons:?}") };
    assert_eq!(failure, "agent");
    assert!(why.contains("ended without a word") && why.contains("SIGKILL"), "{why}");
}

#[test]
fn p2_no_machine_outlives_kduel() {
    let Some(path) = test_kernel(FEATURES) else { return };
    let kernel = format!("kernel={}", path.display());
    for signal in [Signal::INT, Signal::KILL] {
        let kduel = Kduel::new();
        let mut run = started(&kduel, &kernel);
        kill_process(Pid::from_raw(run.id() as i32).unwrap(), signal).unwrap();
        let status = run.wait().unwrap();
        if signal == Signal::INT {
            assert_eq!(status.code(), Some(130));
            assert_eq!(strays(kduel.home()), Vec::<u32>::new(), "after Ctrl-C nothing is left at once");
        }
        wait_until("QEMU has gone", || strays(kduel.home()).is_empty());
    }
}

#[test]
fn p1_a_run_that_is_interrupted_in_a_boot_goes_on_with_that_boot() {
    let Some(path) = test_kernel(FEATURES) else { return };
    let kduel = Kduel::new();
    // Named as it is called where the run is started; it is resumed elsewhere.
    let kernel = format!("kernel={FEATURES}");
    let set = ["--set", "vm.cpus=2", "--set", "loops=500", "--set", "settle=0"];
    let words = run(&kernel, &[&["sched-pipe", "--points", "1"], set.as_slice()].concat());
    let told = kduel.home().join("told");
    let mut interrupted = kduel
        .command(&[&words[..], &["--blocks", "1", "-V", "a"]].concat())
        .current_dir(path.parent().unwrap())
        .stdout(Stdio::null())
        .stderr(File::create(&told).unwrap())
        .spawn()
        .unwrap();
    wait_until("the first block boots", || {
        fs::read_to_string(&told).unwrap().contains("block 1/1  booting") && machines(&kduel).len() == 1
    });
    kill_process(Pid::from_child(&interrupted), Signal::INT).unwrap();
    assert_eq!(interrupted.wait().unwrap().code(), Some(130), "{}", fs::read_to_string(&told).unwrap());
    assert_eq!((kduel.trials().len(), strays(kduel.home())), (0, Vec::new()));

    let report = kduel.ok(&["resume"]);
    let trials = kduel.trials();
    let mut sides: Vec<bool> = trials.iter().map(|trial| trial["twin"] == true).collect();
    sides.sort();
    assert_eq!(sides, [false, true], "the baseline and its twin: {trials:?}");
    assert!(trials.iter().all(|trial| trial["outcome"]["state"] == "done"), "{trials:?}");
    for words in ["Boot to ready (not judged): a ", "4 boots came up", " on vm"] {
        assert!(report.contains(words), "no {words:?} in {report}");
    }
    let reproduced = experiment::unpack(&report).unwrap();
    let found = Path::new(&reproduced.set["kernel"]);
    assert!(
        found.is_absolute() && found.exists(),
        "the footer names the kernel for any directory: {found:?}"
    );
    let json = kduel.json();
    assert_eq!((&json["target"], &json["boots"]["count"]), (&"vm".into(), &4.into()));
    assert_eq!(json["boots"]["ready"][0]["n"], 1, "{}", json["boots"]);
    assert_eq!(json["variants"][0]["boot"]["vm"]["cpus"], "2");
}
