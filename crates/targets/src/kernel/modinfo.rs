//! What a kernel module says of itself in its section `.modinfo`.

use crate::kernel::KernelError;
use crate::kernel::unpack::damaged;
use object::{Object as _, ObjectSection as _};
use std::path::Path;

/// What is needed to load a module.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Modinfo {
    /// Modules that must be loaded before it.
    pub(super) depends: Vec<String>,
    /// Modules that should be loaded before it, where the kernel has them.
    pub(super) wishes: Vec<String>,
    /// The release of the kernel that it was built for.
    pub(super) release: Option<String>,
}

/// Reads a module.
pub(super) fn read(bytes: &[u8], path: &Path) -> Result<Modinfo, KernelError> {
    let file = object::File::parse(bytes).map_err(|error| damaged(path, &error))?;
    let section = file.section_by_name(".modinfo");
    let section =
        section.ok_or_else(|| damaged(path, &"it has no section .modinfo, so it is no kernel module"))?;
    let data = section.data().map_err(|error| damaged(path, &error))?;
    let mut found = Modinfo::default();
    for field in data.split(|&byte| byte == 0) {
        let field = String::from_utf8_lossy(field);
        match field.split_once('=') {
            Some(("depends", names)) => {
                found.depends.extend(names.split(',').filter(|name| !name.is_empty()).map(module_name));
            }
            Some(("softdep", names)) => {
                // `pre: one two post: three`; what comes after a module is no matter of loading it.
                let before = names.split("post:").next().unwrap_or_default();
                let before = before.split("pre:").nth(1).unwrap_or_default();
                found.wishes.extend(before.split_whitespace().map(module_name));
            }
            Some(("vermagic", text)) => found.release = text.split_whitespace().next().map(String::from),
            _ => {}
        }
    }
    Ok(found)
}

/// The name of a module as the kernel says it: file names may have `-` where the kernel has `_`.
pub(super) fn module_name(written: &str) -> String {
    written.replace('-', "_")
}
