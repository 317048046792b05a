//! Differences between machines and kernels: those that nobody asked for, and those that refuse a comparison.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::{About, Analysis, OptionGroup, Side, diff, refusal_in_words, refused};
use common::{Lab, done, trial};
use experiment::{Blocks, BootRecord, Facts, KernelConfig, Knob, Record, Refusal, Variant};
use std::collections::BTreeMap;
use std::path::PathBuf;

fn base() -> Facts {
    Facts {
        cpu_model: Some("A".into()),
        clocksource: Some("tsc".into()),
        command_line: Some("quiet".into()),
        memory_bytes: Some(1000 << 20),
        sysctls: BTreeMap::from([("kernel.x".to_string(), "0".to_string())]),
        ..Facts::default()
    }
}

fn read(lab: &mut Lab, variant: &str, change: impl Fn(&mut Facts)) {
    let mut facts = base();
    change(&mut facts);
    lab.run.records.push(Record::Facts { variant: variant.into(), facts: Box::new(facts) });
}

/// `base` against `new`, whose facts differ by `change`.
fn lab(variants: &[&str], change: impl Fn(&mut Facts)) -> Lab {
    let mut lab = Lab::new(1, variants, Blocks::Exactly(6));
    read(&mut lab, "base", |_| ());
    read(&mut lab, "new", change);
    lab
}

/// What nobody asked for, as `fact: base new`, with a dash for what is not known.
fn unasked(analysis: &Analysis) -> Vec<String> {
    let told = |values: &[Option<String>]| {
        let values: Vec<&str> = values.iter().map(|value| value.as_deref().unwrap_or("-")).collect();
        values.join(" ")
    };
    analysis
        .unasked
        .iter()
        .map(|difference| format!("{}: {}", difference.fact, told(&difference.values)))
        .collect()
}

fn told(analysis: &Analysis, words: &str) -> bool {
    analysis.notices.iter().any(|notice| notice.contains(words))
}

fn refusals(analysis: &Analysis) -> Vec<String> {
    analysis.refused.iter().map(|refused| refused.refusal.to_string()).collect()
}

/// Takes over a kernel's configuration, as an agent does.
fn with_config(facts: &mut Facts, text: &str) {
    facts.take_config(KernelConfig::parse(text), "/proc/config.gz");
}

#[test]
fn p13_differences_that_nobody_asked_for_are_listed() {
    let lab = lab(&["base", "new:sysctl.kernel.x=1"], |facts| {
        facts.clocksource = Some("hpet".into());
        facts.memory_bytes = Some(1015 << 20);
        facts.sysctls.insert("kernel.x".into(), "1".into());
        facts.sysctls.insert("kernel.y".into(), "2".into());
    });
    let analysis = lab.analyse();
    assert_eq!(analysis.facts.len(), 2);
    assert_eq!(
        unasked(&analysis),
        ["clocksource: tsc hpet", "sysctl kernel.y: - 2"],
        "kernel.x is what the duel is about, and 15 MiB are nothing"
    );
    assert!(analysis.refused.is_empty());
}

#[test]
fn what_says_nothing_new_is_left_out() {
    let set = |facts: &mut Facts, features: &str, preempt: &str| {
        facts.sched_debug.insert("features".into(), features.into());
        facts.sched_debug.insert("preempt".into(), preempt.into());
    };
    let mut lab = lab(&["base", "new"], |facts| {
        set(facts, "PLACE_LAG HRTICK NI_RATE", "lazy");
        facts.mitigations.insert("new-fault".into(), "Not affected".into());
        facts.mitigations.insert("other-fault".into(), "Mitigation: slow".into());
    });
    if let Record::Facts { facts, .. } = &mut lab.run.records[0] {
        set(facts, "PLACE_LAG NO_HRTICK", "voluntary");
    }
    assert_eq!(
        unasked(&lab.analyse()),
        ["mitigation other-fault: - Mitigation: slow", "sched features: NO_HRTICK HRTICK NI_RATE"]
    );
}

#[test]
fn p13_a_comparison_across_cpu_models_is_refused_unless_it_is_accepted() {
    let mut lab = lab(&["base", "new"], |facts| facts.cpu_model = Some("B".into()));
    let analysis = lab.analyse();
    assert_eq!(refusals(&analysis), ["cpu-model"]);
    let text = refusal_in_words(&analysis.refused);
    assert!(text.contains("CPU model is `A` under base, `B` under new"), "{text}");
    assert!(text.contains("--accept-difference cpu-model"), "{text}");
    lab.run.header.experiment.accept_differences = vec![Refusal::Preemption];
    assert_eq!(refusals(&lab.analyse()), ["cpu-model"], "another difference was accepted");
    lab.run.header.experiment.accept_differences = vec![Refusal::CpuModel];
    let analysis = lab.analyse();
    assert!(analysis.refused.is_empty());
    assert_eq!(unasked(&analysis), ["CPU model: A B"], "accepted, and still told");
}

#[test]
fn another_preemption_model_is_refused_unless_it_is_what_was_asked_for() {
    let lazy = |facts: &mut Facts| facts.preemption = Some("lazy".into());
    for (variant, refused) in [
        ("new", true),
        ("new:kernel=bzImage", true),
        ("new:append=nosmt", true),
        ("new:append=quiet preempt=lazy", false),
        ("new:debugfs.sched/preempt=lazy", false),
    ] {
        let mut lab = lab(&["base", variant], lazy);
        if let Record::Facts { facts, .. } = &mut lab.run.records[0] {
            facts.preemption = Some("voluntary".into());
        }
        let analysis = lab.analyse();
        assert_eq!(!analysis.refused.is_empty(), refused, "{variant}: {:?}", analysis.refused);
    }
    let mut lab = lab(&["base", "new"], lazy);
    let analysis = lab.analyse();
    assert_eq!(unasked(&analysis), ["preemption: - lazy"]);
    assert_eq!(refusals(&analysis), [""; 0], "a model that is not known may be the same");
    lab.run.records.remove(0);
    assert!(lab.analyse().refused.is_empty(), "nothing at all is known of the baseline");
}

/// Two builds of one kernel, one with lock debugging.
#[test]
fn a_debug_option_is_refused_and_named_with_what_it_does() {
    let plain = "CONFIG_HZ=250\nCONFIG_SMP=y\n";
    let debug = format!("{plain}CONFIG_DEBUG_MUTEXES=y\nCONFIG_PROVE_LOCKING=y\n");
    let mut lab = lab(&["base:kernel=a", "new:kernel=b"], |facts| with_config(facts, &debug));
    if let Record::Facts { facts, .. } = &mut lab.run.records[0] {
        with_config(facts, plain);
    }
    let analysis = lab.analyse();
    assert_eq!(refusals(&analysis), ["CONFIG_PROVE_LOCKING", "CONFIG_DEBUG_MUTEXES"]);
    let text = refusal_in_words(&analysis.refused);
    for wanted in [
        "CONFIG_PROVE_LOCKING is on in new and not in base: it checks the order of every lock",
        "CONFIG_DEBUG_MUTEXES is on in new and not in base",
        "--accept-difference CONFIG_PROVE_LOCKING,CONFIG_DEBUG_MUTEXES",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    let accept = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<Refusal>>();
    lab.run.header.experiment.accept_differences = accept(&["CONFIG_PROVE_LOCKING"]);
    assert_eq!(refusals(&lab.analyse()), ["CONFIG_DEBUG_MUTEXES"]);
    lab.run.header.experiment.accept_differences = accept(&["debug-options"]);
    let analysis = lab.analyse();
    assert_eq!(refusals(&analysis), [""; 0]);
    assert_eq!(unasked(&analysis), ["CONFIG_PROVE_LOCKING: n y", "CONFIG_DEBUG_MUTEXES: n y"], "each once");
}

#[test]
fn a_debug_option_that_a_boot_argument_woke_was_asked_for() {
    let config = "CONFIG_SLUB_DEBUG=y\n";
    for (variant, line, refused) in [
        ("new:append=slub_debug=FZ", "quiet slub_debug=FZ", false),
        ("new:append=nosmt", "quiet nosmt slub_debug=FZ", true),
    ] {
        let mut lab = lab(&["base", variant], |facts| {
            facts.command_line = Some(line.into());
            with_config(facts, config);
        });
        if let Record::Facts { facts, .. } = &mut lab.run.records[0] {
            with_config(facts, config);
        }
        let analysis = lab.analyse();
        assert_eq!(!analysis.refused.is_empty(), refused, "{variant}");
        assert_eq!(!unasked(&analysis).is_empty(), refused, "{variant}: {:?}", unasked(&analysis));
    }
}

#[test]
fn what_the_knobs_of_a_boot_ask_for_is_no_surprise() {
    let kernel = |facts: &mut Facts| {
        facts.kernel_release = Some("7".into());
        facts.kernel_version = Some("#1".into());
        facts.kernel_build_id = Some("aa".into());
        facts.command_line = Some("BOOT_IMAGE=/b quiet".into());
    };
    let grown = |facts: &mut Facts| {
        facts.cpus_online = Some("0-7".into());
        facts.cores = Some(8);
        facts.memory_bytes = Some(4096 << 20);
    };
    let emulated = |facts: &mut Facts| {
        facts.cpu_model = Some("QEMU TCG CPU".into());
        facts.hypervisor = Some("TCGTCGTCGTCG".into());
    };
    let words = |facts: &mut Facts| facts.command_line = Some("quiet sched_proxy_exec=0 nosmt".into());
    type Case<'a> = (&'a [&'a str], &'a dyn Fn(&mut Facts), usize);
    let cases: [Case<'_>; 8] = [
        (&["base:kernel=a", "new:kernel=b"], &kernel, 0),
        (&["base", "new"], &kernel, 4),
        (&["base:vm.cpus=2", "new:vm.cpus=8,vm.memory=4096"], &grown, 0),
        (&["base:vm.cpus=8", "new:vm.cpus=8"], &grown, 3),
        (&["base:vm.accel=kvm", "new:vm.accel=tcg"], &emulated, 0),
        (&["base", "new:proxy=off,append=nosmt"], &words, 0),
        (&["base", "new:proxy=off"], &words, 1),
        (
            &["base", "new:sysfs.kernel/mm/transparent_hugepage/defrag=never"],
            &|facts| {
                facts.memory_settings.insert("transparent_hugepage/defrag".into(), "never".into());
            },
            0,
        ),
    ];
    for (variants, change, left) in cases {
        let analysis = lab(variants, change).analyse();
        assert_eq!(analysis.unasked.len(), left, "{variants:?}: {:?}", unasked(&analysis));
    }
    let analysis = lab(&["base", "new:proxy=off"], words).analyse();
    assert_eq!(
        unasked(&analysis),
        ["command line: nothing more nosmt"],
        "only the word that nobody asked for"
    );
}

#[test]
fn two_names_of_one_kernel_are_no_two_kernels() {
    let came_up = |base: Option<&str>, new: Option<&str>, variants: &[&str]| {
        let mut lab = lab(variants, |facts| facts.kernel_build_id = new.map(str::to_string));
        if let Record::Facts { facts, .. } = &mut lab.run.records[0] {
            facts.kernel_build_id = base.map(str::to_string);
        }
        told(&lab.analyse(), "base and new ask for different kernels, and the same one came up")
    };
    let two = ["base:kernel=a", "new:kernel=b"];
    assert!(came_up(Some("aa"), Some("aa"), &two));
    assert!(came_up(Some("aa"), Some("aa"), &["base", "new:kernel=b"]));
    assert!(!came_up(Some("aa"), Some("bb"), &two));
    assert!(!came_up(None, None, &two), "what is not known may differ");
    assert!(!came_up(Some("aa"), Some("aa"), &["base:kernel=a", "new:kernel=a,append=nosmt"]));
}

#[test]
fn a_preemption_model_that_did_not_come_into_force_is_told() {
    for (variant, is_told) in [
        ("new:append=preempt=fulll", true),
        ("new:append=preempt=full preempt=lazy", false),
        ("new:append=preempt=full", true),
        ("new:append=nosmt", false),
    ] {
        let lab = lab(&["base", variant], |facts| facts.preemption = Some("lazy".into()));
        assert_eq!(told(&lab.analyse(), ", and its kernel has lazy"), is_told, "{variant}");
    }
}

#[test]
fn knobs_explain_the_facts_that_they_turn() {
    for (key, value, change) in [
        ("cpus", "0", (|facts| facts.cpus_allowed = Some("0".into())) as fn(&mut Facts)),
        ("debugfs.sched/base_slice_ns", "1", |facts| {
            facts.sched_debug.insert("base_slice_ns".into(), "1".into());
        }),
        ("sysfs.kernel/mm/transparent_hugepage/enabled", "never", |facts| {
            facts.transparent_hugepages = Some("never".into());
        }),
        ("sysfs.devices/system/cpu/cpufreq/policy0/scaling_max_freq", "1", |facts| {
            facts.frequency_limits_khz = Some("1-1".into());
        }),
        ("sysfs.devices/system/cpu/cpu1/online", "0", |facts| {
            facts.cpus_offline = Some("1".into());
        }),
    ] {
        let mut lab = lab(&["base", "new"], change);
        assert_eq!(lab.analyse().unasked.len(), 1, "{key} by itself");
        lab.run.header.experiment.variants[1].knobs = vec![Knob::parse(key, value).unwrap()];
        assert_eq!(lab.analyse().unasked, [], "{key} as asked");
        // Where all variants turn it alike, it explains nothing.
        lab.run.header.experiment.variants[0].knobs = vec![Knob::parse(key, value).unwrap()];
        assert_eq!(lab.analyse().unasked.len(), 1, "{key} for all");
    }
}

#[test]
fn kernel_options_are_compared_one_by_one_with_the_telling_ones_first() {
    let one = "CONFIG_HZ=250\nCONFIG_HID_APPLE=m\nCONFIG_SMP=y\nCONFIG_FUTEX_PRIVATE_HASH=y\n";
    let other = "CONFIG_HZ=1000\nCONFIG_SMP=y\nCONFIG_RUSTC_VERSION=108500\n";
    let mut lab = lab(&["base:kernel=a", "new:kernel=b"], |facts| with_config(facts, other));
    if let Record::Facts { facts, .. } = &mut lab.run.records[0] {
        with_config(facts, one);
    }
    let analysis = lab.analyse();
    assert_eq!(
        unasked(&analysis),
        [
            "CONFIG_HZ: 250 1000",
            "CONFIG_FUTEX_PRIVATE_HASH: y n",
            "CONFIG_HID_APPLE: m n",
            "CONFIG_RUSTC_VERSION: n 108500",
        ]
    );
    assert_eq!(analysis.unasked[0].about, About::KernelOption(OptionGroup::Preemption));
    assert!(analysis.refused.is_empty() && !told(&analysis, "kernel options"), "{:?}", analysis.notices);
}

#[test]
fn options_stand_in_the_journal_once_and_are_found_by_their_checksum() {
    let boot = |variant: &str, earlier: Option<&Facts>, text: &str| {
        let mut facts = base();
        with_config(&mut facts, text);
        if let Some(earlier) = earlier {
            facts.leave_out_config_of(earlier);
        }
        assert_eq!(facts.config.as_ref().unwrap().options.is_none(), earlier.is_some());
        Record::Boot(Box::new(BootRecord {
            block: 0,
            variant: variant.into(),
            twin: false,
            at_unix_ms: 0,
            ready_s: 1.0,
            overlapped: false,
            attempts: 1,
            remarks: Vec::new(),
            facts: Some(Box::new(facts)),
        }))
    };
    let mut earlier = base();
    with_config(&mut earlier, "CONFIG_HZ=250\n");
    let mut lab = Lab::new(1, &["base", "same", "other"], Blocks::Exactly(6));
    lab.run.records.push(boot("base", None, "CONFIG_HZ=250\n"));
    lab.run.records.push(boot("same", Some(&earlier), "CONFIG_HZ=250\n"));
    lab.run.records.push(boot("other", None, "CONFIG_HZ=1000\n"));
    let analysis = lab.analyse();
    assert_eq!(unasked(&analysis), ["CONFIG_HZ: 250 250 1000"]);
    assert_eq!(analysis.facts[1].1.kernel_config().unwrap().get("CONFIG_HZ"), Some("250"));
}

#[test]
fn options_that_are_not_known_are_told_where_kernels_differ() {
    let other = |facts: &mut Facts| facts.kernel_version = Some("#2".into());
    assert!(told(&lab(&["base", "new"], other).analyse(), "kernel options of base, new are not known"));
    let same = lab(&["base", "new"], |_| ()).analyse();
    assert!(!told(&same, "kernel options"), "one kernel needs no options to be the same");
}

#[test]
fn m14_another_clock_source_during_a_run_is_told() {
    let mut lab = Lab::new(1, &["base"], Blocks::Exactly(6));
    read(&mut lab, "base", |_| ());
    lab.series(1, "base", &[1.0]);
    read(&mut lab, "base", |facts| facts.clocksource = Some("hpet".into()));
    assert!(!told(&lab.analyse(), "changed"), "nothing was measured since");
    lab.push(trial(2, 1, "base", done(&[("time", &[1.0])])));
    assert!(told(&lab.analyse(), "clocksource changed while the run lasted, from `tsc` to `hpet`"));
}

#[test]
fn p13_a_run_that_goes_on_on_another_machine_is_refused_and_can_go_back() {
    let mut lab = Lab::new(1, &["base"], Blocks::Exactly(6));
    let refused = |lab: &Lab| refused(&lab.run.header.experiment, &lab.run.records);
    let other = |facts: &mut Facts| facts.cpu_model = Some("B".into());
    read(&mut lab, "base", |_| ());
    lab.series(1, "base", &[1.0]);
    assert_eq!(refused(&lab), []);
    read(&mut lab, "base", other);
    let why = refusal_in_words(&refused(&lab));
    assert!(why.contains("CPU model of base changed while the run lasted, from `A` to `B`"), "{why}");
    assert!(lab.analyse().refused.is_empty(), "what was measured is of one machine");
    read(&mut lab, "base", |_| ());
    assert_eq!(refused(&lab), [], "back on the first machine");
    read(&mut lab, "base", other);
    lab.push(trial(2, 1, "base", done(&[("time", &[1.0])])));
    assert_eq!(refusals(&lab.analyse()), ["cpu-model"], "blocks of two machines");
}

fn configuration(name: &str) -> Option<KernelConfig> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/kernels").join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(KernelConfig::parse(&text)),
        Err(_) => {
            println!("skipped: {} is not here", path.display());
            None
        }
    }
}

#[test]
fn real_kernels_of_one_release_are_refused_over_what_one_of_them_checks() {
    let (Some(stock), Some(features)) =
        (configuration("config-7.3.4+deb13-cloud-amd64"), configuration("config-7.3.4-features"))
    else {
        return;
    };
    let mut lab = Lab::new(1, &["base:kernel=a", "new:kernel=b"], Blocks::Exactly(6));
    read(&mut lab, "base", |facts| facts.take_config(stock.clone(), "package"));
    read(&mut lab, "new", |facts| facts.take_config(features.clone(), "package"));
    let analysis = lab.analyse();
    assert_eq!(refusals(&analysis), ["CONFIG_DEBUG_LIST"]);
    assert!(analysis.unasked.len() > 2000, "{}", analysis.unasked.len());
}

#[test]
fn two_stock_kernels_differ_in_their_preemption_model_and_hundreds_of_options() {
    let (Some(old), Some(new)) =
        (configuration("config-6.12.117+deb13-cloud-amd64"), configuration("config-7.3.4+deb13-cloud-amd64"))
    else {
        return;
    };
    let mut lab = Lab::new(1, &["base:kernel=a", "new:kernel=b"], Blocks::Exactly(6));
    for (variant, config) in [("base", &old), ("new", &new)] {
        read(&mut lab, variant, |facts| {
            facts.kernel_version = Some("#1 SMP PREEMPT_DYNAMIC Debian".into());
            facts.take_config(config.clone(), "package");
        });
    }
    let analysis = lab.analyse();
    let differences = unasked(&analysis);
    assert_eq!(refusals(&analysis), ["preemption"]);
    assert_eq!(differences[0], "preemption: voluntary lazy");
    assert!(differences[1].starts_with("CONFIG_HRTIMER_REARM_DEFERRED"), "{}", differences[1]);
    let telling = analysis.unasked.iter().filter(|one| one.about != About::KernelOption(OptionGroup::Rest));
    assert!((20..80).contains(&telling.count()) && differences.len() > 500);
    let sides = diff(Side::of_config("old", old), Side::of_config("new", new));
    assert_eq!(sides.differences.len(), differences.len(), "a configuration alone has the same options");
}

#[test]
fn sides_that_cannot_have_a_fact_do_not_differ_in_it() {
    let mut machine = base();
    machine.kernel_release = Some("7.3.4".into());
    with_config(&mut machine, "CONFIG_HZ=250\nCONFIG_SMP=y\n");
    let kernel = Side::of_kernel(
        "bzImage",
        Some("7.4.0".into()),
        None,
        Some((KernelConfig::parse("CONFIG_HZ=100\nCONFIG_SMP=y\n"), "bzImage".into())),
    );
    let found = diff(Side::of_machine("here", machine.clone()), kernel);
    let names: Vec<&str> = found.differences.iter().map(|difference| difference.fact.as_str()).collect();
    assert_eq!(names, ["kernel", "CONFIG_HZ"]);
    assert_eq!(found.options, Ok(2));
    let found = diff(Side::of_machine("here", machine.clone()), Side::of_machine("there", base()));
    let names: Vec<&str> = found.differences.iter().map(|difference| difference.fact.as_str()).collect();
    assert_eq!(names, ["kernel"], "options that are not known are no difference");
    assert_eq!(found.facts_alike, base().rows().len());
    assert!(found.options.unwrap_err().why.contains("options of there are not known"));
    machine.command_line = Some("quiet nosmt".into());
    let found = diff(Side::of_machine("here", machine), Side::of_machine("there", base()));
    let line = found.differences.iter().find(|difference| difference.fact == "command line").unwrap();
    assert_eq!(line.values, [Some("nosmt".into()), Some("nothing more".into())]);
}

#[test]
fn runs_differ_in_what_was_asked() {
    let mut a = Lab::new(1, &["base", "new:nice=5"], Blocks::Exactly(6));
    read(&mut a, "base", |_| ());
    let mut b = a.clone();
    b.run.header.experiment.blocks = Blocks::Exactly(8);
    b.run.header.experiment.variants[1] = Variant::parse("new:nice=10").unwrap();
    b.run.header.experiment.variants.push(Variant::parse("third").unwrap());
    let found = diff(Side::of_run("a", &a.run), Side::of_run("b", &b.run));
    let asked: Vec<String> = found
        .asked
        .iter()
        .map(|one| {
            format!("{}: {}", one.fact, one.values.iter().flatten().cloned().collect::<Vec<_>>().join(" -> "))
        })
        .collect();
    assert_eq!(
        asked,
        ["blocks: 6 blocks -> 8 blocks", "variant new: nice=5 -> nice=10", "variant third: as is"]
    );
    assert!(found.differences.is_empty());
    assert!(Side::of_variant("a:gone", &a.run, "gone").is_none());
    let variant = Side::of_variant("a:base", &a.run, "base").unwrap();
    assert_eq!(variant.facts.cpu_model.as_deref(), Some("A"));
}
