//! The boot header of a kernel image for x86, as Documentation/arch/x86/boot.rst of Linux describes it.

use crate::kernel::KernelError;
use crate::kernel::unpack::{damaged, whole};
use std::fs::File;
use std::path::Path;

/// Larger kernels are not seen; a disk image is not read into memory to find out that it is none.
pub(super) const IMAGE_BYTES_MAX: u64 = 512 << 20;

/// Where the field is that holds the number of 512-byte sectors before the protected-mode code.
const SETUP_SECTORS: usize = 0x1f1;
/// The size of the protected-mode code, in units of 16 bytes.
const SYSTEM_PARAGRAPHS: usize = 0x1f4;
const MAGIC: usize = 0x202;
const PROTOCOL: usize = 0x206;
/// Where the version string is, less 0x200.
const VERSION: usize = 0x20e;
const LOAD_FLAGS: usize = 0x236;
/// The first boot protocol with load flags (Linux 3.8).
const PROTOCOL_WITH_LOAD_FLAGS: u16 = 0x020c;
/// The load flag of kernels that have a 64-bit entry.
const KERNEL_64: u16 = 1;
/// The version string is shorter; what goes on behind this is none.
const VERSION_BYTES_MAX: usize = 1024;

/// What the boot header of a kernel says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Version {
    pub(crate) release: Option<String>,
    pub(crate) build: Option<String>,
}

impl Version {
    /// Takes apart `6.12.117-cloud (builder@host) #1 SMP PREEMPT_DYNAMIC date`.
    pub(crate) fn of(text: &str) -> Version {
        let release = text.split_whitespace().next().map(String::from);
        let build = text.find('#').map(|at| text[at..].trim_end().to_string());
        Version { release, build }
    }
}

/// The image in a file.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, Version), KernelError> {
    let failed = |error| KernelError::Read { path: path.into(), error };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() > IMAGE_BYTES_MAX {
        let found = format!("a file of more than {} MiB", IMAGE_BYTES_MAX >> 20);
        return Err(KernelError::NotAKernel { path: path.into(), found });
    }
    let image = whole(file, IMAGE_BYTES_MAX, path)?;
    let version = check(&image, path)?;
    Ok((image, version))
}

/// Whether `image` is a whole kernel for x86-64, and which.
pub(super) fn check(image: &[u8], path: &Path) -> Result<Version, KernelError> {
    if image.get(MAGIC..MAGIC + 4) != Some(b"HdrS") {
        return Err(something_else(image, path));
    }
    let short = |bytes_wanted: usize| KernelError::Truncated {
        path: path.into(),
        bytes: image.len() as u64,
        bytes_wanted: bytes_wanted as u64,
    };
    let word = |at: usize| match image.get(at..at + 2) {
        Some(&[low, high]) => Ok(u16::from_le_bytes([low, high])),
        _ => Err(short(at + 2)),
    };
    // An old kernel that leaves the field empty means four.
    let setup_sectors = match image.get(SETUP_SECTORS) {
        None | Some(0) => 4,
        Some(&sectors) => usize::from(sectors),
    };
    let setup_bytes = (setup_sectors + 1) * 512;
    let (low, high) = (word(SYSTEM_PARAGRAPHS)?, word(SYSTEM_PARAGRAPHS + 2)?);
    let paragraphs = usize::from(low) | (usize::from(high) << 16);
    let bytes_wanted = setup_bytes + paragraphs * 16;
    if image.len() < bytes_wanted {
        return Err(short(bytes_wanted));
    }
    if word(PROTOCOL)? >= PROTOCOL_WITH_LOAD_FLAGS && word(LOAD_FLAGS)? & KERNEL_64 == 0 {
        return Err(KernelError::OtherArchitecture { path: path.into(), architecture: "32-bit x86" });
    }
    let begin = match word(VERSION)? {
        0 => return Ok(Version::default()),
        begin => usize::from(begin) + 0x200,
    };
    let text = image.get(begin..setup_bytes.min(begin + VERSION_BYTES_MAX)).unwrap_or_default();
    match text.split(|&byte| byte == 0).next() {
        Some(text) if text.len() < VERSION_BYTES_MAX && !text.is_empty() && text.is_ascii() => {
            Ok(Version::of(&String::from_utf8_lossy(text)))
        }
        _ => Err(damaged(path, &"its boot header does not say which version it is")),
    }
}

/// What a file without the header is.
fn something_else(bytes: &[u8], path: &Path) -> KernelError {
    let at = |begin: usize, wanted: &[u8]| bytes.get(begin..begin + wanted.len()) == Some(wanted);
    let other = |architecture| KernelError::OtherArchitecture { path: path.into(), architecture };
    let not = |found: &str| KernelError::NotAKernel { path: path.into(), found: found.into() };
    if at(0x38, b"ARM\x64") {
        return other("arm64");
    }
    if at(0x30, b"RISCV") {
        return other("riscv");
    }
    if at(0, b"MZ") && at(4, b"zimg") {
        return other("arm64, riscv or loongarch");
    }
    if bytes.is_empty() {
        return not("an empty file");
    }
    let kinds: &[(&[u8], &str)] = &[
        (
            b"\x7fELF",
            "an ELF file; if it is the vmlinux of a build, take the arch/x86/boot/bzImage of the same build",
        ),
        (b"070701", "an archive for an initramfs"),
        (b"\x1f\x8b", "a file packed with gzip"),
        (b"\xfd7zXZ\0", "a file packed with xz"),
        (b"\x28\xb5\x2f\xfd", "a file packed with zstd"),
        (b"\x27\x05\x19\x56", "an image for the boot loader U-Boot"),
        (b"QFI\xfb", "a disk image of QEMU"),
        (b"MZ", "a program for EFI without a Linux boot header"),
    ];
    if let Some((_, found)) = kinds.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return not(found);
    }
    let start = &bytes[..bytes.len().min(512)];
    let is_text = start.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    not(if is_text { "text" } else { "a file without a Linux boot header" })
}
