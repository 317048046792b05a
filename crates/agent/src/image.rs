//! The part of a program's file that the kernel and the loader read.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// How much of the file is read to find its segments. Linkers put the table of segments right behind the header.
const HEAD_BYTES: u64 = 4096;
/// Where the header of a 64-bit ELF file says where the sections are, and how many.
const SECTIONS_AT: std::ops::Range<usize> = 0x28..0x30;
const SECTION_COUNTS: std::ops::Range<usize> = 0x3c..0x40;

/// The file of a program up to the end of its last segment, with its section headers forgotten. What stands behind it,
/// symbols and debug information, is most of the file and nothing that it needs to run. A file that is no 64-bit
/// little-endian ELF is taken whole.
///
/// # Errors
/// When the file cannot be read.
pub fn loadable(file: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut bytes)?;
    match end_of_segments(&bytes) {
        Some(end) => {
            file.take(end.saturating_sub(HEAD_BYTES)).read_to_end(&mut bytes)?;
            bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
            for range in [SECTIONS_AT, SECTION_COUNTS] {
                if let Some(field) = bytes.get_mut(range) {
                    field.fill(0);
                }
            }
        }
        None => {
            file.read_to_end(&mut bytes)?;
        }
    }
    Ok(bytes)
}

/// The end of the last segment, if `head` is the start of an ELF file of ours and holds all its program headers.
fn end_of_segments(head: &[u8]) -> Option<u64> {
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?)));
    let table = usize::try_from(word(0x20)?).ok()?;
    let (size, count) = (half(0x36)?, half(0x38)?);
    let mut end = table.checked_add(size * count)? as u64;
    for segment in 0..count {
        let at = table.checked_add(size * segment)?;
        let (offset, length) = (word(at.checked_add(8)?)?, word(at.checked_add(32)?)?);
        end = end.max(offset.checked_add(length)?);
    }
    (count > 0).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    #[test]
    fn what_is_left_of_a_program_runs_and_is_smaller() {
        let own = std::env::current_exe().unwrap();
        let kept = loadable(&own).unwrap();
        assert!((kept.len() as u64) < own.metadata().unwrap().len(), "{}", kept.len());
        let path = std::env::temp_dir().join(format!("kduel-image-{}", std::process::id()));
        std::fs::write(&path, &kept).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let listed = Command::new(&path).arg("--list").output();
        let again = loadable(&path);
        std::fs::remove_file(&path).unwrap();
        let listed = listed.unwrap();
        assert!(listed.status.success(), "{listed:?}");
        assert!(String::from_utf8_lossy(&listed.stdout).contains("what_is_left_of_a_program_runs"));
        assert_eq!(again.unwrap(), kept, "to do it twice changes nothing more, so both have one checksum");
    }

    #[test]
    fn other_files_are_taken_whole() {
        let path = std::env::temp_dir().join(format!("kduel-no-image-{}", std::process::id()));
        let mut torn = b"\x7fELF\x02\x01".to_vec();
        torn.resize(0x30, 0xff);
        for content in [b"#!/bin/sh\n".to_vec(), Vec::new(), torn] {
            std::fs::write(&path, &content).unwrap();
            assert_eq!(loadable(&path).unwrap(), content);
        }
        std::fs::remove_file(&path).unwrap();
        assert!(loadable(&path).is_err());
    }
}
