//! Which kernel it is, how it was built and how it was started.

use super::line;
use crate::{Root, running_config};
use experiment::{Facts, preemption};
use std::fs;

/// The letters of the kernel's taints, by their bits.
const TAINTS: &[u8] = b"PFSRMBUDAWCIOELKXTNJ";

/// The type of the ELF note that holds a build id.
const BUILD_ID: u32 = 3;

/// Reads what is known of the kernel. The scheduler's tunables must have been read.
pub(super) fn read(root: &Root, facts: &mut Facts) {
    facts.kernel_release = line(root, "proc/sys/kernel/osrelease");
    facts.kernel_version = line(root, "proc/sys/kernel/version");
    facts.kernel_build_id = fs::read(root.path("sys/kernel/notes")).ok().and_then(|notes| build_id(&notes));
    facts.kernel_compiler = line(root, "proc/version").and_then(|text| compiler(&text));
    facts.kernel_taint = root.number("proc/sys/kernel/tainted").ok().map(taint);
    facts.command_line = line(root, "proc/cmdline");
    let version = facts.kernel_version.as_deref().unwrap_or_default();
    let command_line = facts.command_line.as_deref().unwrap_or_default();
    facts.preemption = match facts.sched_debug.get("preempt") {
        // A real-time kernel selects between the same words and is still one.
        Some(selected) if is_real_time(version) => {
            Some(if selected == "lazy" { "rt lazy".into() } else { "rt".into() })
        }
        Some(selected) => Some(selected.clone()),
        None => preemption(version, command_line, None),
    };
    if let Some((config, from)) = running_config(root) {
        facts.take_config(config, &from);
    }
}

fn is_real_time(version: &str) -> bool {
    version.split_whitespace().any(|word| word == "PREEMPT_RT")
}

/// The build id among the ELF notes of the kernel: name size, value size and type, then name and value, each padded to
/// four bytes.
fn build_id(notes: &[u8]) -> Option<String> {
    let mut rest = notes;
    loop {
        let (head, tail) = rest.split_at_checked(12)?;
        let word = |at: usize| Some(u32::from_ne_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let (name_bytes, value_bytes, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let (name, tail) = tail.split_at_checked(name_bytes.checked_next_multiple_of(4)?)?;
        if kind == BUILD_ID && name.starts_with(b"GNU\0") {
            return Some(tail.get(..value_bytes)?.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        // The last value may stand without its padding.
        rest = tail.get(value_bytes.checked_next_multiple_of(4)?..)?;
    }
}

/// The compiler in /proc/version: what stands in the second pair of parentheses, which may hold further ones.
fn compiler(version: &str) -> Option<String> {
    let (_, rest) = version.split_once(") (")?;
    let mut depth = 1_u32;
    for (at, character) in rest.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(rest[..at].to_string());
        }
    }
    None
}

fn taint(bits: u64) -> String {
    if bits == 0 {
        return "none".into();
    }
    let letter = |bit: usize| match TAINTS.get(bit) {
        Some(letter) => char::from(*letter).to_string(),
        None => format!(" bit {bit}"),
    };
    (0..64).filter(|bit| bits >> bit & 1 == 1).map(letter).collect::<String>().trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, value: &[u8]) -> Vec<u8> {
        let padded = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let numbers = [name.len() as u32, value.len() as u32, kind];
        let mut note: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        note.extend(padded(name));
        note.extend(padded(value));
        note
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let mut notes = note(b"Xen\0", 6, b"linux");
        notes.extend(note(b"Xen\0", BUILD_ID, b"not this"));
        notes.extend(note(b"GNU\0", BUILD_ID, &[0x48, 0xdc, 0x0a]));
        assert_eq!(build_id(&notes).as_deref(), Some("48dc0a"));
        for damaged in [&notes[..7], &notes[..30], b"", &[0xff; 40]] {
            assert_eq!(build_id(damaged), None);
        }
    }

    #[test]
    fn the_compiler_is_named_whole() {
        let version = "Linux version 6.18.44 (builder@host) (gcc (GCC) 15.3.0, GNU ld (GNU Binutils) 2.46) #1 SMP today";
        assert_eq!(compiler(version).as_deref(), Some("gcc (GCC) 15.3.0, GNU ld (GNU Binutils) 2.46"));
        assert_eq!(compiler("Linux version 2.0 (me@host) #1"), None);
        assert_eq!(compiler("Linux (a) (gcc (GCC"), None);
    }

    #[test]
    fn taints_are_the_letters_of_the_kernel_log() {
        assert_eq!(taint(0), "none");
        assert_eq!(taint(1 << 12 | 1 << 13), "OE");
        assert_eq!(taint(1 << 9 | 1 << 63), "W bit 63");
    }
}
