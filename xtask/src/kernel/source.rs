//! The source of the kernel that is built.

use crate::runner::Runner;
use crate::suite::Suite;
use anyhow::{Context as _, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where installed source packages put their archives.
const INSTALLED: &str = "/usr/src";
/// The package that depends on the newest source, and how the names of those with a version begin.
const PACKAGE: &str = "linux-source";
const PACKAGE_WITH_VERSION: &str = "linux-source-";

/// Where the source comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// A tree of sources.
    Tree(PathBuf),
    /// An archive of a tree.
    Archive(PathBuf),
    /// A source package.
    Package(PathBuf),
    /// The newest source package of a suite.
    Suite(String),
}

impl Source {
    /// The source that was asked for, or else the newest that is installed.
    pub(super) fn find(path: Option<&Path>, suite: Option<&str>) -> anyhow::Result<Source> {
        if let Some(suite) = suite {
            return Ok(Source::Suite(suite.into()));
        }
        if let Some(path) = path {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            return match fs::metadata(path).with_context(|| path.display().to_string())? {
                found if found.is_dir() => {
                    let is_source = path.join("Kconfig").is_file() && path.join("Makefile").is_file();
                    ensure!(
                        is_source,
                        "{} holds no kernel source: there is no Kconfig in it",
                        path.display()
                    );
                    Ok(Source::Tree(path.into()))
                }
                _ if name.ends_with(".deb") => Ok(Source::Package(path.into())),
                _ if name.contains(".tar") => Ok(Source::Archive(path.into())),
                _ => bail!("{} is no kernel source; give a tree, a .tar.* or a .deb", path.display()),
            };
        }
        match newest_archive(Path::new(INSTALLED)) {
            Some(archive) => Ok(Source::Archive(archive)),
            None => bail!(
                "no kernel source is installed: there is no {INSTALLED}/{PACKAGE_WITH_VERSION}*.tar.*. On Debian: sudo \
                 apt-get install {PACKAGE}. Where that is older than Linux 7: --suite sid takes the newest source \
                 package without installing it; --source takes a tree"
            ),
        }
    }

    /// Makes a tree of it, below `work` where it is not one yet.
    pub(super) fn unpack(&self, work: &Path, runner: &Runner) -> anyhow::Result<PathBuf> {
        match self {
            Source::Tree(tree) => Ok(std::path::absolute(tree)?),
            Source::Archive(archive) => unpack_archive(archive, work, runner),
            Source::Package(package) => unpack_package(package, work, runner),
            Source::Suite(suite) if runner.dry => {
                eprintln!("+ apt-get download {PACKAGE_WITH_VERSION}VERSION, the newest of {suite}");
                unpack_package(&work.join(format!("{PACKAGE_WITH_VERSION}VERSION.deb")), work, runner)
            }
            Source::Suite(suite) => {
                let suite = Suite::open(suite, &work.join("apt"), runner)?;
                let mut names = suite.resolve(PACKAGE, &[PACKAGE_WITH_VERSION])?;
                names.sort_by_key(|name| version(name));
                let newest = names.split_off(names.len() - 1);
                let files = suite.download(&newest, work, runner)?;
                unpack_package(files.first().context("nothing was downloaded")?, work, runner)
            }
        }
    }
}

fn unpack_package(package: &Path, work: &Path, runner: &Runner) -> anyhow::Result<PathBuf> {
    let folder = work.join("package");
    // What another package has left there may be newer.
    if !runner.dry && folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    runner.run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&folder))?;
    let sources = folder.join(INSTALLED.trim_start_matches('/'));
    let archive = match newest_archive(&sources) {
        None if runner.dry => sources.join(format!("{PACKAGE_WITH_VERSION}VERSION.tar.xz")),
        archive => archive.with_context(|| format!("{} holds no source", package.display()))?,
    };
    unpack_archive(&archive, work, runner)
}

/// Unpacks an archive, unless it was before.
fn unpack_archive(archive: &Path, work: &Path, runner: &Runner) -> anyhow::Result<PathBuf> {
    let tree = work.join("source");
    let done = work.join("source-is");
    // A newer package brings an archive of the same name.
    let bytes = fs::metadata(archive).map_or(0, |found| found.len());
    let name = format!("{}, {bytes} bytes", archive.display());
    if fs::read_to_string(&done).is_ok_and(|unpacked| unpacked == name) {
        return Ok(tree);
    }
    if !runner.dry {
        if tree.exists() {
            fs::remove_dir_all(&tree).with_context(|| tree.display().to_string())?;
        }
        fs::create_dir_all(&tree).with_context(|| tree.display().to_string())?;
    }
    // As files of now: make would take those of a package that is older than the objects of another source for done.
    runner
        .run(Command::new("tar").arg("-xmf").arg(archive).args(["--strip-components=1", "-C"]).arg(&tree))?;
    if !runner.dry {
        fs::write(&done, name).with_context(|| done.display().to_string())?;
    }
    Ok(tree)
}

/// The archive of the newest version in a folder.
fn newest_archive(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let archives = files.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(PACKAGE_WITH_VERSION) && name.contains(".tar.")
    });
    archives.max_by_key(|path| version(&path.file_name().unwrap_or_default().to_string_lossy()))
}

/// The numbers of a name, so that 6.12 comes behind 6.9.
fn version(name: &str) -> Vec<u32> {
    name.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_newest_installed_source_is_taken_by_number() {
        let folder = tempfile::TempDir::new().unwrap();
        for name in [
            "linux-source-6.9.tar.xz",
            "linux-source-6.12.tar.xz",
            "linux-source-6.1.tar.xz",
            "other-9.tar.xz",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(newest_archive(folder.path()), Some(folder.path().join("linux-source-6.12.tar.xz")));
    }

    /// A package whose source is a tree that holds a file of this name.
    fn package(top: &Path, version: &str) -> PathBuf {
        let run = |command: &mut Command| assert!(command.output().unwrap().status.success(), "{command:?}");
        let (root, tree) = (top.join(format!("root-{version}")), top.join("tree"));
        fs::create_dir_all(root.join("usr/src")).unwrap();
        fs::create_dir_all(root.join("DEBIAN")).unwrap();
        fs::create_dir_all(&tree).unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::create(tree.join(version)).unwrap().set_modified(long_ago).unwrap();
        let archive = root.join(format!("usr/src/{PACKAGE_WITH_VERSION}{version}.tar.gz"));
        run(Command::new("tar").arg("-czf").arg(archive).arg("-C").arg(top).arg(format!("tree/{version}")));
        let control = format!(
            "Package: linux-source\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@y>\nDescription: x\n"
        );
        fs::write(root.join("DEBIAN/control"), control).unwrap();
        let package = top.join(format!("{version}.deb"));
        run(Command::new("dpkg-deb").args(["--root-owner-group", "-b"]).arg(root).arg(&package));
        package
    }

    #[test]
    fn an_older_package_is_not_built_from_what_a_newer_one_has_left() {
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            return println!("skipped: dpkg-deb is not installed");
        }
        let top = tempfile::TempDir::new().unwrap();
        let work = top.path().join("work");
        fs::create_dir(&work).unwrap();
        for version in ["7.3", "6.12"] {
            let source = Source::Package(package(top.path(), version));
            let began = SystemTime::now() - Duration::from_secs(1);
            let tree = source.unpack(&work, &Runner { dry: false }).unwrap();
            // And make takes it for newer than what was built of the other.
            assert!(fs::metadata(tree.join(version)).unwrap().modified().unwrap() > began, "{version}");
        }
    }

    #[test]
    fn what_is_no_source_is_told() {
        let folder = tempfile::TempDir::new().unwrap();
        let said = Source::find(Some(folder.path()), None).unwrap_err().to_string();
        assert!(said.contains("no kernel source"), "{said}");
        let file = folder.path().join("note.txt");
        fs::write(&file, "").unwrap();
        assert!(Source::find(Some(&file), None).is_err());
        assert!(Source::find(Some(&folder.path().join("absent")), None).is_err());
    }
}
