use experiment::AskError;
use journal::JournalError;
use targets::TargetError;
use thiserror::Error;

/// After so many trials in a row that cost their agent, or boots in a row that failed, the run stops: something is
/// wrong with the machine.
pub(crate) const LOST_IN_A_ROW: u32 = 3;

/// What stops a run. What was done until then is in the journal.
#[derive(Debug, Error)]
pub enum DuelError {
    /// The experiment of the header cannot be planned.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Knobs that cannot be turned and work that cannot be done, found before the first trial.
    #[error("nothing was run, because this cannot be done here:\n{}", list(problems))]
    Impossible {
        /// One sentence each, with the names of the variants that have it, unless all have.
        problems: Vec<String>,
    },
    /// Variants whose machines or kernels differ so much that nothing is compared, found before the first trial.
    #[error("nothing was run: {why}")]
    Refused {
        /// What differs, and how to compare all the same.
        why: String,
    },
    /// A variant that could not be booted before the first trial.
    #[error("variant {variant} cannot be booted: {error}")]
    Unbootable {
        /// The variant.
        variant: String,
        /// What became of its boot.
        #[source]
        error: TargetError,
    },
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No agent can be had.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// One agent after the other died.
    #[error("{LOST_IN_A_ROW} agents died one after the other; the last one: {last}")]
    AgentsLost {
        /// What became of the last.
        last: String,
    },
    /// One boot after the other failed.
    #[error("{LOST_IN_A_ROW} boots failed one after the other; the last one, of variant {variant}: {error}")]
    BootsLost {
        /// The variant of the last.
        variant: String,
        /// What became of it.
        #[source]
        error: TargetError,
    },
    /// A variant's kernel was replaced while the run lasted.
    #[error(
        "the kernel of variant {variant} is no longer the one that the run began with: then `{then}`, now `{now}`; put \
         it back and resume, or start a new run"
    )]
    OtherKernel {
        /// The variant.
        variant: String,
        /// Release and version of the kernel that the run began with.
        then: String,
        /// Those of the kernel that came up now.
        now: String,
    },
}

fn list(problems: &[String]) -> String {
    problems.iter().map(|problem| format!("  - {problem}")).collect::<Vec<String>>().join("\n")
}
