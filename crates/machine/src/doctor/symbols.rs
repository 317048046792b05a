//! The names of the kernel's functions.

use super::Finding;
use crate::Root;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

const ABILITY: &str = "kernel symbols";
const TABLE: &str = "proc/kallsyms";
const WITHOUT: &str =
    "Profiles name no function of the kernel; boot one that was built with CONFIG_KALLSYMS.";
/// As many lines tell whether addresses are shown. On some machines the first symbols stand at address 0.
const LINES_LOOKED_AT: usize = 2000;

/// Whether this user sees the addresses of the kernel's functions, so that profiles can name them.
pub(super) fn finding(root: &Root) -> Finding {
    let Ok(file) = File::open(root.path(TABLE)) else {
        return Finding::no(ABILITY, "there is no /proc/kallsyms").advice(WITHOUT);
    };
    let mut lines = BufReader::new(file).lines().map_while(Result::ok).take(LINES_LOOKED_AT).peekable();
    if lines.peek().is_none() {
        return Finding::no(ABILITY, "/proc/kallsyms is empty").advice(WITHOUT);
    }
    let is_shown = |line: String| {
        let address = line.split(' ').next().and_then(|word| u64::from_str_radix(word, 16).ok());
        address.is_some_and(|address| address != 0)
    };
    if lines.any(is_shown) {
        return Finding::ok(ABILITY, "/proc/kallsyms shows addresses");
    }
    let restrict = root.number("proc/sys/kernel/kptr_restrict").ok();
    let hidden = |why: &str| Finding::limited(ABILITY, format!("/proc/kallsyms hides every address: {why}"));
    match restrict {
        // Without a restriction of its own, the kernel shows them to those who may watch it.
        Some(0) => {
            hidden("this user may not watch the kernel").command("sysctl -w kernel.perf_event_paranoid=1")
        }
        Some(level) => {
            hidden(&format!("kernel.kptr_restrict is {level}")).command("sysctl -w kernel.kptr_restrict=0")
        }
        None => hidden("the reason is not known").advice("Run as root."),
    }
}

/// Whether the kernel has a function of this name; `None` where it shows no names.
pub(crate) fn has(root: &Root, name: &str) -> Option<bool> {
    let mut any = false;
    for line in BufReader::new(File::open(root.path(TABLE)).ok()?).lines().map_while(Result::ok) {
        any = true;
        if line.split_ascii_whitespace().nth(2) == Some(name) {
            return Some(true);
        }
    }
    any.then_some(false)
}
