//! The command: it parses, calls and prints. Everything else lives in the crates below it.

mod ask;
mod diff;
mod doctor;
mod facts;
mod import;
mod list;
mod output;
mod progress;
mod report;
mod reproduce;
mod resume;
mod run;
mod serve;
mod session;
mod show;
mod target;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Pits kernels, settings and locks against each other on the workloads that kernel scheduling and locking
/// developers trust, and says what changed, by how much, and whether it is noise.
///
/// Start with `kduel run`: a duel of locks on this machine that takes less than a minute.
#[derive(Debug, Parser)]
#[command(name = "kduel", version, max_term_width = 100, after_help = EXIT_STATUS)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUS: &str = "Exit status: 0 done, 1 a regression with --fail-on regression, 2 an error or a run \
                           of which every trial is missing, 130 interrupted.\nRuns live in $KDUEL_HOME/runs, by \
                           default under the XDG data directory.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a duel and report it; without arguments, the built-in quickstart
    Run(run::Args),
    /// Report a run, also one that was interrupted or still goes on
    Report(report::Args),
    /// List workloads, locks, runs, report styles or debug options
    List(list::Args),
    /// Explain a workload, or say what a run asked and where it stands
    Show(show::Args),
    /// Take up a run that was interrupted
    Resume(resume::Args),
    /// Run again what a run or a report's footer asked, with the same seed
    Reproduce(reproduce::Args),
    /// Say in what two runs, variants, machines, kernels or configurations differ
    Diff(diff::Args),
    /// Say what this machine and its kernel are, for people or for `kduel diff`
    Facts(facts::Args),
    /// Read a published table into a run, to check, re-render or compare it
    Import(import::Args),
    /// Say what this machine can and cannot do, and what closes each gap
    Doctor(doctor::Args),
    /// Run trials for a coordinator (not for people)
    #[command(hide = true)]
    Agent(serve::AgentArgs),
    /// Put back and end what killed runs have left on this machine (not for people: every command does)
    #[command(hide = true)]
    Recover(serve::RecoverArgs),
    /// Run one trial for an agent (not for people)
    #[command(hide = true)]
    Trial,
}

/// How a command ended, when it did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Regression,
    Interrupted,
}

fn main() -> ExitCode {
    if agent::is_init() {
        // The kernel hands words of its command line that it does not know to process 1 as arguments.
        agent::init();
    }
    let outcome = match Cli::parse().command {
        // These are parts of a run, not commands: nothing may stand before what they do.
        Command::Agent(args) => serve::agent(args).context("agent").map(|()| Outcome::Done),
        Command::Trial => agent::run_trial().context("trial").map(|()| Outcome::Done),
        Command::Recover(args) => {
            serve::recover(&args);
            Ok(Outcome::Done)
        }
        command => {
            session::put_back_what_others_left();
            match command {
                Command::Run(args) => run::run(args),
                Command::Report(args) => report::report(&args),
                Command::List(args) => list::list(&args),
                Command::Show(args) => show::show(&args),
                Command::Resume(args) => resume::resume(&args),
                Command::Reproduce(args) => reproduce::reproduce(&args),
                Command::Diff(args) => diff::diff(&args),
                Command::Facts(args) => facts::facts(&args),
                Command::Import(args) => import::import(&args),
                Command::Doctor(args) => doctor::doctor(&args),
                Command::Agent(_) | Command::Trial | Command::Recover(_) => Ok(Outcome::Done),
            }
        }
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Regression) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(error) => {
            output::error(&error);
            ExitCode::from(2)
        }
    }
}
