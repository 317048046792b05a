//! `torture` with `via=locktorture` in a virtual machine: its modules come from beside the kernel, and go after each trial.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support.rs"]
mod support;

use std::path::{Path, PathBuf};
use support::{Kduel, in_one_line, reasons, strays, test_kernel};

const FEATURES: &str = "bzImage-7.3.4-features";
const BUILT: &str = "CONFIG_LOCK_TORTURE_TEST=m\n";

/// A kernel for a home of its own, with what its configuration says of locktorture, but without modules.
fn bare_kernel(kduel: &Kduel, image: &Path, config: &str) -> PathBuf {
    let kernel = kduel.home().join("bzImage");
    std::fs::copy(image, &kernel).unwrap();
    kduel
        .file("config", &format!("CONFIG_MODULES=y\nCONFIG_VIRTIO_CONSOLE=y\nCONFIG_VIRTIO_PCI=y\n{config}"));
    kernel
}

#[test]
fn the_modules_are_carried_into_the_machine_and_go_after_each_trial() {
    let Some(path) = test_kernel(FEATURES) else { return };
    if !path.with_file_name("modules-7.3.4-features").is_dir() {
        return println!("skipped: the test kernel has no modules here");
    }
    let kduel = Kduel::new();
    let ask = format!(
        "target = 'vm'\nblocks = 1\naa = false\ndeadline = 20\n\
         [set]\nkernel = '{}'\nvm.cpus = 2\nsettle = 0\nvia = 'locktorture'\n\
         [[workload]]\nname = 'torture'\nlabel = 'killed'\npoints = [1]\nseconds = 600\n\
         [[workload]]\nname = 'torture'\nlabel = 'spin'\npoints = [2]\nseconds = 0.5\n\
         [[workload]]\nname = 'torture'\nlabel = 'rwsem'\npoints = [2]\nseconds = 0.5\nkernel-lock = 'rwsem_lock'\n\
         [[variant]]\nname = 'a'\n",
        path.display()
    );
    let file = kduel.file("ask.toml", &ask);
    let report = kduel.ok(&["run", "--experiment", file.to_str().unwrap(), "--seed", "1"]);
    let trials = kduel.trials();
    let of = |label: &str| trials.iter().position(|trial| trial["workload"] == label).unwrap();
    assert!(of("killed") < 2, "one must follow the trial that is killed; another seed would do: {trials:?}");
    let why = reasons(&trials);
    let [(failure, _)] = why.as_slice() else { panic!("only the one that is too long is missing: {why:?}") };
    assert_eq!(failure, "hang");
    for label in ["spin", "rwsem"] {
        let trial = &trials[of(label)];
        let outcome = &trial["outcome"];
        assert_eq!(outcome["state"], "done", "{trial}");
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        let (rate, total) = (&outcome["samples"]["rate"][0], &outcome["counters"]["acquisitions"]);
        assert!(number(total) > 0.0 && number(rate) > 0.0, "{outcome}");
        assert_eq!(outcome["counters"]["failures"], 0.0);
        assert_eq!(outcome["samples"].get("read-rate").is_some(), label == "rwsem", "{outcome}");
        // What the report says is what the kernel counted.
        let log = trial["kernel_log"].to_string();
        assert!(log.contains(&format!("Writes:  Total: {} ", number(total))), "{log}");
        assert!(log.contains(&format!("{label}_lock-torture:--- End of test: SUCCESS")), "{log}");
        let notes = outcome["notes"].to_string();
        assert!(
            notes.contains("locktorture of Linux 7.3.4") && notes.contains("nwriters_stress=2"),
            "{notes}"
        );
    }
    assert!(report.contains("locktorture of Linux 7.3.4"), "{report}");
    let boots = kduel.records().into_iter().filter(|record| record["kind"] == "boot").count();
    assert_eq!(boots, 2, "one to see what it is, one for all three");
    assert_eq!(strays(kduel.home()), Vec::<u32>::new());
}

#[test]
fn a_kernel_without_the_modules_is_told_before_it_is_booted() {
    let Some(path) = test_kernel(FEATURES) else { return };
    for (config, words) in [
        (BUILT, "a distribution has them in a package of their own"),
        ("# CONFIG_LOCK_TORTURE_TEST is not set\n", "was built without it; docs/kernels.md"),
    ] {
        let kduel = Kduel::new();
        let kernel = format!("kernel={}", bare_kernel(&kduel, &path, config).display());
        let words_of_run =
            ["run", "torture", "--target", "vm", "--set", &kernel, "--set", "via=locktorture", "-V", "a"];
        let error = in_one_line(&kduel.fails(&words_of_run));
        for word in ["has no module locktorture", "CONFIG_LOCK_TORTURE_TEST=m", "home().modules", words] {
            let word = word.replace("home().modules", &kduel.home().join("modules").display().to_string());
            assert!(error.contains(&word), "{word} in {error}");
        }
        assert!(!kduel.home().join("latest/consoles").exists(), "nothing was booted");
    }
}

#[test]
fn modules_that_are_damaged_or_of_another_kernel_are_named() {
    let Some(path) = test_kernel(FEATURES) else { return };
    let kduel = Kduel::new();
    let kernel = format!("kernel={}", bare_kernel(&kduel, &path, BUILT).display());
    std::fs::create_dir(kduel.home().join("modules")).unwrap();
    let run = ["run", "torture", "--target", "vm", "--set", &kernel, "--set", "via=locktorture", "-V", "a"];
    let place = kduel.file("modules/locktorture.ko", "no module\n");
    let error = in_one_line(&kduel.fails(&run));
    assert!(error.contains("modules/locktorture.ko is damaged"), "{error}");
    let Ok(module) = std::fs::read(path.with_file_name("modules-7.3.4-features").join("locktorture.ko"))
    else {
        return println!("skipped: the test kernel has no modules here");
    };
    let (magic, other) = (b"vermagic=7.3.4", b"vermagic=7.3.5");
    let at = module.windows(magic.len()).position(|bytes| bytes == magic).unwrap();
    std::fs::write(place, [&module[..at], other, &module[at + magic.len()..]].concat()).unwrap();
    let error = in_one_line(&kduel.fails(&run));
    assert!(error.contains("is for the kernel 7.3.5") && error.contains("not for 7.3.4"), "{error}");
}
