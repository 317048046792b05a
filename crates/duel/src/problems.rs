use crate::DuelError;

/// What stands against a run: every problem once, with the variants that have it.
#[derive(Debug)]
pub(crate) struct Problems {
    found: Vec<(String, Vec<String>)>,
    variants: usize,
}

impl Problems {
    /// None yet, in a run of so many variants.
    pub(crate) fn new(variants: usize) -> Problems {
        Problems { found: Vec::new(), variants }
    }

    /// Adds what stands against a variant.
    pub(crate) fn add(&mut self, variant: &str, problem: String) {
        match self.found.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, variants)) if variants.iter().any(|known| known == variant) => {}
            Some((_, variants)) => variants.push(variant.into()),
            None => self.found.push((problem, vec![variant.into()])),
        }
    }

    /// Whether nothing stands against the run.
    ///
    /// # Errors
    /// With a sentence for each problem. What all variants have is not laid to any.
    pub(crate) fn none(self) -> Result<(), DuelError> {
        let sentence = |(problem, variants): (String, Vec<String>)| match variants.len() < self.variants {
            true => format!("{}: {problem}", variants.join(", ")),
            false => problem,
        };
        let problems: Vec<String> = self.found.into_iter().map(sentence).collect();
        if problems.is_empty() { Ok(()) } else { Err(DuelError::Impossible { problems }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_of_several_variants_is_told_once() {
        let mut problems = Problems::new(3);
        for variant in ["a", "b", "c"] {
            problems.add(variant, "no room".into());
        }
        for variant in ["a", "c", "c"] {
            problems.add(variant, "no such file".into());
        }
        let error = problems.none().unwrap_err().to_string();
        assert!(error.ends_with(":\n  - no room\n  - a, c: no such file"), "{error}");
        assert!(Problems::new(1).none().is_ok());
    }
}
