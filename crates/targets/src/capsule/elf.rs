//! What the headers of a program or library say about what it needs.

use super::CapsuleError;
use object::Endianness;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use std::path::{Path, PathBuf};

/// A 64-bit ELF file, as far as the loader cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Elf {
    /// The number of its architecture.
    pub(super) machine: u16,
    /// The loader that it wants.
    pub(super) loader: Option<PathBuf>,
    /// The names of the libraries that it needs.
    pub(super) needed: Vec<String>,
    /// Where it says that they are, and those that its libraries need.
    pub(super) rpath: Vec<PathBuf>,
    /// Where it says that they are.
    pub(super) runpath: Vec<PathBuf>,
}

impl Elf {
    /// Reads the headers of a file that lies at `path`.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Elf, CapsuleError> {
        let wrong = |why: object::Error| CapsuleError::Form { path: path.into(), why: why.to_string() };
        let file = ElfFile64::<Endianness>::parse(bytes).map_err(wrong)?;
        let endian = file.endian();
        let mut loader = None;
        for header in file.elf_program_headers() {
            let found = header.interpreter(endian, bytes).map_err(wrong)?;
            loader = loader.or(found.map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned())));
        }
        let mut elf = Elf {
            machine: file.elf_header().e_machine(endian).0,
            loader,
            needed: Vec::new(),
            rpath: Vec::new(),
            runpath: Vec::new(),
        };
        let table = file.elf_dynamic_table().map_err(wrong)?;
        let origin = path.parent().unwrap_or(Path::new("/"));
        for entry in table.iter() {
            let into_places = match entry.tag {
                DT_NEEDED => None,
                DT_RPATH => Some(&mut elf.rpath),
                DT_RUNPATH => Some(&mut elf.runpath),
                _ => continue,
            };
            let text = String::from_utf8_lossy(table.string(entry).map_err(wrong)?);
            match into_places {
                None => elf.needed.push(text.into_owned()),
                Some(places) => places.extend(text.split(':').map(|place| expand(place, origin))),
            }
        }
        if !elf.runpath.is_empty() {
            elf.rpath.clear();
        }
        Ok(elf)
    }
}

/// `$ORIGIN` is the directory of the file that says so.
fn expand(place: &str, origin: &Path) -> PathBuf {
    let origin = origin.to_string_lossy();
    PathBuf::from(place.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
}
