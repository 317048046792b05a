//! What reports and `kduel diff` say of machines and kernels.

#![allow(clippy::unwrap_used)]

mod common;

use analysis::{About, Difference, OptionGroup, Side, diff};
use common::{flat, run};
use experiment::{Facts, KernelConfig, Refusal};
use report::{Options, diff_json, diff_text, render};

fn difference(fact: &str, one: &str, other: &str, about: About) -> Difference {
    Difference { fact: fact.into(), values: vec![Some(one.into()), Some(other.into())], about }
}

#[test]
fn long_lists_of_differences_begin_with_what_tells_most_and_end_with_the_way_to_the_rest() {
    let mut analysis = run(&[], &["old:nice=1", "new:nice=2"]);
    analysis.unasked.push(difference("preemption", "voluntary", "lazy", About::Fact));
    analysis.unasked.push(difference("CONFIG_KASAN", "n", "y", About::DebugOption));
    analysis.unasked.extend((0..40).map(|n| difference(&format!("sysctl x{n}"), "0", "1", About::Fact)));
    let locks = About::KernelOption(OptionGroup::Locks);
    analysis.unasked.extend((0..40).map(|n| difference(&format!("CONFIG_LOCK{n}"), "n", "y", locks)));
    let rest = About::KernelOption(OptionGroup::Rest);
    analysis.unasked.extend((0..400).map(|n| difference(&format!("CONFIG_REST{n}"), "n", "m", rest)));
    analysis.unasked[1].values[0] = None;
    analysis.header.experiment.accept_differences = vec![Refusal::Preemption];
    let text = flat(&render(&analysis, &Options::default()).unwrap());
    for wanted in [
        "- preemption: old `voluntary`, new `lazy` (accepted)",
        "- CONFIG_KASAN: old `not known`, new `y` -",
        "- sysctl x27: old `0`, new `1`",
        "- CONFIG_LOCK23: old `n`, new `y`",
        "- and 12 further facts and 416 further kernel options: kduel diff 20261130-101500-7f3a:old \
         20261130-101500-7f3a:new",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    for unwanted in ["sysctl x28", "CONFIG_LOCK24", "CONFIG_REST"] {
        assert!(!text.contains(unwanted), "{unwanted}\n{text}");
    }
}

#[test]
fn a_setting_that_a_kernel_does_not_have_is_not_there() {
    let mut analysis = run(&[], &["old", "new"]);
    analysis.unasked = vec![difference("sched features", "A", "B", About::Fact)];
    analysis.unasked[0].values[1] = None;
    let text = render(&analysis, &Options::default()).unwrap();
    assert!(text.contains("- sched features: old `A`, new `not there`"), "{text}");
}

#[test]
fn debug_options_are_told_with_what_they_do_even_where_all_variants_have_them() {
    let mut analysis = run(&[], &["old", "new"]);
    let on = |options: &[&str]| Some(options.iter().map(|option| option.to_string()).collect());
    analysis.facts[0].1.debug_options = on(&["CONFIG_KASAN"]);
    analysis.facts[1].1.debug_options = on(&["CONFIG_PROVE_LOCKING", "CONFIG_KASAN"]);
    let text = flat(&render(&analysis, &Options::default()).unwrap());
    for wanted in [
        "o Debug options that cost time - CONFIG_PROVE_LOCKING (new) checks the order of every lock that is taken",
        "- CONFIG_KASAN (all variants) checks each memory access",
        "old: 6.12.117, preemption voluntary, 1 debug option, as is",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    analysis.facts.clear();
    assert!(!render(&analysis, &Options::default()).unwrap().contains("Debug options"));
}

fn kernel(name: &str, release: &str, config: &str) -> Side {
    Side::of_kernel(name, Some(release.into()), None, Some((KernelConfig::parse(config), name.into())))
}

#[test]
fn a_diff_says_all_of_it() {
    let a = kernel("old.deb", "6.12", "CONFIG_HZ=250\nCONFIG_SMP=y\nCONFIG_USB=m\n");
    let b = kernel("bzImage", "7.3", "CONFIG_HZ=1000\nCONFIG_SMP=y\nCONFIG_PROVE_LOCKING=y\n");
    let found = diff(a, b);
    let text = flat(&diff_text(&found));
    for wanted in [
        "A: old.deb, kernel; 3 kernel options B:",
        "- CONFIG_PROVE_LOCKING: n -> y; it checks the order of every lock that is taken",
        "- kernel: 6.12 -> 7.3",
        "o Kernel options, tick and preemption: 1 difference - CONFIG_HZ: 250 -> 1000",
        "o Kernel options, the rest: 1 difference - CONFIG_USB: m -> n",
        "Facts that differ: 1 of 1; kernel options: 3 of 4.",
        "kduel does not compare figures across CONFIG_PROVE_LOCKING, unless --accept-difference names it.",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&diff_json(&found).unwrap()).unwrap();
    assert_eq!((&json["a"]["what"], &json["options_compared"]), (&"kernel".into(), &4.into()));
    let first = &json["differences"][0];
    assert_eq!(
        (&first["fact"], &first["accept"], &first["a"], &first["b"]),
        (&"CONFIG_PROVE_LOCKING".into(), &"CONFIG_PROVE_LOCKING".into(), &"n".into(), &"y".into())
    );
    assert!(json["differences"].as_array().unwrap().iter().any(|one| one["group"] == "preemption"));
}

#[test]
fn sides_that_are_alike_and_sides_that_are_not_known_say_so() {
    let machine =
        |name: &str| Side::of_machine(name, Facts { kernel_release: Some("7.3".into()), ..Facts::default() });
    let found = diff(machine("a.json"), machine("b.json"));
    let text = flat(&diff_text(&found));
    assert!(
        text.contains("Facts that differ: 0 of 1; the kernel options of a.json are not known."),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&diff_json(&found).unwrap()).unwrap();
    assert!(json["options_compared"].is_null() && json["options_missing"].is_string(), "{json}");
}
