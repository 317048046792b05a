//! Scripts for the shell.

use super::user::{User, failed};
use crate::Failure;
use crate::originals::{die_with_parent, failed_command};
use std::process::{Command, Stdio};

/// Lists a directory at length.
pub fn list(user: &User) -> Result<(), Failure> {
    let printed = sh(user, "ls -l /")?;
    expect(printed.lines().count() > 1, &printed)
}

/// Sorts and counts lines in a pipeline.
pub fn pipeline(user: &User) -> Result<(), Failure> {
    let printed = sh(user, "for word in d b a c d b; do echo $word; done | sort -u | wc -l")?;
    expect(printed.trim() == "4", &printed)
}

/// Counts in a loop, with what the shell has itself.
pub fn script(user: &User) -> Result<(), Failure> {
    let printed = sh(
        user,
        "sum=0; i=1; while [ $i -le 100 ]; do case $i in *5) ;; *) sum=$((sum + i));; esac; i=$((i + 1)); done; echo $sum",
    )?;
    // 1 to 100 without 5, 15, … 95.
    expect(printed.trim() == "4550", &printed)
}

fn sh(user: &User, script: &str) -> Result<String, Failure> {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(&user.directory).stdin(Stdio::null());
    die_with_parent(&mut command);
    let output = command.output().map_err(failed("the shell could not be started"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    match failed_command("sh", output.status, &stdout, &stderr) {
        None => Ok(stdout),
        Some(failure) => Err(failure),
    }
}

fn expect(holds: bool, printed: &str) -> Result<(), Failure> {
    match holds {
        true => Ok(()),
        false => Err(Failure::Invariant(format!("the script printed `{}`", printed.trim()))),
    }
}
