use crate::runner::Runner;
use crate::suite::Suite;
use anyhow::{Context as _, ensure};
use std::fs;
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
    #[arg(long, default_value = PACKAGE)]
    package: String,
    /// Where the packages go [default: target/stock]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// How the names of packages begin that hold a part of a kernel: its image, its configuration, its modules. What
/// `kernel=` reads first comes first.
const PARTS: [&str; 4] = ["linux-binary-", "linux-image-", "linux-base-", "linux-modules-"];

/// The package that is taken where none is named: the smallest that has all that matters here.
const PACKAGE: &str = "linux-image-cloud-amd64";

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let to = args.to.clone().map_or_else(place, Ok)?;
    for suite in &args.suites {
        println!("kernel={}", download(suite, &args.package, &to)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Where stock kernels go, and where tests look for them.
fn place() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    Ok(root.join("target/stock"))
}

/// Downloads the newest kernels of these suites for the tests, unless they are there.
pub(crate) fn bring(suites: &[&str]) -> anyhow::Result<()> {
    let to = place()?;
    let absent = suites.iter().filter(|suite| !list_of(&to, suite).exists());
    absent.into_iter().try_for_each(|suite| download(suite, PACKAGE, &to).map(drop))
}

/// Downloads the newest kernel of a suite and gives what `kernel=` takes, which is also written down beside it.
fn download(suite: &str, package: &str, to: &Path) -> anyhow::Result<String> {
    let (to, runner) = (std::path::absolute(to)?, Runner { dry: false });
    let lists = Suite::open(suite, &to.join("apt").join(suite), &runner)?;
    let names = parts(&lists.resolve(package, &PARTS)?);
    ensure!(!names.is_empty(), "{package} of {suite} brings no kernel");
    let files = lists.download(&names, &to.join(suite), &runner)?;
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let (kernel, list) = (files.join("+"), list_of(&to, suite));
    fs::write(&list, &kernel).with_context(|| list.display().to_string())?;
    Ok(kernel)
}

fn list_of(to: &Path, suite: &str) -> PathBuf {
    to.join(format!("{suite}.kernel"))
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
