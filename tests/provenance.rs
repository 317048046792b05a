//! `kduel facts`, `kduel diff`, and comparisons that are refused, through the real binary.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support.rs"]
mod support;

use experiment::{Facts, KernelConfig, Record};
use journal::Home;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Kduel, SHORT, words};

#[test]
fn facts_are_saved_and_compared_with_this_machine() {
    let kduel = Kduel::new();
    let text = kduel.ok(&["facts"]);
    assert!(text.lines().any(|line| line.starts_with("kernel: ")), "{text}");
    let saved = kduel.file("facts.json", &kduel.ok(&["facts", "--format", "json"]));
    let saved = saved.to_str().unwrap();
    // Load, limits and the like may change between two readings, the kernel does not.
    let same: Value = serde_json::from_str(&kduel.ok(&["diff", saved, "here", "--format", "json"])).unwrap();
    let differing = same["differences"].as_array().unwrap();
    assert!(differing.iter().all(|one| one["about"] == "fact" && one["fact"] != "kernel"), "{differing:?}");
    assert!(same["facts_alike"].as_u64().unwrap() > 10);

    let mut facts: Facts = serde_json::from_str(&std::fs::read_to_string(saved).unwrap()).unwrap();
    facts.kernel_release = Some("9.9.9".into());
    facts.cpu_model = Some("Another CPU".into());
    let other = kduel.file("other.json", &serde_json::to_string(&facts).unwrap());
    let text = kduel.ok(&["diff", saved, other.to_str().unwrap()]);
    assert!(text.contains("-> 9.9.9") && text.contains("-> Another CPU"), "{text}");
    assert!(text.contains("--accept-difference"), "{text}");
}

#[test]
fn configurations_are_compared_packed_or_not() {
    let kduel = Kduel::new();
    let plain = kduel.file("config", "CONFIG_HZ=250\nCONFIG_SMP=y\n");
    let packed = kduel.home().join("config.gz");
    let file = std::fs::File::create(&packed).unwrap();
    let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, b"CONFIG_HZ=1000\nCONFIG_SMP=y\nCONFIG_KASAN=y\n").unwrap();
    packer.finish().unwrap();
    let text = kduel.ok(&["diff", plain.to_str().unwrap(), packed.to_str().unwrap()]);
    for wanted in ["- CONFIG_HZ: 250 -> 1000", "- CONFIG_KASAN: n -> y; it checks", "kernel options: 2 of 3"]
    {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    let same = kduel.ok(&["diff", plain.to_str().unwrap(), plain.to_str().unwrap()]);
    assert!(same.contains("kernel options: 0 of 2"), "{same}");
}

#[test]
fn what_is_no_side_is_named_with_what_would_be_one() {
    let kduel = Kduel::new();
    let poem = kduel.file("poem", "no option at all\n");
    let broken = kduel.file("broken.json", "{\"hostname\": 7}\n");
    for (side, wanted) in [
        ("gone", "`gone` is no run"),
        ("gone:base", "no RUN:VARIANT"),
        (poem.to_str().unwrap(), "CONFIG_SMP=y"),
        (broken.to_str().unwrap(), "kduel facts --format json"),
    ] {
        let error = kduel.fails(&["diff", "here", side]);
        assert!(error.contains(wanted), "{wanted}\n{error}");
    }
    let error = kduel.fails(&["report", "--accept-difference", "cpu-modle"]);
    assert!(error.contains("`cpu-model`"), "{error}");
}

#[test]
fn runs_and_variants_are_compared() {
    let kduel = Kduel::new();
    kduel.ok(&words(SHORT, &["--blocks", "1"]));
    let text = kduel.ok(&["diff", "latest:tas", "latest:mcs"]);
    assert!(text.contains("- knobs: lock=tas -> lock=mcs"), "{text}");
    let first = std::fs::read_link(kduel.home().join("latest")).unwrap();
    let first = first.file_name().unwrap().to_str().unwrap().to_string();
    kduel.ok(&words(SHORT, &["--blocks", "2"]));
    let text = kduel.ok(&["diff", &first, "latest"]);
    assert!(text.contains("- blocks: 1 block -> 2 blocks"), "{text}");
    let error = kduel.fails(&["diff", "latest:tas", "latest:msc"]);
    assert!(error.contains("it has tas, mcs"), "{error}");
    assert!(kduel.ok(&["diff", "latest:tas", "here"]).contains("here, machine"));
}

/// A run whose variant `mcs` is said to have run on a kernel with lock debugging.
fn planted(kduel: &Kduel) -> String {
    planted_without(kduel, |_| false)
}

/// As [`planted`], without the records that are `left_out`.
fn planted_without(kduel: &Kduel, left_out: fn(&Record) -> bool) -> String {
    kduel.ok(&words(SHORT, &["--blocks", "1"]));
    let home = Home::at(kduel.home());
    let mut run = home.read("latest").unwrap();
    let config = |text: &str| (KernelConfig::parse(text), "planted");
    let directory = kduel.home().join("planted");
    let mut journal = home.create_at(&directory, &run.header).unwrap();
    for record in &mut run.records {
        if let Record::Facts { variant, facts } = record {
            let (config, from) = match variant.as_str() {
                "mcs" => config("CONFIG_SMP=y\nCONFIG_PROVE_LOCKING=y\n"),
                _ => config("CONFIG_SMP=y\n"),
            };
            facts.take_config(config, from);
        }
        if !left_out(record) {
            journal.append(record).unwrap();
        }
    }
    journal.sync().unwrap();
    directory.to_str().unwrap().to_string()
}

#[test]
fn a_report_across_a_debug_option_is_refused_and_named_unless_it_is_accepted() {
    let kduel = Kduel::new();
    let run = planted(&kduel);
    for format in ["text", "json", "csv", "html"] {
        let error = kduel.fails(&["report", &run, "--format", format]);
        assert!(error.contains("CONFIG_PROVE_LOCKING is on in mcs and not in tas"), "{format}: {error}");
        assert!(error.contains("--accept-difference CONFIG_PROVE_LOCKING"), "{format}: {error}");
    }
    kduel.fails(&["report", &run, "--accept-difference", "cpu-model"]);
    let text = kduel.ok(&["report", &run, "--accept-difference", "cpu-model,prove_locking"]);
    let flat = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(flat.contains("- CONFIG_PROVE_LOCKING: tas `n`, mcs `y` (accepted)"), "{text}");
    assert!(flat.contains("- CONFIG_PROVE_LOCKING (mcs) checks the order of every lock"), "{text}");
    assert!(
        kduel.ok(&["diff", &format!("{run}:tas"), &format!("{run}:mcs")]).contains("CONFIG_PROVE_LOCKING")
    );
    kduel.ok(&words(SHORT, &["--blocks", "1"]));
    let error = kduel.fails(&["report", "latest", "--beside", &run]);
    assert!(
        error.contains("CONFIG_PROVE_LOCKING"),
        "a refused run is not set beside others, either: {error}"
    );
}

#[test]
fn what_is_accepted_when_a_run_is_resumed_is_accepted_by_its_reports() {
    let kduel = Kduel::new();
    // It was interrupted before its last point.
    let run = planted_without(&kduel, |record| match record {
        Record::Trial(trial) => trial.point == 2_u64.into(),
        Record::End { .. } => true,
        _ => false,
    });
    let error = kduel.fails(&["resume", &run]);
    assert!(error.contains("CONFIG_PROVE_LOCKING"), "{error}");
    kduel.ok(&["resume", &run, "--accept-difference", "debug-options"]);
    kduel.ok(&["report", &run]);
    // It is finished, and this is its report, too.
    kduel.ok(&["resume", &run]);
}

/// Two real kernels of one release, of which one checks every linked list.
#[test]
fn a_debug_option_of_a_kernel_is_refused_and_named_before_anything_is_measured() {
    let kernel =
        |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/kernels").join(name);
    let (stock, features) = (kernel("vmlinuz-7.3.4+deb13-cloud-amd64"), kernel("bzImage-7.3.4-features"));
    if Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status().is_err() {
        return println!("skipped: no qemu-system-x86_64 here (Debian: apt install qemu-system-x86)");
    }
    if !stock.is_file() || !features.is_file() {
        return println!("skipped: no test kernels {} and {}", stock.display(), features.display());
    }
    let kduel = Kduel::new();
    let variant = |name: &str, kernel: &Path| format!("{name}:kernel={}", kernel.display());
    let (stock, features) = (variant("stock", &stock), variant("features", &features));
    let error =
        kduel.fails(&["run", "sched-pipe", "--target", "vm", "--blocks", "1", "-V", &stock, "-V", &features]);
    assert!(error.contains("CONFIG_DEBUG_LIST is on in stock and not in features"), "{error}");
    assert!(error.contains("--accept-difference CONFIG_DEBUG_LIST"), "{error}");
    assert!(!kduel.home().join("latest").exists(), "a run that measured nothing is not kept");
}
