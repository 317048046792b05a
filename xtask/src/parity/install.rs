//! Brings the originals that Debian has.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

/// Installs those of `packages` that are not there, where this is root on Debian. Returns a sentence for each that is
/// still missing.
pub(super) fn missing<'a>(packages: impl Iterator<Item = &'a str>) -> Vec<String> {
    let absent: BTreeSet<&str> = packages.filter(|package| !installed(package)).collect();
    if absent.is_empty() {
        return Vec::new();
    }
    let quietly = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Whether it helped is looked at below.
        let _ = command.status();
    };
    quietly(&["update", "-qq"]);
    for package in &absent {
        quietly(&["install", "-y", "-qq", package]);
    }
    let still = absent.into_iter().filter(|package| !installed(package));
    still
        .map(|package| format!("{package} is not installed and could not be; its duels are left out"))
        .collect()
}

fn installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${Status}", package]).stderr(Stdio::null());
    query.output().is_ok_and(|output| output.stdout == b"install ok installed")
}
