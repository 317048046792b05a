//! Where the files of an .rpm are. Of its two headers only the lengths matter here, and the size that the first one
//! promises: version 4 of the format, as rpm's documentation describes it, which is also how version 6 begins.

use crate::kernel::KernelError;
use crate::kernel::unpack::damaged;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;

/// How an .rpm begins.
pub(super) const MAGIC: &[u8] = &[0xed, 0xab, 0xee, 0xdb];

/// The lead before the headers, which nothing reads any more.
const LEAD_BYTES: u64 = 96;
/// How a header begins, with the version of its form.
const HEADER_MAGIC: [u8; 4] = [0x8e, 0xad, 0xe8, 0x01];
/// Magic, four bytes that mean nothing, the number of index entries, the size of the store.
const INTRO_BYTES: usize = 16;
/// Tag, type, offset in the store, count: four numbers, big-endian.
const INDEX_BYTES: usize = 16;
/// rpm itself allows no larger header.
const HEADER_BYTES_MAX: u64 = 256 << 20;

/// The tags of the first header that say how long all behind it is.
const SIZE: u32 = 1000;
const LONG_SIZE: u32 = 270;

/// The packed cpio archive at the end of an .rpm.
pub(super) fn payload(path: &Path) -> Result<impl Read + use<>, KernelError> {
    let failed = |error| KernelError::Read { path: path.into(), error };
    let file = File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(LEAD_BYTES)).map_err(failed)?;
    let signature = Header::read(&mut reader).map_err(|error| damaged(path, &error))?;
    // The first header is padded to eight bytes.
    let begin = (LEAD_BYTES + signature.bytes()).next_multiple_of(8);
    let bytes_wanted = begin.saturating_add(signature.size_behind().unwrap_or(0));
    if bytes < bytes_wanted {
        return Err(KernelError::Truncated { path: path.into(), bytes, bytes_wanted });
    }
    reader.seek(SeekFrom::Start(begin)).map_err(failed)?;
    Header::read(&mut reader).map_err(|error| damaged(path, &error))?;
    Ok(reader)
}

/// A header: an index of tags, and the store that it points into.
struct Header {
    index: Vec<u8>,
    store: Vec<u8>,
}

impl Header {
    fn read(reader: &mut impl Read) -> io::Result<Header> {
        let invalid = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        let mut intro = [0; INTRO_BYTES];
        reader.read_exact(&mut intro)?;
        let (Some(entries), Some(store_bytes)) = (number(&intro, 8), number(&intro, 12)) else {
            return invalid("its header is too short");
        };
        if !intro.starts_with(&HEADER_MAGIC) {
            return invalid("its header is not where it should be");
        }
        let index_bytes = u64::from(entries) * INDEX_BYTES as u64;
        if index_bytes + u64::from(store_bytes) > HEADER_BYTES_MAX {
            return invalid("its header is larger than any");
        }
        let mut read = |wanted: u64| -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            reader.by_ref().take(wanted).read_to_end(&mut bytes)?;
            if (bytes.len() as u64) < wanted {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ends inside its header"));
            }
            Ok(bytes)
        };
        Ok(Header { index: read(index_bytes)?, store: read(u64::from(store_bytes))? })
    }

    fn bytes(&self) -> u64 {
        (INTRO_BYTES + self.index.len() + self.store.len()) as u64
    }

    /// The bytes that should follow this header, if it says so.
    fn size_behind(&self) -> Option<u64> {
        self.index.chunks_exact(INDEX_BYTES).find_map(|entry| {
            let at = number(entry, 8)? as usize;
            match number(entry, 0)? {
                SIZE => number(&self.store, at).map(u64::from),
                LONG_SIZE => {
                    let (high, low) = (number(&self.store, at)?, number(&self.store, at + 4)?);
                    Some((u64::from(high) << 32) | u64::from(low))
                }
                _ => None,
            }
        })
    }
}

/// The big-endian number at an offset.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
