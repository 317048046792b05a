//! A directory that holds a kernel: a build tree, or a folder with an image.

use crate::kernel::file::IMAGE_OF_TREE;
use crate::kernel::{Kernel, KernelError, file};
use machine::Root;
use std::path::{Path, PathBuf};

/// The images of builds for other processors.
const OTHER_IMAGES: &[(&str, &str)] = &[
    ("arch/arm64/boot/Image", "arm64"),
    ("arch/riscv/boot/Image", "riscv"),
    ("arch/loongarch/boot/vmlinux.efi", "loongarch"),
    ("arch/powerpc/boot/zImage", "powerpc"),
    ("arch/s390/boot/bzImage", "s390"),
];

/// The kernel in a directory.
pub(super) fn open(root: &Root, path: &Path, given: &str) -> Result<Kernel, KernelError> {
    let image = path.join(IMAGE_OF_TREE);
    if image.is_file() {
        return file::open(root, &image, given);
    }
    if let Some(&(_, architecture)) = OTHER_IMAGES.iter().find(|(image, _)| path.join(image).is_file()) {
        return Err(KernelError::OtherArchitecture { path: path.into(), architecture });
    }
    let mut images = images(path)?;
    if images.is_empty() {
        // The top of a package that was unpacked, or of another machine's disk.
        images = self::images(&path.join("boot")).unwrap_or_default();
    }
    match images.as_slice() {
        [image] => file::open(root, image, given),
        [] if path.join("Kconfig").is_file() || path.join(".config").is_file() => {
            Err(KernelError::NeverBuilt { path: path.into() })
        }
        [] => Err(KernelError::EmptyDirectory { path: path.into() }),
        several => Err(KernelError::Several {
            given: given.into(),
            images: several.iter().map(|image| image.display().to_string()).collect(),
        }),
    }
}

/// The files of a directory that are named as images are, in the order of their names.
fn images(path: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let failed = |error| KernelError::Read { path: path.into(), error };
    let mut images = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if (name.starts_with("bzImage") || name.starts_with("vmlinuz")) && entry.path().is_file() {
            images.push(entry.path());
        }
    }
    images.sort();
    Ok(images)
}

/// The directory that a file lies in.
pub(super) fn of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}
