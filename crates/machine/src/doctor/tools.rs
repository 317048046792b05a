//! Programs that kduel starts.

use super::Finding;
use crate::Root;
use crate::programs::{executable_in, on_path};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where programs are in a tree, whose PATH nobody knows.
const PLACES: &[&str] = &["usr/local/bin", "usr/bin", "bin", "usr/local/sbin", "usr/sbin", "sbin"];

/// A program by its name and what each family of distributions calls the package that brings it.
struct Tool {
    ability: &'static str,
    program: &'static str,
    /// For Debian, Ubuntu, Fedora, Arch and SUSE.
    packages: [&'static str; 5],
    /// What is lost without it.
    without: &'static str,
    version_word: &'static str,
}

const IS_X86: bool = cfg!(target_arch = "x86_64");

/// The emulator for guests of this machine's own kind.
const QEMU: Tool = Tool {
    ability: "QEMU",
    program: match () {
        () if IS_X86 => "qemu-system-x86_64",
        () if cfg!(target_arch = "aarch64") => "qemu-system-aarch64",
        () => "qemu-system-riscv64",
    },
    packages: match IS_X86 {
        true => ["qemu-system-x86", "qemu-system-x86", "qemu-system-x86-core", "qemu-base", "qemu-x86"],
        false => ["qemu-system", "qemu-system", "qemu-kvm", "qemu-full", "qemu"],
    },
    without: "no kernel can be booted in a VM",
    version_word: "--version",
};
const SSH: Tool = Tool {
    ability: "ssh",
    program: "ssh",
    packages: ["openssh-client", "openssh-client", "openssh-clients", "openssh", "openssh-clients"],
    without: "no other machine can be a target",
    version_word: "-V",
};
const PERF: Tool = Tool {
    ability: "perf",
    program: "perf",
    packages: ["linux-perf", "linux-tools-generic", "perf", "perf", "perf"],
    without: "`via=perf` cannot set its benches beside kduel's",
    version_word: "--version",
};

/// Whether guests can be started.
pub(super) fn qemu(root: &Root) -> Finding {
    find(root, &QEMU)
}

/// The other programs.
pub(super) fn others(root: &Root) -> Vec<Finding> {
    [SSH, PERF].iter().map(|tool| find(root, tool)).collect()
}

fn find(root: &Root, tool: &Tool) -> Finding {
    match place(root, tool.program) {
        Some(path) => match root.is_real().then(|| version(&path, tool.version_word)).flatten() {
            Some(version) => Finding::ok(tool.ability, format!("{}: {version}", path.display())),
            None if root.is_real() => {
                Finding::limited(tool.ability, format!("{} does not say its version", path.display()))
                    .command(install(root, tool.packages))
            }
            None => Finding::ok(tool.ability, path.display().to_string()),
        },
        None => Finding::no(tool.ability, format!("{} is not there: {}", tool.program, tool.without))
            .command(install(root, tool.packages)),
    }
}

fn place(root: &Root, program: &str) -> Option<PathBuf> {
    match root.is_real() {
        true => on_path(program),
        false => executable_in(PLACES.iter().map(|place| root.path(place)), program),
    }
}

/// The first line that a program says about itself. ssh says it on standard error.
fn version(path: &Path, word: &str) -> Option<String> {
    let output = Command::new(path).arg(word).stdin(Stdio::null()).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let line =
        String::from_utf8_lossy(&said).lines().find(|line| !line.trim().is_empty())?.trim().to_string();
    output.status.success().then_some(line)
}

/// The command that installs a package here.
fn install(root: &Root, [debian, ubuntu, fedora, arch, suse]: [&str; 5]) -> String {
    let release = root.text("etc/os-release").unwrap_or_default();
    let field = |name: &str| release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    // What a distribution descends from stands in ID_LIKE, the nearest first.
    let families = [field("ID"), field("ID_LIKE")].into_iter().flatten();
    let mut families = families.flat_map(|words| words.trim_matches('"').split_whitespace());
    let of_family = |family: &str| match family {
        "debian" => Some(format!("apt-get install {debian}")),
        "ubuntu" => Some(format!("apt-get install {ubuntu}")),
        "fedora" | "rhel" | "centos" => Some(format!("dnf install {fedora}")),
        "arch" => Some(format!("pacman -S {arch}")),
        "suse" | "opensuse" | "sles" => Some(format!("zypper install {suse}")),
        _ => None,
    };
    families.find_map(of_family).unwrap_or_else(|| format!("apt-get install {debian}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_that_of_the_distribution() {
        let installs = |release: &str| {
            let top = tempfile::tempdir().unwrap();
            std::fs::create_dir(top.path().join("etc")).unwrap();
            std::fs::write(top.path().join("etc/os-release"), release).unwrap();
            install(&Root::at(top.path()), PERF.packages)
        };
        assert_eq!(installs("NAME=x\nID=debian\n"), "apt-get install linux-perf");
        assert_eq!(
            installs("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"),
            "apt-get install linux-tools-generic"
        );
        assert_eq!(installs("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"), "dnf install perf");
        assert_eq!(installs("ID=arch\n"), "pacman -S perf");
        assert_eq!(installs("ID=opensuse-leap\nID_LIKE=\"suse opensuse\"\n"), "zypper install perf");
        assert_eq!(installs("IDIOM=arch\n"), "apt-get install linux-perf", "the usual guess");
    }
}
