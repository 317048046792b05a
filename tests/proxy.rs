//! Proxy execution as a knob, through the real binary: what shows that it ran, and that it did not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support.rs"]
mod support;

use serde_json::Value;
use support::{Kduel, test_kernel};

/// One kernel with it on and off, and one that was built without.
const KERNELS: &str = "
target = \"vm\"
blocks = 1
aa = false
[set]
append = \"preempt=full\"
vm.cpus = 1
settle = 0
[[workload]]
name = \"inversion\"
points = [2]
over = \"position\"
priorities = \"fifo\"
seconds = 0.1
[[variant]]
name = \"base\"
kernel = \"FEATURES\"
proxy = \"off\"
[[variant]]
name = \"proxy\"
kernel = \"FEATURES\"
proxy = \"on\"
[[variant]]
name = \"without\"
kernel = \"STOCK\"
proxy = \"on\"
";

/// What issue 4 must show: evidence that proxy execution ran; "not exercised" without the option, and what would bring it.
#[test]
fn a_mutex_of_the_kernel_shows_whether_turns_are_lent() {
    let Some(features) = test_kernel("bzImage-7.3.4-features") else { return };
    let Some(stock) = test_kernel("vmlinuz-7.3.4+deb13-cloud-amd64") else { return };
    let kduel = Kduel::new();
    let text =
        KERNELS.replace("FEATURES", features.to_str().unwrap()).replace("STOCK", stock.to_str().unwrap());
    let file = kduel.file("kernels.toml", &text);
    // The stock kernel checks its lists.
    let accepted = ["--accept-difference", "debug-options"];
    kduel.ok(&[&["run", "--experiment", file.to_str().unwrap()], accepted.as_slice()].concat());
    for trial in kduel.trials() {
        let variant = trial["variant"].as_str().unwrap();
        let (feature, ran, words) = match variant {
            "base" => ("proxy=off", true, "not lent: in "),
            "proxy" => ("proxy=on", true, "lent: in "),
            _ => ("proxy=on", false, "this kernel has no proxy execution"),
        };
        let [evidence] = trial["outcome"]["evidence"].as_array().unwrap().as_slice() else {
            panic!("{trial}")
        };
        assert_eq!((&evidence["feature"], &evidence["ran"]), (&feature.into(), &ran.into()), "{evidence}");
        assert!(evidence["seen"].as_str().unwrap().starts_with(words), "{evidence}");
    }
    let report = kduel.json();
    let verdicts = |variant: &str| -> Vec<Value> {
        let cells = report["cells"].as_array().unwrap().iter();
        cells.filter(|cell| cell["primary"] == true && cell["variant"] == variant).cloned().collect()
    };
    assert_eq!((verdicts("proxy").len(), verdicts("without").len()), (2, 2), "{report}");
    for cell in verdicts("proxy") {
        assert_ne!(cell["verdict"], "not-exercised", "{cell}");
    }
    for cell in verdicts("without") {
        assert_eq!(cell["verdict"], "not-exercised", "{cell}");
        let reason = cell["reason"].as_str().unwrap();
        assert!(
            reason.contains("CONFIG_SCHED_PROXY_EXEC") && reason.contains("cargo xtask kernel"),
            "{reason}"
        );
    }
}
