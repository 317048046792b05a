//! /etc/ld.so.cache, in which ldconfig notes where libraries are.

/// What the current form begins with. An older form may stand before it.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;

/// The libraries in it that need no special kind of CPU, by name. Whether each is of the right architecture shows when
/// it is opened.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LoaderCache {
    libraries: Vec<(String, String)>,
}

impl LoaderCache {
    /// Reads the cache; one of another form holds nothing.
    pub(super) fn parse(bytes: &[u8]) -> LoaderCache {
        LoaderCache { libraries: entries(bytes).unwrap_or_default() }
    }

    /// Where a library of this name is, the best place first.
    pub(super) fn paths(&self, name: &str) -> impl Iterator<Item = &str> {
        self.libraries.iter().filter(move |(known, _)| known == name).map(|(_, path)| path.as_str())
    }
}

/// The entries are 24 bytes each: flags, the places of name and path from the start of the form on, the oldest kernel,
/// and 8 bytes that are 0 unless the library is for some CPUs only.
fn entries(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let form = &bytes[bytes.windows(MAGIC.len()).position(|window| window == MAGIC)?..];
    let number =
        |at: usize| Some(u32::from_ne_bytes(form.get(at..at.checked_add(4)?)?.try_into().ok()?) as usize);
    let text = |at: usize| {
        let rest = form.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    let count = number(MAGIC.len())?;
    let mut found = Vec::new();
    for entry in 0..count.min(form.len() / ENTRY_BYTES) {
        let at = HEADER_BYTES + entry * ENTRY_BYTES;
        if form.get(at + 16..at + ENTRY_BYTES)? == [0; 8] {
            found.push((text(number(at + 4)?)?, text(number(at + 8)?)?));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache with these libraries, the last of which is for special CPUs.
    fn cache(libraries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((libraries.len() as u32).to_ne_bytes());
        bytes.resize(HEADER_BYTES, 0);
        let mut strings = Vec::new();
        for (place, (name, path)) in libraries.iter().enumerate() {
            let base = HEADER_BYTES + libraries.len() * ENTRY_BYTES;
            bytes.extend(0x303_u32.to_ne_bytes());
            for text in [name, path] {
                bytes.extend(((base + strings.len()) as u32).to_ne_bytes());
                strings.extend(text.as_bytes());
                strings.push(0);
            }
            bytes.extend(0_u32.to_ne_bytes());
            bytes.extend(u64::from(place + 1 == libraries.len()).to_ne_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn libraries_are_found_by_name_and_special_ones_are_not_for_everybody() {
        let form = cache(&[
            ("liba.so.1", "/opt/liba.so.1"),
            ("libb.so", "/lib/libb.so"),
            ("liba.so.1", "/x/liba.so.1"),
        ]);
        // The older form before it does not matter.
        for bytes in [form.clone(), [b"ld.so-1.7.0\0\0\0\0\0".to_vec(), form.clone()].concat()] {
            let cache = LoaderCache::parse(&bytes);
            assert_eq!(cache.paths("liba.so.1").collect::<Vec<_>>(), ["/opt/liba.so.1"]);
            assert_eq!(cache.paths("libc.so").count(), 0);
        }
        for length in 0..form.len() {
            // A torn file is no cache, and no reason to panic.
            LoaderCache::parse(&form[..length]);
        }
    }

    #[test]
    fn the_cache_of_this_machine_names_files_that_are_there() {
        let Ok(bytes) = std::fs::read("/etc/ld.so.cache") else {
            return println!("skipped: no /etc/ld.so.cache");
        };
        let cache = LoaderCache::parse(&bytes);
        assert!(cache.paths("libc.so.6").any(|path| std::path::Path::new(path).is_file()));
    }
}
