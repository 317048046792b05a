//! `kduel doctor` on this machine and on a tree of files.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support.rs"]
mod support;

use support::Kduel;

#[test]
fn it_says_in_words_and_as_json_what_the_machine_can_do() {
    let kduel = Kduel::new();
    let text = kduel.ok(&["doctor"]);
    for ability in ["KVM", "PMU", "slice extension", "proxy execution", "cgroups", "steal", "space for runs"]
    {
        assert!(text.contains(ability), "{ability} is not in\n{text}");
    }
    assert!(!text.contains('\x1b'), "no colour into a pipe");
    for line in text.lines().filter(|line| line.chars().count() > 100) {
        // Only a word that cannot be broken may be longer.
        assert!(line.split_whitespace().any(|word| word.len() > 60), "{line}");
    }

    let object: serde_json::Value = serde_json::from_str(&kduel.ok(&["doctor", "--format", "json"])).unwrap();
    assert_eq!(object["form"], 1);
    let findings: Vec<&serde_json::Value> = object["sections"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|section| section["findings"].as_array().unwrap())
        .collect();
    for finding in &findings {
        assert!(
            ["ok", "limited", "no", "unknown"].contains(&finding["state"].as_str().unwrap()),
            "{finding}"
        );
        assert!(!finding["seen"].as_str().unwrap().is_empty(), "{finding}");
        if let Some(remedy) = finding.get("remedy") {
            assert!(remedy["command"].is_string() != remedy["advice"].is_string(), "{finding}");
        }
    }
    let counted = format!("{} abilities: ", findings.len());
    assert!(text.contains(&counted), "{text}");
}

#[test]
fn a_tree_of_files_is_looked_at_in_place_of_the_machine() {
    let kduel = Kduel::new();
    let top = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(top.path().join("proc")).unwrap();
    std::fs::write(top.path().join("proc/cpuinfo"), "model name : Made Up 1\nflags : svm\n").unwrap();
    let text = kduel.ok(&["doctor", "--root", top.path().to_str().unwrap()]);
    assert!(text.contains("Made Up 1") && text.contains("$ modprobe kvm_amd"), "{text}");
    assert!(!text.contains("made one"), "nothing was tried:\n{text}");

    let error = kduel.fails(&["doctor", "--root", "/no/such/tree"]);
    assert!(error.contains("/no/such/tree"), "{error}");
}
