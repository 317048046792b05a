//! What building a kernel takes.

use crate::packages::apt_line;
use anyhow::bail;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Programs and the Debian packages that bring them.
const PROGRAMS: &[(&str, &str)] = &[
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("bc", "bc"),
    ("bison", "bison"),
    ("flex", "flex"),
    ("perl", "perl"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
];

/// The header that the kernel's own checker of object files includes.
const HEADER: (&str, &str) = ("gelf.h", "libelf-dev");

/// Fails with the packages that are missing.
pub(super) fn check() -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let mut missing: Vec<(&str, &str)> =
        PROGRAMS.iter().copied().filter(|(program, _)| !is_there(program)).collect();
    // Without a compiler nothing can be said of headers.
    if is_there("gcc") && !includes(HEADER.0) {
        missing.push(HEADER);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    bail!("to build a kernel {} must be there; on Debian: {}", names.join(", "), apt_line(&packages))
}

fn includes(header: &str) -> bool {
    let compiler = Command::new("gcc")
        .args(["-E", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    compiler.is_ok_and(|mut compiler| {
        if let Some(mut input) = compiler.stdin.take() {
            // If it is gone, its status says so.
            let _ = writeln!(input, "#include <{header}>");
        }
        compiler.wait().is_ok_and(|status| status.success())
    })
}
