//! Decompression of what kernels are packed with. The decoders are Rust, so that kduel needs no C library to build, and a
//! package from anywhere is read by code that checks its bounds.

use crate::kernel::KernelError;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The memory that unpacking may take. Kernel packages ask for 64 MiB and less.
const XZ_MEMORY_KIB: u32 = 512 << 10;

/// What `source` holds, unpacked if it is packed. `path` is what errors call it.
pub(super) fn unpacked<'a>(source: impl Read + 'a, path: &Path) -> Result<Box<dyn Read + 'a>, KernelError> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let unsupported = |method| Err(KernelError::Compression { path: path.into(), method });
    match source.fill_buf().map_err(|error| damaged(path, &error))? {
        [0x1f, 0x8b, ..] => Ok(Box::new(MultiGzDecoder::new(source))),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            Ok(Box::new(XzReader::new_mem_limit(source, true, XZ_MEMORY_KIB)))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Box::new(Zstd {
            decoder: StreamingDecoder::new(source).map_err(|error| damaged(path, &error))?,
        })),
        [b'B', b'Z', b'h', ..] => unsupported("bzip2"),
        [0x5d, 0, 0, ..] => unsupported("lzma"),
        [0x89, b'L', b'Z', b'O', ..] => unsupported("lzop"),
        [0x04, 0x22, 0x4d, 0x18, ..] => unsupported("lz4"),
        _ => Ok(Box::new(source)),
    }
}

/// All of `source`, which must not be longer than `bytes_max`.
pub(super) fn whole(source: impl Read, bytes_max: u64, path: &Path) -> Result<Vec<u8>, KernelError> {
    let mut bytes = Vec::new();
    source.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| damaged(path, &error))?;
    if bytes.len() as u64 > bytes_max {
        return Err(damaged(path, &format!("it has more than {} MiB", bytes_max >> 20)));
    }
    Ok(bytes)
}

pub(super) fn damaged(path: &Path, why: &dyn ToString) -> KernelError {
    KernelError::Damaged { path: path.into(), why: why.to_string() }
}

/// A frame of zstd whose checksum is looked at, which the decoder leaves to its caller.
struct Zstd<R: Read> {
    decoder: StreamingDecoder<R, FrameDecoder>,
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.decoder.read(buffer)?;
        if bytes == 0 && !buffer.is_empty() {
            let decoder = &self.decoder.decoder;
            let (found, wanted) = (decoder.get_calculated_checksum(), decoder.get_checksum_from_data());
            if wanted.is_some() && found != wanted {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its zstd checksum is wrong"));
            }
        }
        Ok(bytes)
    }
}
