//! The packages of the distribution that a command needs.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

/// Those of `packages` that are not installed, after an attempt to install them where this is root on a system with apt.
pub(crate) fn bring<'a>(packages: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let absent: BTreeSet<&str> = packages.into_iter().filter(|package| !installed(package)).collect();
    if absent.is_empty() {
        return Vec::new();
    }
    let quietly = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Whether it helped is looked at below.
        let _ = command.status();
    };
    quietly(&["update", "-qq"]);
    // One by one: a package that cannot be had must not keep the others away.
    for package in &absent {
        quietly(&["install", "-y", "-qq", package]);
    }
    absent.into_iter().filter(|package| !installed(package)).collect()
}

/// The command that installs packages.
pub(crate) fn apt_line(packages: &[&str]) -> String {
    format!("sudo apt-get install {}", packages.join(" "))
}

fn installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${Status}", package]).stderr(Stdio::null());
    query.output().is_ok_and(|output| output.stdout == b"install ok installed")
}
