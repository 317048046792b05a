//! A kduel with a home of its own.

// Each test binary uses its own part of this.
#![allow(dead_code, clippy::expect_used)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A duel that takes no time.
pub const SHORT: &str =
    "run global-lock --set total=2000 --set settle=0 -V tas:lock=tas -V mcs:lock=mcs --points 1,2";

/// A duel of eight blocks in which the variant `slow` is far slower.
pub const PLANTED: &str =
    "run global-lock --set total=20000 --set settle=0 --points 1 --blocks 8 -V plain -V slow:think=200";

/// The words of a command line without quoting, and some more.
pub fn words<'a>(line: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    line.split_whitespace().chain(more.iter().copied()).collect()
}

/// The real binary with an empty home.
pub struct Kduel {
    home: TempDir,
}

impl Kduel {
    pub fn new() -> Kduel {
        Kduel { home: TempDir::new().expect("a temporary directory") }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The command, not yet started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kduel"));
        command.args(args).env("KDUEL_HOME", self.home.path()).stdin(Stdio::null());
        command
    }

    pub fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("kduel starts")
    }

    /// Standard output of a command that must succeed.
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "kduel {args:?}: {}\n{}", output.status, stderr(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Standard error of a command that must fail with status 2.
    pub fn fails(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert_eq!(output.status.code(), Some(2), "kduel {args:?}\n{}", stderr(&output));
        assert!(output.stdout.is_empty(), "an error goes to standard error only");
        stderr(&output)
    }

    /// The latest run's report as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.ok(&["report", "--format", "json"])).expect("valid JSON")
    }

    /// The records of the latest run.
    pub fn records(&self) -> Vec<serde_json::Value> {
        self.records_of(&self.home().join("latest"))
    }

    pub fn records_of(&self, directory: &Path) -> Vec<serde_json::Value> {
        let journal = std::fs::read_to_string(directory.join("journal.jsonl")).expect("a journal");
        // What follows the last newline is being written.
        let whole = journal.rfind('\n').map_or("", |end| &journal[..end]);
        whole
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).expect("JSON lines")["record"].clone()
            })
            .collect()
    }

    /// The trials of the latest run.
    pub fn trials(&self) -> Vec<serde_json::Value> {
        self.records().into_iter().filter(|record| record["kind"] == "trial").collect()
    }

    /// Writes a file beside the runs and gives its path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

/// What was said, however it was broken into lines.
pub fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The reason why each missing trial is missing.
pub fn reasons(trials: &[serde_json::Value]) -> Vec<(String, String)> {
    trials
        .iter()
        .filter(|trial| trial["outcome"]["state"] == "missing")
        .map(|trial| {
            let text = |key: &str| trial["outcome"][key].as_str().unwrap_or_default().to_string();
            (text("failure"), text("why"))
        })
        .collect()
}

/// Processes whose environment carries the mark of kduel's trials under this home.
pub fn strays(home: &Path) -> Vec<u32> {
    let mark = format!("KDUEL_HOME={}\0", home.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let marked = environment.windows(mark.len()).any(|window| window == mark.as_bytes());
        // A zombie has no environment left, so it never counts.
        if marked && pid != std::process::id() {
            found.push(pid);
        }
    }
    found
}

/// The sysctl that tests turn.
pub const STAT_INTERVAL: &str = "/proc/sys/vm/stat_interval";

/// Waits until no other test on this machine turns [`STAT_INTERVAL`]; it is ours until the file is dropped.
pub fn alone_with_the_sysctl() -> File {
    let path = std::env::temp_dir().join(format!("kduel-tests-{}.lock", rustix::process::geteuid().as_raw()));
    let file = File::options().create(true).append(true).open(path).expect("a file to lock");
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("the lock");
    file
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A kernel of the founders' to boot, unless this machine cannot: then a word on why.
pub fn test_kernel(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/kernels").join(name);
    if Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: no qemu-system-x86_64 here (Debian: apt install qemu-system-x86)");
        return None;
    }
    if !path.is_file() {
        println!("skipped: no test kernel {}", path.display());
        return None;
    }
    Some(path)
}
