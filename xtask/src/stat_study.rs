//! How often the statistics are wrong: a simulation of what `docs/statistics.md` claims.
use anyhow::Result;
use limits::Limits;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

mod boots;
mod error_rates;
mod limits;
mod looks;
mod noise;
mod recorded;
mod rules;
mod simulate;

/// Simulate how often the statistics are wrong, and hold them to their limits
///
/// Prints tables of error rates, power and coverage. Ends with 1, and the names of the limits that are broken, when
/// one is.
#[derive(clap::Args)]
pub struct Args {
    /// Seed of the simulation: the same seed prints the same tables
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Instead of simulating, draw from recorded values: a line per block, the baseline's value and its twin's
    #[arg(long, value_name = "FILE", num_args = 1..)]
    recorded: Vec<PathBuf>,
}

/// A study on its way.
pub struct Study {
    seed: u64,
    limits: Limits,
}

impl Study {
    /// Prints one table, as soon as it is there.
    fn print(&self, table: &str) -> Result<()> {
        Ok(writeln!(std::io::stdout(), "{table}")?)
    }
}

/// Runs the study.
pub fn run(args: &Args) -> Result<ExitCode> {
    let started = Instant::now();
    let mut study = Study { seed: args.seed, limits: Limits::default() };
    if !args.recorded.is_empty() {
        for path in &args.recorded {
            recorded::recorded(&mut study, path)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let parts = [
        error_rates::rules,
        error_rates::coverage,
        boots::boots,
        looks::until_decided,
        looks::repeated_tests,
        looks::blocks_needed,
    ];
    for part in parts {
        part(&mut study)?;
    }
    let Limits { held, broken } = &study.limits;
    study.print(&format!(
        "Limits (false positives at most 6 %, coverage 93 to 97 %, power as stated less {} standard errors):\n\
         {held} held, {} broken.",
        limits::ERRORS_ALLOWED,
        broken.len()
    ))?;
    for limit in broken {
        study.print(&format!("broken: {limit}"))?;
    }
    eprintln!("seed {}, {:.0} s", args.seed, started.elapsed().as_secs_f64());
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
