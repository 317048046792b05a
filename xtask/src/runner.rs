//! Commands that are said before they are run, or only said.

use anyhow::{Context as _, bail, ensure};
use std::process::{Command, Stdio};

/// Runs commands.
pub(crate) struct Runner {
    /// Whether they are only said.
    pub(crate) dry: bool,
}

impl Runner {
    /// Says what a command is and runs it; its output goes where ours goes.
    pub(crate) fn run(&self, command: &mut Command) -> anyhow::Result<()> {
        self.say(command);
        if self.dry {
            return Ok(());
        }
        let status = command.stdin(Stdio::null()).status().with_context(|| not_started(command))?;
        ensure!(status.success(), "{}: {status}", in_words(command));
        Ok(())
    }

    /// Says what a command is.
    pub(crate) fn say(&self, command: &Command) {
        eprintln!("+ {}", in_words(command));
    }
}

/// What a command that only looks prints.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| not_started(command))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}: {}", in_words(command), output.status, said.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn not_started(command: &Command) -> String {
    format!("{} does not start", command.get_program().to_string_lossy())
}

/// A command as one would type it.
pub(crate) fn in_words(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={} ", name.to_string_lossy(), value?.to_string_lossy()))
    });
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = |word: &std::ffi::OsStr| {
        let word = word.to_string_lossy();
        let plain = |byte: char| byte.is_ascii_alphanumeric() || "-_./=:,+~@%".contains(byte);
        if word.chars().all(plain) { word.into_owned() } else { format!("'{word}'") }
    };
    variables.collect::<String>() + &words.map(quoted).collect::<Vec<String>>().join(" ")
}
