//! What goes to the two streams: results to standard output, everything else to standard error.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

/// Writes a result. A reader that has seen enough and closed the pipe is no error, and changes nothing of what the
/// command has found.
///
/// # Errors
/// When standard output cannot be written.
pub fn result(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(end.as_bytes()))
        .and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write the result to standard output"))
        }
        _ => Ok(()),
    }
}

/// Says something beside the result.
pub fn say(text: &str) {
    // Whoever closes standard error does not want to hear.
    let _ = writeln!(io::stderr().lock(), "{}", plain(text));
}

/// A text without what steers a terminal: programs, kernels and other machines may have said anything.
pub fn plain(text: &str) -> String {
    let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    text.chars().map(|letter| if steers(letter) { '?' } else { letter }).collect()
}

/// Says what went wrong, with its causes. The items of a list are wrapped.
pub fn error(error: &anyhow::Error) {
    let mut text = String::from("kduel");
    for cause in error.chain().map(ToString::to_string) {
        // An error that ends with what the system said has that as its cause once more.
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    say(&with_wrapped_items(&text));
}

fn with_wrapped_items(text: &str) -> String {
    let wrapped = |line: &str| match line.starts_with("  - ") && line.is_ascii() {
        true => ::report::wrap(line, ::report::WIDTH, 4),
        // One sentence is for the terminal to wrap, and names of files stay as they are.
        false => vec![line.into()],
    };
    text.lines().flat_map(wrapped).collect::<Vec<String>>().join("\n")
}

/// Whether results may be coloured.
pub fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether somebody watches standard error.
pub fn watched() -> bool {
    io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_said_elsewhere_steers_the_terminal() {
        assert_eq!(plain("a\x1b[31m b\r\n\tc \u{e4}\u{9b}2J"), "a?[31m b?\n\tc \u{e4}?2J");
    }

    #[test]
    fn items_of_a_list_are_wrapped_and_nothing_else() {
        let long = "word ".repeat(40);
        let text = with_wrapped_items(&format!("kduel: {long}:\n  - {long}\n  - short"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].len() > 200 && lines[1..].iter().all(|line| line.len() <= 100), "{text}");
        assert!(lines[2].starts_with("    word") && lines[lines.len() - 1] == "  - short", "{text}");
    }
}
