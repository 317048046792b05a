//! `cargo run -p xtask -- COMMAND`: what the project needs beyond cargo. One file per command.
use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod honesty;
mod kduel;
mod kernel;
mod packages;
mod parity;
mod runner;
mod stat_study;
mod stock;
mod suite;
mod test;

/// What the project needs beyond cargo.
#[derive(Parser)]
#[command(name = "xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Honesty(honesty::Args),
    Kernel(kernel::Args),
    Parity(parity::Args),
    StatStudy(stat_study::Args),
    Stock(stock::Args),
    Test(test::Args),
}

/// A command ends with its exit status; an error ends with 2.
fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Honesty(args) => honesty::run(&args),
        Command::Kernel(args) => kernel::run(&args),
        Command::Parity(args) => parity::run(&args),
        Command::StatStudy(args) => stat_study::run(&args),
        Command::Stock(args) => stock::run(&args),
        Command::Test(args) => test::run(&args),
    };
    result.unwrap_or_else(|error| {
        if closed_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}

/// Whether whoever read our output has seen enough of it: `| head` is no error.
fn closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
