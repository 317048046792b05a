//! The modules of a kernel, with what they depend on.

use crate::kernel::KernelError;
use crate::kernel::store::{Source, Store};
use crate::kernel::unpack::damaged;
use machine::modules::{Modinfo, module_name};
use std::collections::BTreeSet;

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

impl Modules {
    /// What lies in `source` for the kernel of `release` that was asked for as `given`.
    pub(super) fn new(source: Source, release: Option<&str>, given: &str) -> Modules {
        Modules { source, release: release.map(String::from), given: given.into() }
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
        let store = Store::of(&self.source)?;
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
                    let wanted = !done.contains(&name) && (needed || store.get(&name).is_some());
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
        let Some(stored) = store.get(name) else {
            if store.is_built_in(name) {
                return Ok(None);
            }
            let (given, name, looked_for) = (self.given.clone(), name.into(), self.looked_for());
            return Err(KernelError::NoModule { given, name, needed_by, looked_for });
        };
        let bytes = stored.unpacked()?;
        let info = Modinfo::read(&bytes).map_err(|error| damaged(stored.path(), &error))?;
        if let (Some(found), Some(wanted)) = (&info.release, &self.release)
            && found != wanted
        {
            let (found, wanted) = (found.clone(), wanted.clone());
            return Err(KernelError::OtherKernel { path: stored.path().into(), found, wanted });
        }
        let needed = info.depends.into_iter().map(|name| Before { name, needed: true });
        let before = needed.chain(info.wishes.into_iter().map(|name| Before { name, needed: false }));
        let module = Module { name: name.into(), bytes };
        Ok(Some(Loaded { module, before: before.collect() }))
    }

    fn looked_for(&self) -> String {
        match &self.source {
            Source::Absent(places) => {
                let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
                format!("it has no modules here, that is none of {}", places.join(", "))
            }
            Source::Directory(path) => format!("its modules are in {}", path.display()),
            Source::Tree(path) => format!("{} lists what was built", path.join("modules.order").display()),
            Source::Packages(_) => "if a package of its own has its modules, join that by +".into(),
        }
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
