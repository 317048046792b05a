//! Kernels in the packages of distributions, read without installing them.

use crate::kernel::file::CONFIG_BYTES_MAX;
use crate::kernel::image::{self, IMAGE_BYTES_MAX};
use crate::kernel::store::Source;
use crate::kernel::unpack::{damaged, unpacked, whole};
use crate::kernel::{Kernel, KernelError, Modules, rpm};
use machine::KernelConfig;
use object::read::ReadCache;
use object::read::archive::ArchiveFile;
use std::fs::File;
use std::io::{Read, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// How a .deb begins, as every `ar` archive.
const DEB: &[u8] = b"!<arch>\n";

/// Whom [`walk`] shows each file: its path inside the package, without a leading slash, and its content. It ends the walk
/// with [`ControlFlow::Break`].
pub(super) type Visit<'a> = dyn FnMut(&str, &mut dyn Read) -> Result<ControlFlow<()>, KernelError> + 'a;

/// Whether a file is a package, by its first bytes: names may have been changed.
pub(super) fn is_package(path: &Path) -> Result<bool, KernelError> {
    let start = start_of(path)?;
    Ok(start.starts_with(DEB) || start.starts_with(rpm::MAGIC))
}

fn start_of(path: &Path) -> Result<Vec<u8>, KernelError> {
    let failed = |error| KernelError::Read { path: path.into(), error };
    let mut start = Vec::new();
    File::open(path).map_err(failed)?.take(DEB.len() as u64).read_to_end(&mut start).map_err(failed)?;
    Ok(start)
}

/// The kernel in these packages. Each is read until its image and a configuration are found, which lie near its beginning;
/// the modules behind them are read when they are needed. A configuration of another release is none of this kernel's.
pub(super) fn open(paths: &[PathBuf], given: &str) -> Result<Kernel, KernelError> {
    let mut images: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let mut configs: Vec<(String, String)> = Vec::new();
    for path in paths {
        let (mut has_image, mut has_config) = (false, false);
        walk(path, &mut |inside, reader| {
            if !has_image && is_image(inside) {
                let bytes = whole(reader, IMAGE_BYTES_MAX, &path.join(inside))?;
                // In a package of rpm all but the last name of a file have no content.
                if !bytes.is_empty() {
                    has_image = true;
                    images.push((path.join(inside), bytes));
                }
            } else if !has_config && let Some(release) = config_of(inside) {
                let bytes = whole(reader, CONFIG_BYTES_MAX, &path.join(inside))?;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if KernelConfig::is_in(&text) {
                    has_config = true;
                    configs.push((release.into(), text));
                }
            }
            let found = has_image && !configs.is_empty();
            Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
    }
    if images.len() > 1 {
        let images = images.iter().map(|(path, _)| path.display().to_string()).collect();
        return Err(KernelError::Several { given: given.into(), images });
    }
    let Some((path, image)) = images.pop() else {
        return Err(KernelError::EmptyPackage { given: given.into() });
    };
    let version = image::check(&image, &path)?;
    let modules = Modules::new(Source::Packages(paths.to_vec()), version.release.as_deref(), given);
    let (release, build) = (version.release, version.build);
    let is_of_it = |of: &str| release.as_ref().is_none_or(|release| release == of);
    let config = configs.into_iter().find_map(|(of, text)| is_of_it(&of).then_some(text));
    Ok(Kernel { image, release, build, config, modules, given_as: given.into() })
}

/// Whether this is where distributions put the image: boot/vmlinuz-RELEASE, or vmlinuz among the modules.
fn is_image(inside: &str) -> bool {
    let (directory, name) = inside.rsplit_once('/').unwrap_or(("", inside));
    let named = name.starts_with("vmlinuz") || name.starts_with("bzImage");
    named && (directory == "boot" || release_of_modules(directory).is_some())
}

/// The release of the kernel of which a file is the configuration: boot/config-RELEASE, or config among the modules.
fn config_of(inside: &str) -> Option<&str> {
    let (directory, name) = inside.rsplit_once('/')?;
    match directory {
        "boot" => name.strip_prefix("config-"),
        _ if name == "config" => release_of_modules(directory),
        _ => None,
    }
}

/// The release in lib/modules/RELEASE, if a directory is that.
fn release_of_modules(directory: &str) -> Option<&str> {
    let inside = directory.strip_prefix("usr/").unwrap_or(directory);
    inside.strip_prefix("lib/modules/").filter(|release| !release.contains('/'))
}

/// Shows `visit` each regular file of a package, in its order.
pub(super) fn walk(path: &Path, visit: &mut Visit) -> Result<(), KernelError> {
    let start = start_of(path)?;
    let failed = |error| KernelError::Read { path: path.into(), error };
    if start.starts_with(rpm::MAGIC) {
        let payload = rpm::payload(path)?;
        return walk_cpio(unpacked(payload, path)?, path, visit);
    }
    if !start.starts_with(DEB) {
        let found = "neither a .deb nor a .rpm".into();
        return Err(KernelError::NotAKernel { path: path.into(), found });
    }
    let (offset, bytes) = data_of_deb(path)?;
    let mut file = File::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    walk_tar(unpacked(file.take(bytes), path)?, path, visit)
}

/// Where the files of a .deb are, packed: offset and length in bytes.
fn data_of_deb(path: &Path) -> Result<(u64, u64), KernelError> {
    let failed = |error| KernelError::Read { path: path.into(), error };
    let file = File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let cache = ReadCache::new(file);
    let archive = ArchiveFile::parse(&cache).map_err(|error| damaged(path, &error))?;
    for member in archive.members() {
        let member = member.map_err(|error| damaged(path, &error))?;
        let (offset, size) = member.file_range();
        let bytes_wanted = offset.saturating_add(size);
        if bytes_wanted > bytes {
            return Err(KernelError::Truncated { path: path.into(), bytes, bytes_wanted });
        }
        if member.name().starts_with(b"data.tar") {
            return Ok((offset, size));
        }
    }
    Err(damaged(path, &"it holds no data.tar, so it is no .deb or only the beginning of one"))
}

fn walk_tar(reader: impl Read, path: &Path, visit: &mut Visit) -> Result<(), KernelError> {
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().map_err(|error| damaged(path, &error))? {
        let mut entry = entry.map_err(|error| damaged(path, &error))?;
        if entry.header().entry_type().is_file() {
            let inside = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if visit(relative(&inside), &mut entry)?.is_break() {
                break;
            }
        }
    }
    Ok(())
}

fn walk_cpio(mut reader: impl Read, path: &Path, visit: &mut Visit) -> Result<(), KernelError> {
    const KIND: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    loop {
        let mut entry = cpio::NewcReader::new(reader).map_err(|error| damaged(path, &error))?;
        if entry.entry().is_trailer() {
            return Ok(());
        }
        if entry.entry().mode() & KIND == REGULAR {
            let inside = entry.entry().name().to_string();
            if visit(relative(&inside), &mut entry)?.is_break() {
                return Ok(());
            }
        }
        reader = entry.finish().map_err(|error| damaged(path, &error))?;
    }
}

fn relative(inside: &str) -> &str {
    inside.trim_start_matches("./").trim_start_matches('/')
}
