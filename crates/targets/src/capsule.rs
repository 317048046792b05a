//! This very program with all that it needs to run elsewhere: the loader and the libraries that its ELF headers name.

mod elf;
mod loader_cache;

use elf::Elf;
use loader_cache::LoaderCache;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The cache in which ldconfig notes where libraries are.
const CACHE: &str = "/etc/ld.so.cache";

/// Where the loaders of the common distributions look when nothing else names a place. A loader also looks where it lies
/// itself.
const STANDARD_PLACES: &[&str] = &["/lib64", "/lib"];

/// The program and what it needs.
#[derive(Clone, PartialEq, Eq)]
pub struct Capsule {
    /// The program as the kernel reads it, without its symbols.
    pub program: Vec<u8>,
    /// The loader, where the program's header names it. None for a static program.
    pub loader: Option<Part>,
    /// The libraries, each where the loader finds it.
    pub libraries: Vec<Part>,
    /// The loader's cache, where one of the libraries cannot be found without it.
    pub cache: Option<Part>,
}

/// A file of a capsule.
#[derive(Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it lies on this machine, and has to lie on another that is to find it by itself.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// What it holds.
    pub bytes: Vec<u8>,
}

// Without the megabytes of the files.
impl fmt::Debug for Capsule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capsule of {} bytes with ", self.program.len())?;
        f.debug_list().entries(self.parts()).finish()
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.path.display(), self.bytes.len())
    }
}

/// Why a program cannot be taken elsewhere.
#[derive(Debug, Error)]
pub enum CapsuleError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// A file is no 64-bit ELF file, or is damaged.
    #[error("{} is no program or library that can be taken elsewhere: {why}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A library is nowhere.
    #[error("{} needs the library {name}, which is in none of {}", needed_by.display(), list(looked_in))]
    Library {
        /// The library.
        name: String,
        /// Who needs it.
        needed_by: PathBuf,
        /// Where it was looked for.
        looked_in: Vec<PathBuf>,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<String>>().join(", ")
}

impl Capsule {
    /// The capsule of the running program.
    ///
    /// # Errors
    /// When a file cannot be read, or a library not be found.
    pub fn of_this_program() -> Result<Capsule, CapsuleError> {
        // The link names this very binary even when the file has been replaced meanwhile.
        Capsule::of(Path::new("/proc/self/exe"))
    }

    /// The capsule of a program.
    ///
    /// # Errors
    /// As [`Capsule::of_this_program`].
    pub fn of(program: &Path) -> Result<Capsule, CapsuleError> {
        let whole = read(program)?;
        // What a program's own path means in its headers is where it really lies.
        let place = fs::canonicalize(program).unwrap_or_else(|_| program.into());
        let own = Elf::parse(&whole, &place)?;
        let loader = own.loader.clone().map(part).transpose()?;
        let search = Search::new(&own, loader.as_ref());
        let mut known: BTreeSet<String> = search.loader_name.iter().cloned().collect();
        let mut libraries = Vec::new();
        let mut by_cache_alone = false;
        let mut open: VecDeque<(PathBuf, Elf)> = VecDeque::from([(place, own)]);
        while let Some((needed_by, elf)) = open.pop_front() {
            for name in &elf.needed {
                if !known.insert(name.clone()) {
                    continue;
                }
                let found = search.find(name, &elf, &needed_by)?;
                by_cache_alone |= found.by_cache && !search.is_standard(&found.part.path);
                open.push_back((found.part.path.clone(), found.elf));
                libraries.push(found.part);
            }
        }
        let cache = by_cache_alone.then(|| part(CACHE.into())).transpose()?;
        let kept = agent::loadable(program);
        let program = kept.map_err(|error| CapsuleError::Read { path: program.into(), error })?;
        Ok(Capsule { program, loader, libraries, cache })
    }

    /// All files but the program.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.loader.iter().chain(&self.libraries).chain(&self.cache)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CapsuleError> {
    fs::read(path).map_err(|error| CapsuleError::Read { path: path.into(), error })
}

fn part(path: PathBuf) -> Result<Part, CapsuleError> {
    let bytes = read(&path)?;
    Ok(Part { path, mode: 0o755, bytes })
}

/// How the loader looks for libraries, with an environment that does not meddle.
struct Search {
    machine: u16,
    /// Where the program itself says that libraries are, also those of its libraries.
    of_program: Vec<PathBuf>,
    cache: LoaderCache,
    standard: Vec<PathBuf>,
    loader_name: Option<String>,
}

struct Found {
    part: Part,
    elf: Elf,
    by_cache: bool,
}

impl Search {
    fn new(program: &Elf, loader: Option<&Part>) -> Search {
        let loader = loader.map(|part| part.path.clone());
        // Debian's loaders also look in the directory of their architecture, where they lie themselves, behind a link.
        let real = loader.as_ref().and_then(|path| fs::canonicalize(path).ok());
        let beside = [&real, &loader].into_iter().flatten().filter_map(|path| path.parent());
        let mut standard: Vec<PathBuf> = Vec::new();
        for place in beside.chain(STANDARD_PLACES.iter().map(Path::new)) {
            // Most have but one of /lib and /usr/lib, and a link that stands for the other.
            let without_usr = place.strip_prefix("/usr").unwrap_or(place.strip_prefix("/").unwrap_or(place));
            standard.extend([Path::new("/").join(without_usr), Path::new("/usr").join(without_usr)]);
        }
        let name = loader.as_ref().and_then(|path| path.file_name());
        Search {
            machine: program.machine,
            of_program: program.rpath.clone(),
            cache: fs::read(CACHE).map(|bytes| LoaderCache::parse(&bytes)).unwrap_or_default(),
            loader_name: name.map(|name| name.to_string_lossy().into_owned()),
            standard,
        }
    }

    fn is_standard(&self, library: &Path) -> bool {
        library.parent().is_some_and(|place| self.standard.iter().any(|known| known == place))
    }

    /// The library, at the first place of those in which the loader looks that has one for this machine.
    fn find(&self, name: &str, needed_by: &Elf, user: &Path) -> Result<Found, CapsuleError> {
        let take = |path: PathBuf, by_cache: bool| {
            let part = part(path).ok()?;
            let elf = Elf::parse(&part.bytes, &part.path).ok()?;
            (elf.machine == self.machine).then_some(Found { part, elf, by_cache })
        };
        if name.contains('/') {
            return take(name.into(), false).ok_or_else(|| self.nowhere(name, user, Vec::new()));
        }
        // The old attribute counts only where the new one is not there, and is inherited from the program.
        let inherited = if needed_by.runpath.is_empty() { self.of_program.as_slice() } else { &[] };
        let own =
            needed_by.rpath.iter().chain(inherited).chain(&needed_by.runpath).cloned().collect::<Vec<_>>();
        let in_own = || own.iter().find_map(|place| take(place.join(name), false));
        let in_cache = || self.cache.paths(name).find_map(|path| take(path.into(), true));
        let in_standard = || self.standard.iter().find_map(|place| take(place.join(name), false));
        in_own().or_else(in_cache).or_else(in_standard).ok_or_else(|| {
            let mut looked_in = own.clone();
            looked_in.extend(self.standard.iter().cloned());
            self.nowhere(name, user, looked_in)
        })
    }

    fn nowhere(&self, name: &str, needed_by: &Path, looked_in: Vec<PathBuf>) -> CapsuleError {
        let mut looked_in = looked_in;
        looked_in.insert(0, CACHE.into());
        CapsuleError::Library { name: name.into(), needed_by: needed_by.into(), looked_in }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_capsule_holds_just_what_the_loader_takes() {
        let capsule = Capsule::of_this_program().unwrap();
        let loader = capsule.loader.as_ref().expect("tests are dynamic programs");
        // The loader itself says what it would load for a program.
        let said = Command::new(&loader.path).arg("--list").arg(std::env::current_exe().unwrap()).output();
        let said = String::from_utf8(said.unwrap().stdout).unwrap();
        let mut wanted: Vec<PathBuf> = said
            .lines()
            .filter_map(|line| line.split(" => ").nth(1)?.split(' ').next().map(PathBuf::from))
            .collect();
        wanted.sort();
        let mut found: Vec<PathBuf> = capsule.libraries.iter().map(|part| part.path.clone()).collect();
        found.sort();
        assert!(!found.is_empty());
        assert_eq!(found, wanted, "{said}");
        assert!(capsule.parts().all(|part| part.bytes == fs::read(&part.path).unwrap()));
    }

    #[test]
    fn a_capsule_runs_where_nothing_else_is() {
        let capsule = Capsule::of_this_program().unwrap();
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("program");
        fs::write(&program, &capsule.program).unwrap();
        for part in capsule.parts() {
            let path = place.path().join(part.path.file_name().unwrap());
            fs::write(&path, &part.bytes).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(part.mode);
            fs::set_permissions(path, mode).unwrap();
        }
        let loader = capsule.loader.as_ref().unwrap().path.file_name().unwrap();
        let ran = Command::new(place.path().join(loader))
            .arg("--library-path")
            .arg(place.path())
            .arg(&program)
            .arg("--list")
            .env_clear()
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        assert!(String::from_utf8_lossy(&ran.stdout).contains("a_capsule_runs_where_nothing_else_is"));
    }

    #[test]
    fn what_is_no_program_is_said() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        let error = Capsule::of(&script).unwrap_err();
        assert!(matches!(error, CapsuleError::Form { .. }), "{error}");
        let error = Capsule::of(&place.path().join("absent")).unwrap_err();
        assert!(matches!(error, CapsuleError::Read { .. }), "{error}");
    }
}
