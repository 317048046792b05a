use std::collections::BTreeMap;

/// How often each of several reasons was given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(BTreeMap<String, usize>);

impl Counts {
    pub fn add(&mut self, reason: &str) {
        match self.0.get_mut(reason) {
            Some(count) => *count += 1,
            None => {
                self.0.insert(reason.into(), 1);
            }
        }
    }

    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// The reasons, the most frequent first; those that are equally frequent by their text.
    pub fn sorted(&self) -> Vec<(String, usize)> {
        let mut all: Vec<(String, usize)> = self.0.iter().map(|(why, count)| (why.clone(), *count)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }

    /// The most frequent reason in words, with its number where there are others; `None` without any.
    pub fn in_words(&self, of: &str) -> Option<String> {
        let all = self.0.len();
        let (why, count) = self.sorted().into_iter().next()?;
        let total = self.total();
        Some(match (all, total) {
            (1, 1) => format!("the only {of}: {why}"),
            (1, _) => format!("all {total} {of}s: {why}"),
            _ => format!("{total} {of}s, most often ({count}): {why}"),
        })
    }
}
