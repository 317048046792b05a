use crate::runner::Runner;
use crate::suite::Suite;
use anyhow::{Context as _, ensure};
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

/// How the names of packages begin that hold a part of a kernel: its image, its configuration, its modules. What
/// `kernel=` reads first comes first.
const PARTS: [&str; 4] = ["linux-binary-", "linux-image-", "linux-base-", "linux-modules-"];

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
fn download(suite: &str, package: &str, to: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let runner = Runner { dry: false };
    let lists = Suite::open(suite, &to.join("apt").join(suite), &runner)?;
    let names = parts(&lists.resolve(package, &PARTS)?);
    ensure!(!names.is_empty(), "{package} of {suite} brings no kernel");
    lists.download(&names, &to.join(suite), &runner)
}

/// The packages that hold something: those with a version in their name, and without a linux-image that only brings the
/// others.
fn parts(names: &[String]) -> Vec<String> {
    let of = |part: &'static str| {
        names.iter().filter(move |name| {
            name.strip_prefix(part)
                .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
        })
    };
    let [binary, image, ..] = PARTS;
    let is_split = of(binary).next().is_some();
    PARTS.into_iter().filter(|part| !(is_split && *part == image)).flat_map(of).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_that_hold_nothing_are_left_out() {
        let parts = |names: &[&str]| parts(&names.iter().map(ToString::to_string).collect::<Vec<String>>());
        assert_eq!(
            parts(&["linux-image-cloud-amd64", "linux-image-6.12-cloud-amd64"]),
            ["linux-image-6.12-cloud-amd64"]
        );
        let split =
            ["linux-base-7.3-amd64", "linux-base-amd64", "linux-image-7.3-amd64", "linux-binary-7.3-amd64"];
        assert_eq!(parts(&split), ["linux-binary-7.3-amd64", "linux-base-7.3-amd64"]);
        assert!(parts(&["linux-image-amd64"]).is_empty());
    }
}
