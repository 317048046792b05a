//! The variables that a trial's knobs set.

use experiment::{Knob, Scope};

/// Where glibc takes its tunables from.
const TUNABLES: &str = "GLIBC_TUNABLES";
/// The tunable that says whether glibc registers rseq.
const RSEQ: &str = "glibc.pthread.rseq";

/// The variables that these knobs set, with their values. Tunables of libc that the agent itself was started with stay,
/// unless a knob names that variable.
pub(crate) fn of(knobs: &[Knob]) -> Vec<(&str, String)> {
    merged(knobs, std::env::var(TUNABLES).ok())
}

fn merged(knobs: &[Knob], inherited: Option<String>) -> Vec<(&str, String)> {
    let mut variables = Vec::new();
    let mut tunables = inherited.unwrap_or_default();
    let mut rseq = None;
    for Knob { scope, value } in knobs {
        match scope {
            Scope::Env(name) if name == TUNABLES => tunables.clone_from(value),
            Scope::Env(name) => variables.push((name.as_str(), value.clone())),
            Scope::Rseq => rseq = Some(u8::from(value == "on")),
            _ => {}
        }
    }
    if let Some(rseq) = rseq {
        let others = tunables.split(':').filter(|word| {
            let name = word.split('=').next().unwrap_or_default();
            !name.is_empty() && name != RSEQ
        });
        let words: Vec<String> = others.map(str::to_string).chain([format!("{RSEQ}={rseq}")]).collect();
        tunables = words.join(":");
    }
    if !tunables.is_empty() {
        variables.push((TUNABLES, tunables));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunables(knobs: &[(&str, &str)], inherited: Option<&str>) -> Option<String> {
        let knobs: Vec<Knob> = knobs.iter().map(|(key, value)| Knob::parse(key, value).unwrap()).collect();
        let variables = merged(&knobs, inherited.map(str::to_string));
        let found = variables.into_iter().find(|(name, _)| *name == TUNABLES);
        found.map(|(_, value)| value)
    }

    #[test]
    fn rseq_is_one_word_among_the_tunables_of_libc() {
        let env = ("env.GLIBC_TUNABLES", "glibc.malloc.check=3:glibc.pthread.rseq=1");
        assert_eq!(tunables(&[], None), None);
        assert_eq!(tunables(&[("rseq", "off")], None).unwrap(), "glibc.pthread.rseq=0");
        assert_eq!(tunables(&[("rseq", "on")], Some("a.b=1")).unwrap(), "a.b=1:glibc.pthread.rseq=1");
        for knobs in [[env, ("rseq", "off")], [("rseq", "off"), env]] {
            assert_eq!(tunables(&knobs, Some("a.b=1")).unwrap(), "glibc.malloc.check=3:glibc.pthread.rseq=0");
        }
        assert_eq!(tunables(&[env], Some("a.b=1")).unwrap(), env.1);
    }

    #[test]
    fn other_variables_are_set_as_they_are() {
        let knobs = [Knob::parse("env.X", "a b").unwrap(), Knob::parse("nice", "1").unwrap()];
        assert_eq!(merged(&knobs, None), [("X", "a b".to_string())]);
    }
}
