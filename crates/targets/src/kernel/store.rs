//! Where modules are found: in directories, in build trees, in packages.

use crate::kernel::unpack::{unpacked, whole};
use crate::kernel::{KernelError, package};
use machine::modules::module_name;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Larger modules are not seen.
const MODULE_BYTES_MAX: u64 = 256 << 20;

/// The list of what is built in has some 30 KiB.
const LIST_BYTES_MAX: u64 = 8 << 20;

/// Where the modules of a kernel are.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Looked for at these places.
    Absent(Vec<PathBuf>),
    /// lib/modules/RELEASE, or a flat directory.
    Directory(PathBuf),
    /// The tree of a build, which lists them.
    Tree(PathBuf),
    /// Behind the image, or in a package of their own.
    Packages(Vec<PathBuf>),
}

/// What a source holds.
#[derive(Default)]
pub(super) struct Store {
    modules: BTreeMap<String, Stored>,
    built_in: BTreeSet<String>,
}

/// Where the bytes of a module are, as yet packed.
pub(super) struct Stored {
    path: PathBuf,
    bytes: Option<Vec<u8>>,
}

impl Stored {
    /// Where it is: a file, or a name inside a package behind the package's.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes.
    pub(super) fn unpacked(&self) -> Result<Vec<u8>, KernelError> {
        let failed = |error| KernelError::Read { path: self.path.clone(), error };
        let reader = match &self.bytes {
            Some(bytes) => unpacked(bytes.as_slice(), &self.path)?,
            None => unpacked(fs::File::open(&self.path).map_err(failed)?, &self.path)?,
        };
        whole(reader, MODULE_BYTES_MAX, &self.path)
    }
}

impl Store {
    /// All that a source holds.
    pub(super) fn of(source: &Source) -> Result<Store, KernelError> {
        let mut store = Store::default();
        match source {
            Source::Absent(_) => {}
            Source::Directory(path) => {
                store.read_built_in(&path.join("modules.builtin"));
                store.walk(path)?;
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

    /// The module of that name, as [`module_name`] writes it.
    pub(super) fn get(&self, name: &str) -> Option<&Stored> {
        self.modules.get(name)
    }

    /// Whether the kernel itself holds the module of that name, as far as is known.
    pub(super) fn is_built_in(&self, name: &str) -> bool {
        self.built_in.contains(name)
    }

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
    fn walk(&mut self, directory: &Path) -> Result<(), KernelError> {
        let failed = |error| KernelError::Read { path: directory.into(), error };
        let entries: Result<Vec<fs::DirEntry>, _> = fs::read_dir(directory).map_err(failed)?.collect();
        let mut paths: Vec<PathBuf> = entries.map_err(failed)?.iter().map(fs::DirEntry::path).collect();
        paths.sort();
        for path in paths {
            // `build` and `source` are links into whole trees.
            let is_link = path.is_symlink();
            if path.is_dir() && !is_link {
                self.walk(&path)?;
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
