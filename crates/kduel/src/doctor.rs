use crate::{Outcome, output, session};
use anyhow::Context as _;
use clap::ValueEnum;
use experiment::{Known, Missing};
use machine::Root;
use machine::doctor::{Finding, Remedy, Section, State, examine};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// No line is longer, so that a mail can quote it.
const COLUMNS: usize = 100;
const STATE_COLUMNS: usize = 9;
const ABILITY_COLUMNS: usize = 20;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Look at a copy of a machine's files, with its /proc and /sys, and not at this machine
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One line per ability, and below each gap what closes it
    Text,
    /// One object; docs/doctor.md says what its fields mean
    Json,
}

/// `kduel doctor`.
///
/// # Errors
/// When there is no such tree, or the result cannot be written.
pub fn doctor(args: &Args) -> anyhow::Result<Outcome> {
    let sections = match &args.root {
        Some(top) => {
            let files = std::fs::read_dir(top).with_context(|| format!("cannot read {}", top.display()))?;
            anyhow::ensure!(files.count() > 0, "{} holds no files of a machine", top.display());
            examine(&Root::at(top), None, None)
        }
        None => {
            let home = session::home().ok();
            examine(&Root::real(), home.as_ref().map(|home| home.path()), guest().as_ref())
        }
    };
    let text = match args.format {
        Format::Text => in_words(&sections, args.root.as_deref()),
        Format::Json => as_json(&sections)?,
    };
    output::result(&text)?;
    Ok(Outcome::Done)
}

/// What came of starting a machine under KVM; `None` where that could not be tried.
fn guest() -> Option<Known<String>> {
    let token = machine::new_token(&Root::real()).ok()?;
    Some(match targets::vm::kvm_works(&token).ok()? {
        Ok(()) => Ok("a machine that was started under it got into 64-bit mode".into()),
        Err(why) => Err(Missing::because(why)),
    })
}

fn as_json(sections: &[Section]) -> anyhow::Result<String> {
    let object = serde_json::json!({
        "form": 1,
        "kduel": env!("CARGO_PKG_VERSION"),
        "build": agent::build_id(),
        "sections": sections,
    });
    serde_json::to_string_pretty(&object).context("cannot write the findings as JSON")
}

// Writing to a String cannot fail, so the results of `write!` are dropped throughout.

fn in_words(sections: &[Section], root: Option<&Path>) -> String {
    let mut out = String::new();
    if let Some(root) = root {
        let _ = writeln!(out, "The machine whose files are in {}\n", root.display());
    }
    for section in sections {
        let _ = writeln!(out, "o {}\n", section.title);
        for finding in &section.findings {
            say(&mut out, finding);
        }
        out.push('\n');
    }
    let findings = || sections.iter().flat_map(|section| &section.findings);
    let count = |state: State| findings().filter(|finding| finding.state == state).count();
    let _ = writeln!(
        out,
        "{} abilities: {} ok, {} limited, {} no, {} unknown.",
        findings().count(),
        count(State::Ok),
        count(State::Limited),
        count(State::No),
        count(State::Unknown)
    );
    if findings().any(|finding| matches!(finding.remedy, Some(Remedy::Command(_)))) {
        out.push_str(
            "Most commands behind `$` want root. What sysctl and echo set lasts until the next boot.\n",
        );
    }
    out
}

fn say(out: &mut String, finding: &Finding) {
    let (word, colour) = match finding.state {
        State::Ok => ("ok", "32"),
        State::Limited => ("limited", "33"),
        State::No => ("no", "31"),
        State::Unknown => ("unknown", "36"),
    };
    // What colours takes no columns, so the word is filled up before.
    let word = format!("{word:STATE_COLUMNS$}");
    let word = if output::colour() { format!("\x1b[{colour}m{word}\x1b[0m") } else { word };
    let indent = STATE_COLUMNS + ABILITY_COLUMNS;
    let seen = lines_of(&finding.seen, COLUMNS - indent);
    let first = seen.first().map_or("", String::as_str);
    let _ = writeln!(out, "{word}{:ABILITY_COLUMNS$}{first}", finding.ability);
    for line in seen.iter().skip(1) {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
    let (mark, text, end) = match &finding.remedy {
        None => return,
        // A command that does not fit goes on behind a backslash, as a shell takes it.
        Some(Remedy::Command(command)) => ("$ ", command, " \\"),
        Some(Remedy::Advice(sentence)) => ("> ", sentence, ""),
    };
    let lines = lines_of(text, COLUMNS - STATE_COLUMNS - mark.len() - end.len());
    for (index, line) in lines.iter().enumerate() {
        let mark = if index == 0 { mark } else { "  " };
        let end = if index + 1 < lines.len() { end } else { "" };
        let _ = writeln!(out, "{:STATE_COLUMNS$}{mark}{line}{end}", "");
    }
}

/// Text in lines of at most `width` columns, broken at spaces. A longer word stays whole: it is a path that somebody
/// wants to copy. What would steer a terminal is replaced: names of processes and kernels may hold anything.
fn lines_of(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = output::plain(word);
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_and_long_words_are_not() {
        assert_eq!(lines_of("aa bb  cc", 5), ["aa bb", "cc"]);
        assert_eq!(lines_of("a /a/long/path b", 5), ["a", "/a/long/path", "b"]);
        assert!(lines_of(" ", 5).is_empty());
        assert_eq!(lines_of("a\x1b[31m b", 20), ["a?[31m b"]);
    }

    #[test]
    fn a_long_command_can_be_pasted() {
        let command = format!("echo {} > /sys/kernel/some/file", "x".repeat(70));
        let finding = Finding {
            ability: "a thing",
            state: State::No,
            seen: "it is not there".into(),
            remedy: Some(Remedy::Command(command.clone())),
        };
        let mut out = String::new();
        say(&mut out, &finding);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], "no       a thing             it is not there");
        assert!(lines.len() > 2 && lines[1].ends_with(" \\"), "{out}");
        assert!(lines.iter().all(|line| line.len() <= COLUMNS), "{out}");
        let pasted = lines[1..].concat().replace(" \\", "").replace('$', "");
        assert_eq!(pasted.split_whitespace().collect::<Vec<_>>().join(" "), command);
    }
}
