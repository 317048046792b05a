//! The modules of a kernel, with what they depend on.

use crate::kernel::modinfo::{self, module_name};
use crate::kernel::unpack::{unpacked, whole};
use crate::kernel::{KernelError, package};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Larger modules are not seen.
const MODULE_BYTES_MAX: u64 = 256 << 20;

/// What the list of what is built in, and the list of what was built, may have.
const LIST_BYTES_MAX: u64 = 8 << 20;

/// How deep the directories of a kernel's modules go, and more.
const DEPTH_MAX: u32 = 16;

/// A module, ready to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name as the kernel says it: `virtio_blk`.
    pub name: String,
    /// The unpacked ELF file.
    pub bytes: Vec<u8>,
}

/// The modules of a kernel. Nothing is read before [`Modules::closure`] asks for some.
#[derive(Clone, Debug)]
pub struct Modules {
    source: Source,
    /// What modules must be built for, where it is known.
    release: Option<String>,
    given: String,
}

#[derive(Clone, Debug)]
enum Source {
    /// Looked for at these places.
    Absent(Vec<PathBuf>),
    /// lib/modules/RELEASE, or a flat directory.
    Directory(PathBuf),
    /// The tree of a build, which lists them.
    Tree(PathBuf),
    Packages(Vec<PathBuf>),
}

/// What a source holds.
#[derive(Default)]
struct Store {
    modules: BTreeMap<String, Stored>,
    built_in: BTreeSet<String>,
}

/// Where the bytes of a module are, as yet packed.
struct Stored {
    path: PathBuf,
    bytes: Option<Vec<u8>>,
}

impl Modules {
    pub(super) fn absent(looked_for: &[PathBuf], given: &str) -> Modules {
        Modules { source: Source::Absent(looked_for.to_vec()), release: None, given: given.into() }
    }

    pub(super) fn of_directory(path: &Path, release: Option<&str>, given: &str) -> Modules {
        let release = release.map(String::from);
        Modules { source: Source::Directory(path.into()), release, given: given.into() }
    }

    pub(super) fn of_tree(path: &Path, release: Option<&str>, given: &str) -> Modules {
        let release = release.map(String::from);
        Modules { source: Source::Tree(path.into()), release, given: given.into() }
    }

    pub(super) fn of_packages(paths: &[PathBuf], release: Option<&str>, given: &str) -> Modules {
        let release = release.map(String::from);
        Modules { source: Source::Packages(paths.to_vec()), release, given: given.into() }
    }

    /// The modules of these names and all that they depend on, each behind what it depends on: the order to load them in.
    /// What is built into the kernel is left out. `-` and `_` are the same in names.
    ///
    /// # Errors
    /// When one is not there, cannot be read, or was built for another kernel.
    pub fn closure(&self, names: &[&str]) -> Result<Vec<Module>, KernelError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let store = self.store()?;
        let mut done = BTreeSet::new();
        let mut ordered = Vec::new();
        for name in names {
            let name = module_name(name);
            if !done.contains(&name)
                && let Some(first) = self.load(&store, &name, None)?
            {
                done.insert(name);
                self.add(&store, first, &mut done, &mut ordered)?;
            }
        }
        Ok(ordered)
    }

    /// Adds a module behind what it depends on. A stack of our own: a chain of dependencies may be as long as whoever made
    /// the package likes.
    fn add(
        &self,
        store: &Store,
        first: Loaded,
        done: &mut BTreeSet<String>,
        ordered: &mut Vec<Module>,
    ) -> Result<(), KernelError> {
        let mut stack = vec![first];
        while let Some(mut last) = stack.pop() {
            match last.before.pop() {
                None => ordered.push(last.module),
                Some(Before { name, needed }) => {
                    let wanted = !done.contains(&name) && (needed || store.modules.contains_key(&name));
                    let by = last.module.name.clone();
                    stack.push(last);
                    if wanted && let Some(next) = self.load(store, &name, Some(by))? {
                        // Marked when it is met, so that a circle ends.
                        done.insert(name);
                        stack.push(next);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a module; `None` where it is built in.
    fn load(
        &self,
        store: &Store,
        name: &str,
        needed_by: Option<String>,
    ) -> Result<Option<Loaded>, KernelError> {
        let Some(stored) = store.modules.get(name) else {
            if store.built_in.contains(name) {
                return Ok(None);
            }
            let (given, name, looked_for) = (self.given.clone(), name.into(), self.looked_for());
            return Err(KernelError::NoModule { given, name, needed_by, looked_for });
        };
        let bytes = stored.unpacked()?;
        let info = modinfo::read(&bytes, &stored.path)?;
        if let (Some(found), Some(wanted)) = (&info.release, &self.release)
            && found != wanted
        {
            let (found, wanted) = (found.clone(), wanted.clone());
            return Err(KernelError::OtherKernel { path: stored.path.clone(), found, wanted });
        }
        let needed = info.depends.into_iter().map(|name| Before { name, needed: true });
        let before = needed.chain(info.wishes.into_iter().map(|name| Before { name, needed: false }));
        let module = Module { name: name.into(), bytes };
        Ok(Some(Loaded { module, before: before.collect() }))
    }

    fn looked_for(&self) -> String {
        let list = |places: &[PathBuf]| -> String {
            places.iter().map(|place| place.display().to_string()).collect::<Vec<String>>().join(", ")
        };
        match &self.source {
            Source::Absent(places) if places.is_empty() => "it has no modules".into(),
            Source::Absent(places) => {
                format!("of the places for its modules none is there: {}", list(places))
            }
            Source::Directory(path) => format!("its modules are in {}", path.display()),
            Source::Tree(path) => format!("{} lists what was built", path.join("modules.order").display()),
            Source::Packages(paths) => {
                format!(
                    "its package holds none of that name: {}; join the one with its modules by +",
                    list(paths)
                )
            }
        }
    }

    fn store(&self) -> Result<Store, KernelError> {
        let mut store = Store::default();
        match &self.source {
            Source::Absent(_) => {}
            Source::Directory(path) => {
                store.read_built_in(&path.join("modules.builtin"));
                store.walk(path, 0)?;
            }
            Source::Tree(path) => {
                store.read_built_in(&path.join("modules.builtin"));
                store.read_order(path);
            }
            Source::Packages(paths) => {
                for path in paths {
                    store.read_package(path)?;
                }
            }
        }
        Ok(store)
    }
}

/// A module and what has to be loaded before it.
struct Loaded {
    module: Module,
    before: Vec<Before>,
}

struct Before {
    name: String,
    /// Whether the module does not load without it.
    needed: bool,
}

impl Stored {
    fn unpacked(&self) -> Result<Vec<u8>, KernelError> {
        let failed = |error| KernelError::Read { path: self.path.clone(), error };
        let reader = match &self.bytes {
            Some(bytes) => unpacked(bytes.as_slice(), &self.path)?,
            None => unpacked(fs::File::open(&self.path).map_err(failed)?, &self.path)?,
        };
        whole(reader, MODULE_BYTES_MAX, &self.path)
    }
}

impl Store {
    fn add(&mut self, path: PathBuf, bytes: Option<Vec<u8>>) {
        if let Some(name) = name_of(&path) {
            self.modules.entry(name).or_insert(Stored { path, bytes });
        }
    }

    /// Adds what modules.builtin lists. Without the list nothing is known to be built in.
    fn read_built_in(&mut self, path: &Path) {
        if let Ok(text) = fs::read_to_string(path) {
            self.built_in(&text);
        }
    }

    fn built_in(&mut self, text: &str) {
        self.built_in.extend(text.lines().filter_map(|line| name_of(Path::new(line.trim()))));
    }

    /// Adds the modules below a directory.
    fn walk(&mut self, directory: &Path, depth: u32) -> Result<(), KernelError> {
        let failed = |error| KernelError::Read { path: directory.into(), error };
        let entries: Result<Vec<fs::DirEntry>, _> = fs::read_dir(directory).map_err(failed)?.collect();
        let mut paths: Vec<PathBuf> = entries.map_err(failed)?.iter().map(fs::DirEntry::path).collect();
        paths.sort();
        for path in paths {
            // `build` and `source` are links into whole trees.
            let is_link = path.is_symlink();
            if path.is_dir() && !is_link && depth < DEPTH_MAX {
                self.walk(&path, depth + 1)?;
            } else if path.is_file() {
                self.add(path, None);
            }
        }
        Ok(())
    }

    /// Adds the modules that a build tree lists, which is quicker than to look for them among its sources.
    fn read_order(&mut self, tree: &Path) {
        let text = fs::read_to_string(tree.join("modules.order")).unwrap_or_default();
        for line in text.lines() {
            // Newer kernels list objects; older ones list modules, as below kernel/.
            let line = line.trim();
            let module = match line.strip_suffix(".o") {
                Some(stem) => format!("{stem}.ko"),
                None => line.to_string(),
            };
            let path = [module.as_str(), module.strip_prefix("kernel/").unwrap_or(&module)];
            if let Some(path) = path.iter().map(|path| tree.join(path)).find(|path| path.is_file()) {
                self.add(path, None);
            }
        }
    }

    /// Adds the modules of a package. Their bytes stay packed, in memory: a package cannot be entered in its middle.
    fn read_package(&mut self, package: &Path) -> Result<(), KernelError> {
        package::walk(package, &mut |inside, reader| {
            let path = package.join(inside);
            if name_of(&path).is_some() {
                let bytes = whole(reader, MODULE_BYTES_MAX, &path)?;
                self.add(path, Some(bytes));
            } else if path.ends_with("modules.builtin") {
                self.built_in(&String::from_utf8_lossy(&whole(reader, LIST_BYTES_MAX, &path)?));
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}

/// The name of the module in a file such as `virtio-blk.ko.xz`.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = [".ko", ".ko.xz", ".ko.zst", ".ko.gz"].iter().find_map(|end| name.strip_suffix(end))?;
    Some(module_name(stem)).filter(|name| !name.is_empty())
}
