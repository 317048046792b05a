//! Kernel command lines, and other lists of words, word by word.

/// As [`apart`], of whole lines.
pub(crate) fn words_apart(lines: &[Option<String>]) -> Option<Vec<Option<String>>> {
    let words = lines.iter().map(|line| Some(line.as_deref()?.split_whitespace().collect()));
    apart(&words.collect::<Vec<Option<Vec<&str>>>>())
}

/// The words of each line that not all lines have; the whole lines where only the order or the number of words differs.
/// `None` where the lines agree. A line that is not known differs from none.
pub(crate) fn apart(lines: &[Option<Vec<&str>>]) -> Option<Vec<Option<String>>> {
    let mut known = lines.iter().flatten();
    let first = known.next()?;
    if known.all(|line| line == first) {
        return None;
    }
    let is_common = |word: &str| lines.iter().flatten().all(|line| line.contains(&word));
    let told = |own_only: bool| -> Vec<Option<String>> {
        let words = |line: &Vec<&str>| {
            let words = line.iter().copied().filter(|word| !own_only || !is_common(word));
            words.collect::<Vec<&str>>().join(" ")
        };
        lines.iter().map(|line| line.as_ref().map(words)).collect()
    };
    let own = told(true);
    let told = if own.iter().flatten().all(String::is_empty) { told(false) } else { own };
    let named = |words: String| if words.is_empty() { "nothing more".into() } else { words };
    Some(told.into_iter().map(|words| words.map(named)).collect())
}

/// The words of a command line without those that were asked for, each of them once, and, where `another_kernel`,
/// without those by which a boot loader names its files.
pub(crate) fn without<'a>(line: &'a str, asked: &[String], another_kernel: bool) -> Vec<&'a str> {
    let mut asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let of_loader = |word: &str| word.starts_with("BOOT_IMAGE=") || word.starts_with("initrd=");
    let mut is_asked = |word: &str| match asked.iter().position(|one| *one == word) {
        Some(place) => {
            asked.remove(place);
            true
        }
        None => another_kernel && of_loader(word),
    };
    line.split_whitespace().filter(|word| !is_asked(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Option<Vec<Option<String>>> {
        let lines: Vec<Option<Vec<&str>>> =
            lines.iter().map(|line| Some(line.split_whitespace().collect())).collect();
        apart(&lines)
    }

    fn told(words: &[&str]) -> Option<Vec<Option<String>>> {
        Some(words.iter().map(|word| Some(word.to_string())).collect())
    }

    #[test]
    fn only_words_that_differ_are_told() {
        assert_eq!(of(&["quiet ro", "quiet ro"]), None);
        assert_eq!(of(&["quiet ro", "quiet ro nosmt"]), told(&["nothing more", "nosmt"]));
        assert_eq!(of(&["a=1 ro", "a=2 ro", "a=2 ro"]), told(&["a=1", "a=2", "a=2"]));
        assert_eq!(of(&["a=1 a=2", "a=2 a=1"]), told(&["a=1 a=2", "a=2 a=1"]), "the last one counts");
        assert_eq!(apart(&[None, Some(vec!["quiet"])]), None);
    }

    #[test]
    fn words_that_were_asked_for_are_taken_away_once() {
        let asked = ["nosmt".to_string()];
        assert_eq!(without("quiet nosmt nosmt", &asked, false), ["quiet", "nosmt"]);
        assert_eq!(without("BOOT_IMAGE=/a initrd=/b ro", &[], true), ["ro"]);
        assert_eq!(without("BOOT_IMAGE=/a ro", &[], false), ["BOOT_IMAGE=/a", "ro"]);
    }
}
