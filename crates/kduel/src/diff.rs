//! `kduel diff`: what two runs, variants, machines, kernels or configurations differ in.

use crate::{Outcome, output, session};
use analysis::Side;
use anyhow::{Context as _, bail};
use clap::ValueEnum;
use experiment::{Facts, KernelConfig};
use flate2::read::GzDecoder;
use journal::Home;
use machine::Root;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The word for the machine that runs this.
const HERE: &str = "here";
/// A kernel configuration has some hundred KiB, a file of facts less: what is larger is a kernel or nothing that is
/// understood here.
const TEXT_BYTES_MAX: u64 = 8 << 20;

#[derive(Debug, clap::Args)]
#[command(after_help = FORMS)]
pub struct Args {
    /// One side
    a: String,
    /// The other side
    b: String,
    /// text or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Form,
}

/// How `kduel diff` and `kduel facts` print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people
    Text,
    /// One JSON object
    Json,
}

const FORMS: &str = "A side is one of:
  RUN           a run, by its name, the beginning of its name, `latest` or its directory: what was asked, and its
                baseline's machine and kernel
  RUN:VARIANT   the machine and kernel of a variant
  here          this machine
  FILE          facts that `kduel facts --format json` has saved; a kernel configuration, also a packed one; a
                kernel, in every form that kernel= takes
  RELEASE       a kernel in /boot, such as 6.12.43-amd64
  installed     the kernel that runs here

Examples:
  kduel diff latest:old latest:new
      Why the two kernels may differ, option by option.
  kduel diff latest:old here
      What has changed on this machine since the run.
  kduel diff .config /boot/config-6.12.43-amd64";

/// `kduel diff`.
///
/// # Errors
/// When a side cannot be read or is nothing that is known.
pub fn diff(args: &Args) -> anyhow::Result<Outcome> {
    let home = session::home().ok();
    let diff = analysis::diff(side(home.as_ref(), &args.a)?, side(home.as_ref(), &args.b)?);
    output::result(&match args.format {
        Form::Text => report::diff_text(&diff),
        Form::Json => report::diff_json(&diff)?,
    })?;
    Ok(Outcome::Done)
}

fn side(home: Option<&Home>, given: &str) -> anyhow::Result<Side> {
    if given == HERE {
        return Ok(Side::of_machine(given, machine::facts(&Root::real())));
    }
    if given == targets::kernel::INSTALLED {
        return of_kernel(given);
    }
    let path = Path::new(given);
    if path.is_file() {
        return of_file(given);
    }
    let run = match home {
        Some(home) => home.read(given).map_err(anyhow::Error::from),
        None => Err(anyhow::anyhow!("there is no home of runs")),
    };
    let no_run = match run {
        Ok(run) => return Ok(Side::of_run(given, &run)),
        Err(error) => error,
    };
    if path.is_dir() {
        return of_kernel(given)
            .with_context(|| format!("{given} is neither a run ({no_run:#}) nor a directory with a kernel"));
    }
    if let Some((run, variant)) = given.rsplit_once(':')
        && let Some(Ok(found)) = home.map(|home| home.read(run))
    {
        return Side::of_variant(given, &found, variant).with_context(|| {
            let names = found.header.experiment.variants.iter().map(|variant| variant.name.as_str());
            let names: Vec<&str> = names.collect();
            format!("run {run} has no variant `{variant}`; it has {}", names.join(", "))
        });
    }
    if let Some(side) = of_release(given) {
        return side;
    }
    // Several packages of one kernel are joined with `+`.
    if given.contains(".deb+") || given.contains(".rpm+") {
        return of_kernel(given);
    }
    bail!(
        "`{given}` is no run ({no_run:#}), no RUN:VARIANT, no file, and no release of a kernel in /boot; `kduel list \
         runs` shows the runs, `here` stands for this machine"
    )
}

/// A kernel in /boot by its release. Its image may be for root only, while everybody may read its configuration.
fn of_release(given: &str) -> Option<anyhow::Result<Side>> {
    let files = [format!("/boot/vmlinuz-{given}"), format!("/boot/config-{given}")];
    let mut read = files
        .iter()
        // A release is no path.
        .filter(|file| !given.contains('/') && Path::new(file).is_file())
        .map(|file| of_file(file).map(|side| Side { name: given.into(), ..side }));
    let first = read.next()?;
    Some(first.or_else(|error| read.next().and_then(Result::ok).ok_or(error)))
}

/// A file by what it holds: facts, a configuration, or else a kernel.
fn of_file(given: &str) -> anyhow::Result<Side> {
    let Some(text) = text_of(given) else { return of_kernel(given) };
    if text.trim_start().starts_with('{') {
        let facts: Facts = serde_json::from_str(&text)
            .with_context(|| format!("{given} holds no facts as `kduel facts --format json` writes them"))?;
        return Ok(Side::of_machine(given, facts));
    }
    if !KernelConfig::is_in(&text) {
        bail!("{given} is a text without facts of a machine and without a line such as CONFIG_SMP=y");
    }
    Ok(Side::of_config(given, KernelConfig::parse(&text)))
}

/// The text of a file, unpacked if it is packed. `None` where it is none.
fn text_of(given: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(given).ok()?.take(TEXT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let packed = std::mem::take(&mut bytes);
        GzDecoder::new(packed.as_slice()).take(TEXT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    }
    String::from_utf8(bytes).ok()
}

fn of_kernel(given: &str) -> anyhow::Result<Side> {
    let kernel = targets::kernel::open(given)?;
    let config = kernel.config.as_deref().map(|text| (KernelConfig::parse(text), given.to_string()));
    Ok(Side::of_kernel(given, kernel.release, kernel.build, config))
}
