/// The candidate that looks most like `word`, if any is near enough to be a likely slip of the fingers.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (likeness(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.65)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// From 0 to 1. Words that begin alike are alike, and so are words with two letters swapped.
fn likeness(word: &str, candidate: &str) -> f64 {
    let longest = word.chars().count().max(candidate.chars().count()).max(1);
    let slips = strsim::osa_distance(word, candidate) as f64 / longest as f64;
    strsim::jaro_winkler(word, candidate).max(1.0 - slips)
}

/// More words than this do not help who reads an error.
const LISTED: usize = 24;

/// The end of an error about an unknown word: the nearest known one, or else the list of all of them, if it is not
/// endless.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(word, candidates.clone()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => {
            let all: Vec<&str> = candidates.into_iter().collect();
            match all.len().checked_sub(LISTED) {
                Some(more @ 1..) => format!("known are: {} and {more} more", all[..LISTED].join(", ")),
                _ => format!("known are: {}", all.join(", ")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_noise_finds_none() {
        let words = ["hackbench", "global-lock", "futex-wake"];
        assert_eq!(nearest("hakbench", words), Some("hackbench"));
        assert_eq!(nearest("globallock", words), Some("global-lock"));
        assert_eq!(nearest("msc", ["tas", "mcs", "std"]), Some("mcs"));
        assert_eq!(nearest("zzz", words), None);
        assert!(did_you_mean("zzz", words).contains("futex-wake"));
        assert!(did_you_mean("zzz", ["a"; 100]).ends_with("a, a and 76 more"));
    }
}
