//! The command itself, built and run.

use anyhow::{Context as _, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs `kduel run ARGS` with its runs under `home` and gives its report.
pub(crate) fn duel(kduel: &Path, home: &Path, args: &[&str]) -> anyhow::Result<Value> {
    let output = Command::new(kduel)
        .args(["run", "--format", "json"])
        .args(args)
        .env("KDUEL_HOME", home)
        .stderr(Stdio::piped())
        .output()
        .context("kduel does not start")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kduel run {}: {}: {}", args.join(" "), output.status, said.trim_end());
    serde_json::from_slice(&output.stdout).context("the report is not JSON")
}

/// Builds the release binary and gives its path.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--release", "-p", "kduel", "--message-format", "json"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not start")?;
    ensure!(output.status.success(), "cargo build: {}", output.status);
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut executables = messages.lines().filter_map(|line| {
        serde_json::from_str::<Value>(line).ok()?["executable"].as_str().map(PathBuf::from)
    });
    executables.next_back().context("cargo built no executable")
}
