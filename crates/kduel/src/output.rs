//! What goes to the two streams: results to standard output, everything else to standard error.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

/// Writes a result.
///
/// # Errors
/// When standard output cannot be written; [`is_closed_pipe`] tells a reader that has seen enough.
pub fn result(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Says something beside the result.
pub fn say(text: &str) {
    // Whoever closes standard error does not want to hear.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says what went wrong, with its causes.
pub fn error(error: &anyhow::Error) {
    say(&format!("kduel: {error:#}"));
}

/// Whether the error is only that the reader of standard output has gone.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    })
}

/// Whether results may be coloured.
pub fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether somebody watches standard error.
pub fn watched() -> bool {
    io::stderr().is_terminal()
}
