//! Whole kernels against each other: stock ones from their packages, and two builds of one. `cargo xtask test` downloads
//! the first; `cargo xtask kernel --variant features --variant lock-debugging` builds the second.

#![allow(clippy::unwrap_used)]

#[path = "support.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Kduel, strays};

/// Where both put them.
fn target(inside: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(inside)
}

/// What is missing here to boot what `paths` name.
fn missing(paths: &[PathBuf], how: &str) -> Option<String> {
    let absent = paths.iter().find(|path| !path.exists());
    if let Some(path) = absent {
        return Some(format!("{} is not there; {how}", path.display()));
    }
    let qemu = Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status();
    qemu.is_err().then(|| "no qemu-system-x86_64 here (Debian: apt install qemu-system-x86)".into())
}

/// A duel of two kernels with one short trial each.
fn duel(one: &str, other: &str) -> Vec<String> {
    let line = "run sched-pipe --target vm --set vm.cpus=2 --set loops=200 --set settle=0 --blocks 1 --no-aa";
    let variants = ["-V".into(), format!("one:kernel={one}"), "-V".into(), format!("other:kernel={other}")];
    line.split(' ').map(String::from).chain(variants).collect()
}

#[test]
fn stock_kernels_boot_from_their_packages_and_are_told_apart() {
    let lists = ["trixie", "trixie-backports"].map(|suite| target(&format!("stock/{suite}.kernel")));
    if let Some(why) = missing(&lists, "cargo xtask stock trixie trixie-backports brings it") {
        return println!("skipped: {why}");
    }
    let [old, new] = lists.map(|list| std::fs::read_to_string(list).unwrap());
    let kduel = Kduel::new();
    let mut arguments = duel(&old, &new);
    arguments.extend(["--accept-difference".into(), "preemption".into()]);
    let report = kduel.ok(&arguments.iter().map(String::as_str).collect::<Vec<&str>>());
    assert!(report.contains("emulated"), "{report}");
    let above = report.split("o Benchmark results").next().unwrap();
    for word in ["6.12.", "7.", "that nobody asked for", "CONFIG_", "voluntary", "lazy"] {
        assert!(above.contains(word), "`{word}` in what stands above the table: {report}");
    }
    for trial in kduel.trials() {
        assert_eq!(trial["outcome"]["state"], "done", "{trial}");
    }
    assert_eq!(strays(kduel.home()), Vec::<u32>::new());
}

#[test]
fn a_build_with_lock_debugging_is_refused_and_named() {
    let builds = ["features", "lock-debugging"].map(|variant| target(&format!("kernels/{variant}")));
    let how = "cargo xtask kernel --variant features --variant lock-debugging builds it";
    if let Some(why) = missing(&builds, how) {
        return println!("skipped: {why}");
    }
    let [plain, debugging] = builds.map(|build| build.display().to_string());
    let kduel = Kduel::new();
    let arguments = duel(&plain, &debugging);
    let error = kduel.fails(&arguments.iter().map(String::as_str).collect::<Vec<&str>>());
    assert!(error.contains("CONFIG_PROVE_LOCKING is on in other and not in one"), "{error}");
    assert!(error.contains("--accept-difference"), "{error}");
    assert_eq!(strays(kduel.home()), Vec::<u32>::new());
}
