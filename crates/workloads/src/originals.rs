//! The original programs: found, run and read where they are installed, so that kduel's own implementations can be
//! set against them.

pub mod hackbench;
pub mod perf_futex;
mod program;

use crate::shared::{Semantics, semantics, via};
use crate::{Failure, Trial};
use experiment::Params;
pub use program::{Program, die_with_parent, failed_command, last_line, on_path};

/// Which original does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Original {
    /// A program of rt-tests.
    RtTests,
    /// `perf bench`.
    Perf,
}

/// The original that `via` asks for; `None` for kduel's own implementation.
///
/// # Errors
/// When strict semantics are asked of an original, which has its own.
pub fn wanted(params: &Params) -> Result<Option<Original>, Failure> {
    let original = match via(params)? {
        None => return Ok(None),
        Some("rt-tests") => Original::RtTests,
        Some(_) => Original::Perf,
    };
    if semantics(params)? == Semantics::Strict {
        return Err(Failure::Refused(
            "an original program has original semantics; leave out either `via` or `semantics=strict`".into(),
        ));
    }
    Ok(Some(original))
}

/// `perf`, with its version noted in `trial`.
///
/// # Errors
/// When it is not installed.
pub fn perf(trial: &mut Trial) -> Result<Program, Failure> {
    let perf = Program::find("perf", "linux-perf")?;
    let version = perf.run(&["--version"])?;
    trial.note(format!("measured by {}", version.trim()));
    Ok(perf)
}

/// A decimal number as programs print it; its point may be a comma.
pub fn decimal(text: &str) -> Option<f64> {
    text.trim().replace(',', ".").parse().ok().filter(|number: &f64| number.is_finite())
}
