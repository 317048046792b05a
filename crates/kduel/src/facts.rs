//! `kduel facts`: what this machine and its kernel are.

use crate::diff::Form;
use crate::{Outcome, output};
use anyhow::Context as _;
use experiment::Facts;
use machine::Root;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// text or json; json keeps the options of the kernel, too, and is what `kduel diff` takes
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Form,
}

/// `kduel facts`.
///
/// # Errors
/// When they cannot be written.
pub fn facts(args: &Args) -> anyhow::Result<Outcome> {
    let facts = machine::facts(&Root::real());
    output::result(&match args.format {
        Form::Text => output::plain(&in_words(&facts)),
        Form::Json => serde_json::to_string_pretty(&facts).context("facts have no JSON form")?,
    })?;
    Ok(Outcome::Done)
}

/// Every fact, a line each.
pub fn in_words(facts: &Facts) -> String {
    let mut out: String = facts.rows().iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    if let Some(config) = &facts.config {
        let options = match &config.options {
            Some(options) => format!("{} set, from {}", options.len(), config.from),
            None => format!("those of {}, as above", config.from),
        };
        out.push_str(&format!("kernel options: {options} (checksum {})\n", config.id));
    }
    out
}
