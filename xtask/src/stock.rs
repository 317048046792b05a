use crate::runner::Runner;
use crate::suite::Suite;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Downloads kernels of the distribution as packages, for `kernel=`.
///
/// Nothing is installed. From Linux 7 on a kernel comes in several packages, which are printed joined, as `kernel=` takes
/// them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Suites of the distribution, such as trixie or sid
    #[arg(required = true, value_name = "SUITE")]
    suites: Vec<String>,
    /// The package of each suite that depends on its newest kernel
    #[arg(long, default_value = "linux-image-cloud-amd64")]
    package: String,
    /// Where the packages go [default: target/stock]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// How the names of packages begin that hold a part of a kernel: its image, its configuration, its modules.
const PARTS: [&str; 4] = ["linux-image-", "linux-binary-", "linux-base-", "linux-modules-"];

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let to = std::path::absolute(args.to.clone().unwrap_or_else(|| root.join("target/stock")))?;
    for suite in &args.suites {
        let files = download(suite, &args.package, &to)?;
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        println!("kernel={}", files.join("+"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The packages of a suite's newest kernel.
pub(crate) fn download(suite: &str, package: &str, to: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let runner = Runner { dry: false };
    let lists = Suite::open(suite, &to.join("apt").join(suite), &runner)?;
    let names = lists.resolve(package, &PARTS)?;
    // The package that was asked for holds nothing itself.
    let names: Vec<String> = names.into_iter().filter(|name| name != package).collect();
    lists.download(&names, &to.join(suite), &runner)
}
