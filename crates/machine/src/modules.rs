//! Modules of the running kernel: what they say of themselves, loaded from a directory, and removed again.

mod modinfo;

pub use modinfo::{Modinfo, NotAModule, module_name};

use crate::Root;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::system::{delete_module, finit_module};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where a machine that kduel made has the modules that its work loads, as `NAME.ko`.
pub const CARRIED_MODULES: &str = "/kduel/modules";

/// A module of the kernel that some work loads itself, with parameters of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleNeed {
    /// Its name as the kernel says it.
    pub name: &'static str,
    /// The option of the kernel that builds it when it is `m`.
    pub option: &'static str,
}

/// What can go wrong with modules.
#[derive(Debug, Error)]
pub enum ModuleError {
    /// There is no such file.
    #[error(
        "there is no module {}{}",
        path.display(),
        needed_by.as_ref().map(|by| format!(", which {by} needs")).unwrap_or_default()
    )]
    Absent {
        /// The file.
        path: PathBuf,
        /// The module that depends on it, when it was not asked for itself.
        needed_by: Option<String>,
    },
    /// A file cannot be read.
    #[error("cannot read the module {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// A file is no module.
    #[error("{} is no module of a kernel: {why}", path.display())]
    NotAModule {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: NotAModule,
    },
    /// The kernel does not take it.
    #[error("{} cannot be loaded: {error}; the kernel log may say more", path.display())]
    NotTaken {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        error: Errno,
    },
    /// It stays loaded.
    #[error("the module {name} cannot be removed: {error}; try `rmmod {name}`")]
    Stays {
        /// The module.
        name: String,
        /// What the kernel said.
        error: Errno,
    },
}

/// The files of the module `name` and of all that it depends on in a directory of unpacked `NAME.ko`, each behind those
/// that it depends on: the order to load them in.
///
/// # Errors
/// When one is not there or is no module.
pub fn in_load_order(directory: &Path, name: &str) -> Result<Vec<PathBuf>, ModuleError> {
    let mut met = BTreeSet::new();
    let mut order = Vec::new();
    // What is left to do: whether all that a module depends on is before it already, and who asked for it.
    let mut stack = vec![(module_name(name), false, None)];
    while let Some((name, is_ready, needed_by)) = stack.pop() {
        let path = directory.join(format!("{name}.ko"));
        if is_ready {
            order.push(path);
            continue;
        }
        if !met.insert(name.clone()) {
            continue;
        }
        let info = modinfo_of(&path, needed_by)?;
        stack.push((name.clone(), true, None));
        let there = |name: &String| directory.join(format!("{name}.ko")).exists();
        let before = info.depends.into_iter().chain(info.wishes.into_iter().filter(there));
        stack.extend(before.map(|before| (before, false, Some(name.clone()))));
    }
    Ok(order)
}

fn modinfo_of(path: &Path, needed_by: Option<String>) -> Result<Modinfo, ModuleError> {
    let path = path.to_path_buf();
    match fs::read(&path) {
        Ok(bytes) => Modinfo::read(&bytes).map_err(|why| ModuleError::NotAModule { path, why }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ModuleError::Absent { path, needed_by }),
        Err(error) => Err(ModuleError::Read { path, error }),
    }
}

/// Loads a module with these parameters, `name=value` separated by blanks. One that is there already stays as it is.
///
/// # Errors
/// When the file cannot be opened or the kernel does not take it.
pub fn load(path: &Path, parameters: &str) -> Result<(), ModuleError> {
    let not_taken = |error| ModuleError::NotTaken { path: path.into(), error };
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(not_taken)?;
    // A parameter with a zero byte would end there.
    let parameters = CString::new(parameters).map_err(|_| not_taken(Errno::INVAL))?;
    match finit_module(&file, &parameters, 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(not_taken(error)),
    }
}

/// Loads the module `name` of a directory with these parameters, behind all that it depends on. Where it is not taken, what
/// was loaded for it goes again.
///
/// # Errors
/// As [`in_load_order`] and [`load`].
pub fn load_from(directory: &Path, name: &str, parameters: &str) -> Result<(), ModuleError> {
    let files = in_load_order(directory, name)?;
    let before = ModulesBefore::now(files.iter().rev().filter_map(|file| file.file_stem()?.to_str()));
    let last = files.len().saturating_sub(1);
    let mut files = files.iter().enumerate();
    let loaded = files.try_for_each(|(place, file)| load(file, if place == last { parameters } else { "" }));
    if loaded.is_err() {
        // There is already an error to tell.
        let _ = before.remove();
    }
    loaded
}

/// The modules that are loaded, each with those that use it.
fn loaded(root: &Root) -> BTreeMap<String, Vec<String>> {
    // A kernel without modules has no such file.
    let text = root.text("proc/modules").unwrap_or_default();
    let line = |line: &str| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?.to_string();
        // Its size, how often it is used, and by whom: `torture 28672 1 locktorture,` or `-`.
        let users = fields.nth(2)?.split(',').filter(|user| !matches!(*user, "" | "-"));
        Some((name, users.map(String::from).collect()))
    };
    text.lines().filter_map(line).collect()
}

/// Whether a module is loaded.
pub fn is_loaded(root: &Root, name: &str) -> bool {
    loaded(root).contains_key(&module_name(name))
}

/// Which modules were there before some work that loads its own, so that these and what came with them can be removed.
#[derive(Debug)]
pub struct ModulesBefore {
    names: Vec<String>,
    before: BTreeSet<String>,
}

impl ModulesBefore {
    /// Those that are there now, before work that loads `names`, each named before those that it depends on.
    pub fn now<'a>(names: impl IntoIterator<Item = &'a str>) -> ModulesBefore {
        let names: Vec<String> = names.into_iter().map(module_name).collect();
        // Most work loads none, and nobody has to know what is there.
        let before = match names.is_empty() {
            true => BTreeSet::new(),
            false => loaded(&Root::real()).into_keys().collect(),
        };
        ModulesBefore { names, before }
    }

    /// Removes those that were not there before, and what they brought and nobody else uses.
    ///
    /// # Errors
    /// When one of them stays. What it brought may stay without harm.
    pub fn remove(&self) -> Result<(), ModuleError> {
        if self.names.is_empty() {
            return Ok(());
        }
        for name in self.to_remove(&loaded(&Root::real())) {
            let removed = match CString::new(name.as_str()) {
                Ok(name) => delete_module(&name, OFlags::NONBLOCK.bits() as i32),
                Err(_) => Err(Errno::INVAL),
            };
            match removed {
                Err(error) if self.names.contains(&name) => return Err(ModuleError::Stays { name, error }),
                _ => {}
            }
        }
        Ok(())
    }

    /// What to remove of `there`, in order: a module goes before what it uses.
    fn to_remove(&self, there: &BTreeMap<String, Vec<String>>) -> Vec<String> {
        let is_new = |name: &String| there.contains_key(name) && !self.before.contains(name);
        let mut order: Vec<String> = self.names.iter().filter(|name| is_new(name)).cloned().collect();
        while let Some((brought, _)) = there.iter().find(|(module, users)| {
            let only_by_them = !users.is_empty() && users.iter().all(|user| order.contains(user));
            only_by_them && is_new(module) && !order.contains(module)
        }) {
            order.push(brought.clone());
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_module_goes_with_what_it_brought_and_nothing_else() {
        let top = TempDir::new().unwrap();
        fs::create_dir(top.path().join("proc")).unwrap();
        let text = "top 4096 0 - Live 0x0\nleft 4096 1 top, Live 0x0\nbase 4096 2 top,left, Live 0x0\n\
                    shared 4096 2 top,other, Live 0x0\nother 4096 0 - Live 0x0\nold 4096 1 top, Live 0x0\n";
        fs::write(top.path().join("proc/modules"), text).unwrap();
        let root = Root::at(top.path());
        let there = loaded(&root);
        let removed = |before: &[&str]| {
            let before = before.iter().map(|name| name.to_string()).collect();
            ModulesBefore { names: vec!["top".into()], before }.to_remove(&there)
        };
        assert_eq!(removed(&["old", "other"]), ["top", "left", "base"]);
        assert_eq!(removed(&["top"]), Vec::<String>::new(), "one that was there stays");
        assert!(is_loaded(&root, "top") && !is_loaded(&root, "none"));
        assert!(loaded(&Root::at("/no/such/place")).is_empty());
    }

    /// A module with this section `.modinfo`.
    fn plant(top: &TempDir, name: &str, modinfo: &str) {
        use object::write::Object;
        use object::{Architecture, BinaryFormat, Endianness, SectionKind};
        let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let section = file.add_section(Vec::new(), b".modinfo".to_vec(), SectionKind::ReadOnlyData);
        file.append_section_data(section, modinfo.as_bytes(), 1);
        fs::write(top.path().join(format!("{name}.ko")), file.write().unwrap()).unwrap();
    }

    #[test]
    fn each_module_is_loaded_behind_what_it_depends_on() {
        let top = TempDir::new().unwrap();
        plant(&top, "top", "depends=left,right\0softdep=pre: wished absent post: late\0");
        plant(&top, "left", "depends=\0");
        plant(&top, "right", "depends=left\0");
        plant(&top, "wished", "depends=top\0");
        let order = in_load_order(top.path(), "top").unwrap();
        let names: Vec<&str> = order.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["wished", "left", "right", "top"], "a circle ends, too");
        plant(&top, "left", "depends=gone\0");
        let error = in_load_order(top.path(), "top").unwrap_err().to_string();
        assert!(error.contains("gone.ko, which left needs"), "{error}");
    }

    #[test]
    fn a_directory_without_the_module_and_a_file_that_is_none_are_named() {
        let top = TempDir::new().unwrap();
        let error = in_load_order(top.path(), "lock-torture").unwrap_err();
        assert!(matches!(&error, ModuleError::Absent { needed_by: None, .. }), "{error}");
        assert!(error.to_string().contains("lock_torture.ko"), "{error}");
        fs::write(top.path().join("text.ko"), "no module\n").unwrap();
        let error = in_load_order(top.path(), "text").unwrap_err();
        assert!(matches!(&error, ModuleError::NotAModule { .. }), "{error}");
        assert!(load(&top.path().join("none.ko"), "").unwrap_err().to_string().contains("none.ko"));
    }
}
