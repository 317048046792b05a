//! The forms in which the kernel's settings files speak, and when two values mean the same.

use crate::CpuSet;
use std::path::Path;

/// The value that would have to be written to get what a file says now: the selected word of `always [madvise]
/// never` or of `none voluntary (full)`, otherwise all of it with single spaces.
pub fn in_force(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let selected = |open: char, close: char| {
        let mut marked = words.iter().filter_map(|word| word.strip_prefix(open)?.strip_suffix(close));
        match (marked.next(), marked.next()) {
            (Some(word), None) if words.len() > 1 && !word.is_empty() => Some(word.to_string()),
            _ => None,
        }
    };
    selected('[', ']').or_else(|| selected('(', ')')).unwrap_or_else(|| words.join(" "))
}

/// Whether a file is the scheduler's list of features, such as `PLACE_LAG NO_NEXT_BUDDY`: a read shows all of them,
/// a write turns one.
pub fn is_feature_list(path: &Path) -> bool {
    path.ends_with("sched/features")
}

/// Whether every feature of `wanted` stands as asked in a list of features.
pub fn features_in_force(wanted: &str, list: &str) -> bool {
    wanted.split_whitespace().all(|word| list.split_whitespace().any(|feature| feature == word))
}

/// The features of `wanted` that a list has neither on nor off.
pub fn unknown_features(wanted: &str, list: &str) -> Vec<String> {
    let name = |word: &str| word.strip_prefix("NO_").unwrap_or(word).to_string();
    let known: Vec<String> = list.split_whitespace().map(name).collect();
    wanted.split_whitespace().map(name).filter(|feature| !known.contains(feature)).collect()
}

/// Whether a file that was written `wanted` and now says `found` took the value: the same words, the same number in
/// another notation, the same switch, the same CPUs.
pub fn same(wanted: &str, found: &str) -> bool {
    let (wanted, found) = (in_force(wanted), in_force(found));
    if wanted == found {
        return true;
    }
    let numbers = |text: &str| -> Option<Vec<i128>> { text.split(' ').map(number).collect() };
    if let (Some(wanted), Some(found)) = (numbers(&wanted), numbers(&found)) {
        return wanted == found;
    }
    if matches!(found.as_str(), "Y" | "N") {
        return switch(&wanted) == Some(found == "Y");
    }
    match (wanted.parse::<CpuSet>(), found.parse::<CpuSet>()) {
        (Ok(wanted), Ok(found)) => wanted == found,
        _ => false,
    }
}

fn number(word: &str) -> Option<i128> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The kernel's own words for a switch.
fn switch(word: &str) -> Option<bool> {
    match word {
        "1" | "y" | "Y" | "on" | "On" | "ON" => Some(true),
        "0" | "n" | "N" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_word_is_what_is_in_force() {
        assert_eq!(in_force("always [madvise] never\n"), "madvise");
        assert_eq!(in_force("none voluntary (full) lazy \n"), "full");
        assert_eq!(in_force("4\t4\t1\t7\n"), "4 4 1 7");
        // A file of one word in brackets is not a choice, and two marked words are none either.
        assert_eq!(in_force("[none]"), "[none]");
        assert_eq!(in_force("[a] [b]"), "[a] [b]");
        assert_eq!(in_force(""), "");
    }

    #[test]
    fn features_are_looked_up_one_by_one() {
        let list = "PLACE_LAG NO_NEXT_BUDDY CACHE_HOT_BUDDY";
        assert!(features_in_force("NO_NEXT_BUDDY PLACE_LAG", list));
        assert!(!features_in_force("NEXT_BUDDY", list));
        assert!(unknown_features("NEXT_BUDDY NO_PLACE_LAG", list).is_empty());
        assert_eq!(unknown_features("NO_LAST_BUDDY", list), ["LAST_BUDDY"]);
    }

    #[test]
    fn the_forms_of_the_kernel_count_as_the_same() {
        for (wanted, found) in [
            ("never", "always madvise [never]\n"),
            ("4 4 1 7", "4\t4\t1\t7\n"),
            ("0x10", "16\n"),
            ("007", "7"),
            ("1", "Y\n"),
            ("off", "N"),
            ("0,1,2", "0-2\n"),
        ] {
            assert!(same(wanted, found), "{wanted} {found}");
        }
        for (wanted, found) in [
            ("never", "[always] madvise never"),
            ("4", "4\t4\t1\t7"),
            ("1", "N"),
            ("2", "Y"),
            ("0-2", "0-3"),
            ("3000", "3001"),
            ("", "1"),
        ] {
            assert!(!same(wanted, found), "{wanted} {found}");
        }
    }
}
