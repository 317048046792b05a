mod build;
mod options;
mod source;
mod tools;

use crate::runner::Runner;
use anyhow::{Context as _, ensure};
use options::Variant;
use source::Source;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Builds small kernels with the features that the reports are about, from the distribution's kernel source package.
///
/// Each goes to a directory of its own, which `kernel=` takes. docs/kernels.md says what it costs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which kernels; several differ in nothing but what they are named for
    #[arg(long = "variant", value_name = "NAME", value_enum, default_value = "features")]
    variants: Vec<Variant>,
    /// A tree of kernel sources, an archive of one, or a source package; otherwise the newest in /usr/src
    #[arg(long, value_name = "PATH", conflicts_with = "suite")]
    source: Option<PathBuf>,
    /// Take the newest source package of this suite of the distribution, such as sid, without installing it
    #[arg(long)]
    suite: Option<String>,
    /// Where the kernels go, each in a directory of its name [default: target/kernels]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Where sources are unpacked and objects go [default: target/kernel-builds]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// How many files are compiled at once; all CPUs if not given
    #[arg(long)]
    jobs: Option<usize>,
    /// Leave out the options that the source does not have
    #[arg(long)]
    partial: bool,
    /// Say what would be done, and what is missing for it
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let place = |given: &Option<PathBuf>, default: &str| {
        std::path::absolute(given.clone().unwrap_or_else(|| root.join("target").join(default)))
    };
    let (to, work) = (place(&args.to, "kernels")?, place(&args.work, "kernel-builds")?);
    let runner = Runner { dry: args.dry_run };
    // All that is missing is told at once, not one after the other.
    let source = Source::find(args.source.as_deref(), args.suite.as_deref());
    let tools = tools::check();
    let source = match (source, tools) {
        (Ok(source), Ok(())) => source,
        (Err(source), Err(tools)) => anyhow::bail!("{source:#}\nand {tools:#}"),
        (Err(error), _) => return Err(error),
        (Ok(source), Err(tools)) => {
            ensure!(args.dry_run, "{tools:#}");
            eprintln!("{tools:#}");
            source
        }
    };
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    if !args.dry_run {
        fs::create_dir_all(&work).with_context(|| work.display().to_string())?;
    }
    let tree = source.unpack(&work, &runner)?;
    for variant in &args.variants {
        let (source, work, to, runner) = (tree.as_path(), work.as_path(), to.as_path(), &runner);
        let partial = args.partial;
        let to = build::Build { variant: *variant, source, work, to, jobs, partial, runner }.run()?;
        if args.dry_run {
            continue;
        }
        let kernel = targets::kernel::open(&to.display().to_string())?;
        let modules = kernel.modules.closure(&["locktorture"])?.len();
        let release = kernel.release.context("the image does not say its release")?;
        println!("kernel={}  # {release}, with {modules} modules for locktorture", to.display());
    }
    Ok(ExitCode::SUCCESS)
}
