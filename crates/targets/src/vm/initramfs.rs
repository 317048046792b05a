//! The first and only file system of a virtual machine, made in memory.

use crate::capsule::Capsule;
use cpio::newc::{Builder, ModeFileType, trailer};
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::Path;

/// An archive as the kernel unpacks it, in the form "newc". It holds no times, so that it depends on nothing but what it
/// is made of.
#[derive(Debug)]
pub(super) struct Initramfs {
    archive: Vec<u8>,
    directories: BTreeSet<String>,
    entries: u32,
}

impl Initramfs {
    /// One that holds a capsule, whose program is process 1.
    pub(super) fn of(capsule: &Capsule) -> io::Result<Initramfs> {
        let mut initramfs = Initramfs { archive: Vec::new(), directories: BTreeSet::new(), entries: 0 };
        // What a program needs open before it can mount anything. Most kernels bring these nodes themselves.
        initramfs.device("dev/console", (5, 1))?;
        initramfs.device("dev/null", (1, 3))?;
        initramfs.file(Path::new(agent::PROGRAM_PATH), 0o755, &capsule.program)?;
        for part in capsule.parts() {
            initramfs.file(&part.path, part.mode, &part.bytes)?;
        }
        Ok(initramfs)
    }

    /// Adds a file, and the directories in which it lies.
    pub(super) fn file(&mut self, path: &Path, permissions: u32, content: &[u8]) -> io::Result<()> {
        let name = path.to_str().map(|name| name.trim_start_matches('/')).unwrap_or_default();
        let wrong =
            |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {why}", path.display()));
        let size = u32::try_from(content.len()).map_err(|_| wrong("too large for an initramfs"))?;
        if name.is_empty() || name.split('/').any(|step| matches!(step, "" | "." | "..")) {
            return Err(wrong("no name for a file in an initramfs"));
        }
        self.parents(name)?;
        let entry = self.entry(name, ModeFileType::Regular, permissions);
        let mut writer = entry.write(&mut self.archive, size);
        writer.write_all(content)?;
        writer.finish()?;
        Ok(())
    }

    /// The whole archive.
    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        trailer(self.archive)
    }

    fn device(&mut self, name: &str, (major, minor): (u32, u32)) -> io::Result<()> {
        self.parents(name)?;
        let entry = self.entry(name, ModeFileType::Char, 0o600).rdev_major(major).rdev_minor(minor);
        entry.write(&mut self.archive, 0).finish()?;
        Ok(())
    }

    fn parents(&mut self, name: &str) -> io::Result<()> {
        for (end, _) in name.match_indices('/') {
            let directory = &name[..end];
            if self.directories.insert(directory.into()) {
                let entry = self.entry(directory, ModeFileType::Directory, 0o755).nlink(2);
                entry.write(&mut self.archive, 0).finish()?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, name: &str, kind: ModeFileType, permissions: u32) -> Builder {
        self.entries += 1;
        Builder::new(name).ino(self.entries).nlink(1).mode(permissions).set_mode_file_type(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capsule::Part;
    use std::process::{Command, Stdio};

    fn capsule() -> Capsule {
        let part = |path: &str, bytes: &[u8]| Part { path: path.into(), mode: 0o755, bytes: bytes.to_vec() };
        Capsule {
            program: b"program".to_vec(),
            loader: Some(part("/lib64/ld.so", b"loader")),
            libraries: vec![part("/lib/a/libc.so", b"c"), part("/lib/a/libm.so", b"math")],
            cache: None,
        }
    }

    #[test]
    fn the_archive_holds_each_directory_before_its_files_and_once() {
        let mut initramfs = Initramfs::of(&capsule()).unwrap();
        initramfs.file(Path::new("/kduel/order.json"), 0o644, b"{}").unwrap();
        let archive = initramfs.finish().unwrap();
        let mut left = archive.as_slice();
        let mut names = Vec::new();
        loop {
            let mut reader = cpio::newc::Reader::new(left).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut content).unwrap();
            let entry = reader.entry();
            names.push(format!(
                "{:o} {} {}",
                entry.mode(),
                entry.name(),
                String::from_utf8(content).unwrap()
            ));
            left = reader.finish().unwrap();
        }
        assert_eq!(
            names,
            [
                "40755 dev ",
                "20600 dev/console ",
                "20600 dev/null ",
                "100755 init program",
                "40755 lib64 ",
                "100755 lib64/ld.so loader",
                "40755 lib ",
                "40755 lib/a ",
                "100755 lib/a/libc.so c",
                "100755 lib/a/libm.so math",
                "40755 kduel ",
                "100644 kduel/order.json {}",
            ]
        );
    }

    #[test]
    fn cpio_reads_the_archive_too() {
        let archive = Initramfs::of(&capsule()).unwrap().finish().unwrap();
        let listing = Command::new("cpio")
            .arg("-t")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut cpio) = listing else {
            return println!("skipped: no cpio here");
        };
        cpio.stdin.take().unwrap().write_all(&archive).unwrap();
        let listed = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
        assert!(listed.contains("dev/console\n") && listed.ends_with("lib/a/libm.so\n"), "{listed}");
    }

    #[test]
    fn names_that_leave_the_archive_are_refused() {
        let mut initramfs = Initramfs::of(&capsule()).unwrap();
        for name in ["", "/", "a/../b", "a//b", "./a"] {
            assert!(initramfs.file(Path::new(name), 0o644, b"").is_err(), "{name}");
        }
    }
}
