//! The words of a command.

use super::{FREE, NO_POINT};
use crate::originals::{absent, on_path};
use crate::words::split;
use crate::{Failure, Trial};
use experiment::{Params, did_you_mean};
use std::path::PathBuf;

/// A program and its arguments, with every placeholder filled in.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandLine {
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

impl CommandLine {
    /// The command that `params` name, for the point of `trial`.
    ///
    /// # Errors
    /// When there is none, when a quote or a placeholder cannot be meant, and when the program does not exist.
    pub fn new(params: &Params, trial: &Trial) -> Result<CommandLine, Failure> {
        let command = params.text("command")?;
        let words = if params.flag("shell")? {
            vec!["sh".into(), "-c".into(), command.to_string()]
        } else {
            split(command)?
        };
        let stands_for = |name: &str| stands_for(name, params, trial);
        let mut words =
            words.iter().map(|word| fill_in(word, stands_for)).collect::<Result<Vec<_>, _>>()?.into_iter();
        match words.next().filter(|_| !command.trim().is_empty()) {
            Some(name) => Ok(CommandLine { program: find(&name)?, arguments: words.collect() }),
            None => Err(Failure::Refused(
                "exec has no command; give it one, such as `--set command='sleep 0.1'`".into(),
            )),
        }
    }

    /// The command in one line, for messages.
    pub fn in_words(&self) -> String {
        let mut line = self.program.display().to_string();
        for argument in &self.arguments {
            line.push(' ');
            line.push_str(argument);
        }
        line
    }
}

fn find(name: &str) -> Result<PathBuf, Failure> {
    if name.contains('/') {
        let path = PathBuf::from(name);
        return match path.exists() {
            true => Ok(path),
            false => Err(absent(name, &format!("there is no program {name}"))),
        };
    }
    on_path(name).ok_or_else(|| {
        let path = std::env::var("PATH").unwrap_or_default();
        absent(name, &format!("there is no program `{name}` in any directory of PATH ({path})"))
    })
}

fn stands_for(name: &str, params: &Params, trial: &Trial) -> Result<String, Failure> {
    match name {
        "point" if trial.point().as_str() == NO_POINT => Err(Failure::Refused(
            "the command has a {point}, and no points were given; name them with --points".into(),
        )),
        "point" => Ok(trial.point().to_string()),
        "seed" => Ok(trial.seed().to_string()),
        "cpus" => Ok(trial.cpus().iter().map(u32::to_string).collect::<Vec<String>>().join(",")),
        name if FREE.contains(&name) => Ok(params.text(name)?.to_string()),
        _ => {
            let known = ["point", "seed", "cpus"].into_iter().chain(FREE);
            Err(Failure::Refused(format!(
                "nothing is called {{{name}}} in a command; {}; plain braces are written {{{{{name}}}}}",
                did_you_mean(name, known)
            )))
        }
    }
}

/// Replaces every `{name}` of small letters in `word`. What else stands in braces stays as it is.
fn fill_in(word: &str, stands_for: impl Fn(&str) -> Result<String, Failure>) -> Result<String, Failure> {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        let inner = rest.trim_start_matches('{');
        let depth = rest.len() - inner.len();
        let name = &inner[..inner.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(inner.len())];
        let behind = &inner[name.len()..];
        let closes = |depth: usize| !name.is_empty() && behind.starts_with(&"}".repeat(depth));
        if depth == 2 && closes(2) {
            filled.push_str(&rest[1..depth + name.len() + 1]);
            rest = &behind[2..];
        } else if depth == 1 && closes(1) {
            filled.push_str(&stands_for(name)?);
            rest = &behind[1..];
        } else {
            filled.push_str(&rest[..depth]);
            rest = inner;
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in_and_other_braces_stay() {
        let known = |name: &str| match name {
            "point" => Ok("16".to_string()),
            _ => Err(Failure::Refused(name.into())),
        };
        let filled = |word: &str| fill_in(word, known).unwrap();
        assert_eq!(filled("-t{point},{point}"), "-t16,16");
        assert_eq!(filled("{print $1} {} {{} {A} {0}"), "{print $1} {} {{} {A} {0}");
        assert_eq!(filled("{{point}} {{print}}"), "{point} {print}");
        assert_eq!(filled("{{{point}}}"), "{{{point}}}");
        assert_eq!(filled("{point"), "{point");
        assert!(fill_in("{poitn}", known).is_err());
    }
}
