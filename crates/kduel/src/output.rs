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
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says what went wrong, with its causes.
pub fn error(error: &anyhow::Error) {
    let mut text = String::from("kduel");
    for cause in error.chain().map(ToString::to_string) {
        // An error that ends with what the system said has that as its cause once more.
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    say(&text);
}

/// Whether results may be coloured.
pub fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether somebody watches standard error.
pub fn watched() -> bool {
    io::stderr().is_terminal()
}
