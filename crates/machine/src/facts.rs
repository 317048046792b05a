//! Everything about a machine and its kernel that could explain a difference.

mod cpu;
mod guest;
mod kernel;
mod limits;
mod memory;
mod process;
mod settings;

use crate::{Root, cpus, settled_clocksource};
use experiment::Facts;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Reads all facts. A fact that this kernel does not have, or that this user may not see, is absent.
pub fn facts(root: &Root) -> Facts {
    let mut facts = Facts {
        hostname: line(root, "proc/sys/kernel/hostname"),
        architecture: architecture(root),
        clocksource: settled_clocksource(root),
        ..Facts::default()
    };
    settings::read(root, &mut facts);
    kernel::read(root, &mut facts);
    cpu::read(root, cpus::online(root).ok().as_ref(), &mut facts);
    memory::read(root, &mut facts);
    guest::read(root, &mut facts);
    limits::read(root, &mut facts);
    process::read(root, &mut facts);
    facts
}

fn architecture(root: &Root) -> Option<String> {
    let of_this = || rustix::system::uname().machine().to_str().ok().map(str::to_string);
    line(root, "proc/sys/kernel/arch").or_else(|| of_this().filter(|_| root.is_real()))
}

/// The text of a file, unless it is empty.
fn line(root: &Root, inside: &str) -> Option<String> {
    root.text(inside).ok().filter(|text| !text.is_empty())
}

/// What a file that holds 0 or 1 says.
fn switch(root: &Root, inside: &str) -> Option<bool> {
    match root.number(inside) {
        Ok(0) => Some(false),
        Ok(1) => Some(true),
        _ => None,
    }
}

/// Several values in one line, each once, in their order: machines are alike in most.
fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// The names of what is in a directory, in alphabetical order; none where there is no such directory.
fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The text of those files of a directory that are wanted and can be read, by name.
fn files(directory: &Path, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let wanted = names(directory).into_iter().filter(|name| wanted(name));
    let text = |name: String| {
        let path = directory.join(&name);
        if !path.is_file() {
            return None;
        }
        Some((name, fs::read_to_string(path).ok()?.trim().to_string()))
    };
    wanted.filter_map(text).collect()
}
