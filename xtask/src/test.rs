use crate::{packages, stock};
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Runs all tests, and says which could not run here, and why.
///
/// On Debian as root it first installs what tests need that are otherwise skipped: the original programs, QEMU, an ssh
/// server.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Install nothing
    #[arg(long)]
    no_install: bool,
    /// What `cargo test` is given besides --workspace, such as `-p kduel`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// Debian's packages, and what the tests that need them are about.
const PACKAGES: &[(&str, &str)] = &[
    ("busybox-static", "reboots of a machine behind ssh"),
    ("cpio", "the archive of a virtual machine against cpio"),
    ("dbench", "tbench against the original"),
    ("fio", "io-uring against the original"),
    ("iperf3", "netperf against iperf3"),
    ("kexec-tools", "reboots of a machine behind ssh"),
    ("linux-perf", "the sched and futex workloads against perf bench"),
    ("openssh-client", "the target ssh"),
    ("openssh-server", "the target ssh"),
    ("qemu-system-x86", "the target vm"),
    ("rt-tests", "hackbench and wakeup-timer against the originals"),
    ("stress-ng", "the workloads that stress-ng has, too"),
    ("sysbench", "the sys workloads against the originals"),
    ("xz-utils", "reboots of a machine behind ssh"),
];

/// The suites whose newest kernels are booted and compared: one before Linux 7, one from then on.
const SUITES: [&str; 2] = ["trixie", "trixie-backports"];

/// Where the kernels are that some tests boot, seen from the workspace.
const KERNELS: &str = "../shared/kernels";

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if !args.no_install {
        let missing = packages::bring(PACKAGES.iter().map(|(package, _)| *package));
        for (package, about) in PACKAGES.iter().filter(|(package, _)| missing.contains(package)) {
            eprintln!("{package} is not installed and could not be: no tests of {about}");
        }
        if !missing.is_empty() {
            eprintln!("to run them: {}", packages::apt_line(&missing));
        }
        if let Err(error) = stock::bring(&SUITES) {
            eprintln!("no stock kernels, so no tests of them: {error:#}");
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    if !root.join(KERNELS).is_dir() {
        eprintln!(
            "{KERNELS} is not there: no tests of its kernels; docs/kernels.md says how to build and get some"
        );
    }
    let which =
        if args.arguments.is_empty() { vec!["--workspace".to_string()] } else { args.arguments.clone() };
    let mut cargo = Command::new(env!("CARGO"))
        .arg("test")
        .args(&which)
        .args(["--", "--show-output"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo does not start")?;
    let output = cargo.stdout.take().context("cargo has no output")?;
    let mut output_of_tests = Output::default();
    let mut stdout = std::io::stdout().lock();
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if output_of_tests.shows(&line) {
            writeln!(stdout, "{line}")?;
        }
    }
    let status = cargo.wait()?;
    for (why, tests) in &output_of_tests.skipped {
        writeln!(stdout, "not run: {} ({why})", tests.join(", "))?;
    }
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// What `cargo test -- --show-output` prints, less what tests that passed have printed.
#[derive(Default)]
struct Output {
    in_successes: bool,
    /// The test whose output is read.
    test: String,
    /// Why tests were skipped, and which.
    skipped: BTreeMap<String, Vec<String>>,
}

impl Output {
    /// Takes a line; whether it is one to show.
    fn shows(&mut self, line: &str) -> bool {
        if line == "successes:" {
            self.in_successes = true;
        } else if line == "failures:" || line.starts_with("test result:") {
            self.in_successes = false;
        }
        if !self.in_successes {
            return true;
        }
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.test = name.into();
        } else if let Some(why) = line.strip_prefix("skipped: ") {
            self.skipped.entry(why.into()).or_default().push(self.test.clone());
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_gathered_and_failures_are_shown() {
        let text = "\
running 3 tests
test one ... ok
test two ... FAILED

successes:

---- one stdout ----
some words
skipped: no QEMU here

---- other stdout ----
skipped: no QEMU here

successes:
    one
    other

failures:

---- two stdout ----
skipped: this is what a failure says
test result: FAILED. 2 passed; 1 failed
";
        let mut output = Output::default();
        let shown: Vec<&str> = text.lines().filter(|line| output.shows(line)).collect();
        assert_eq!(
            output.skipped,
            BTreeMap::from([("no QEMU here".into(), vec!["one".into(), "other".into()])])
        );
        assert!(!shown.contains(&"some words"), "{shown:?}");
        assert!(shown.contains(&"skipped: this is what a failure says"), "{shown:?}");
        assert_eq!(
            (shown[0], shown[shown.len() - 1]),
            ("running 3 tests", "test result: FAILED. 2 passed; 1 failed")
        );
    }
}
