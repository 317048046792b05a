//! What kernel and libc tell every process: page size, rseq, versions.

use crate::Root;
use experiment::Facts;
use std::fs;

/// Keys of the auxiliary vector.
const PAGE_BYTES: u64 = 6;
const RSEQ_BYTES: u64 = 27;
const RSEQ_ALIGNMENT: u64 = 28;

pub(super) fn read(root: &Root, facts: &mut Facts) {
    facts.libc = libc_version();
    facts.rseq_of_libc = root.is_real().then(rseq_of_libc).flatten();
    let vector = fs::read(root.path("proc/self/auxv")).unwrap_or_default();
    facts.page_bytes = auxiliary(&vector, PAGE_BYTES);
    if let (Some(bytes), Some(alignment)) =
        (auxiliary(&vector, RSEQ_BYTES), auxiliary(&vector, RSEQ_ALIGNMENT))
    {
        facts.rseq_of_kernel = Some(format!("{bytes} bytes, aligned to {alignment}"));
    }
}

/// A value of the auxiliary vector, which is pairs of words: key and value.
fn auxiliary(vector: &[u8], key: u64) -> Option<u64> {
    const WORD: usize = size_of::<usize>();
    let word = |bytes: &[u8]| Some(usize::from_ne_bytes(bytes.try_into().ok()?) as u64);
    vector.chunks_exact(2 * WORD).find_map(|pair| {
        let (name, value) = pair.split_at(WORD);
        if word(name)? == key { word(value) } else { None }
    })
}

#[cfg(target_env = "gnu")]
fn libc_version() -> Option<String> {
    // SAFETY: returns a pointer to a constant string that ends with a zero byte.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", version.to_string_lossy()))
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Option<String> {
    cfg!(target_env = "musl").then(|| "musl".to_string())
}

/// Whether glibc registers rseq: since 2.35 it says how many bytes of its area it uses, which are 0 where it registers
/// none, as `GLIBC_TUNABLES` may ask. What it registers may be longer.
#[cfg(target_env = "gnu")]
fn rseq_of_libc() -> Option<String> {
    // SAFETY: looks a name up, given as a string that ends with a zero byte.
    let size = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
    if size.is_null() {
        return Some("off".into());
    }
    // SAFETY: glibc documents the variable of this name as a constant `unsigned int`, which lives as long as the process.
    let bytes = unsafe { size.cast::<libc::c_uint>().read() };
    Some(if bytes == 0 { "off".into() } else { format!("on, {bytes} bytes used") })
}

#[cfg(not(target_env = "gnu"))]
fn rseq_of_libc() -> Option<String> {
    cfg!(target_env = "musl").then(|| "off".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_key_in_whole_pairs() {
        let mut vector: Vec<u8> = Vec::new();
        for word in [PAGE_BYTES as usize, 65536, 3, PAGE_BYTES as usize, 0, 0] {
            vector.extend(word.to_ne_bytes());
        }
        assert_eq!(auxiliary(&vector, PAGE_BYTES), Some(65536));
        assert_eq!(auxiliary(&vector, 3), Some(PAGE_BYTES), "a value that looks like a key is none");
        assert_eq!(auxiliary(&vector, RSEQ_BYTES), None);
        assert_eq!(auxiliary(&vector[..9], PAGE_BYTES), None);
    }
}
