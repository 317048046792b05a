//! What a kernel module says of itself in its section `.modinfo`.

use object::{Object as _, ObjectSection as _};
use thiserror::Error;

/// What is needed to load a module.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Modinfo {
    /// Modules that must be loaded before it.
    pub depends: Vec<String>,
    /// Modules that should be loaded before it, where the kernel has them.
    pub wishes: Vec<String>,
    /// The release of the kernel that it was built for.
    pub release: Option<String>,
}

/// Bytes that are no kernel module, with the reason.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct NotAModule(String);

impl Modinfo {
    /// Reads the unpacked bytes of a module.
    ///
    /// # Errors
    /// When they are none.
    pub fn read(bytes: &[u8]) -> Result<Modinfo, NotAModule> {
        let damaged = |error: object::Error| NotAModule(error.to_string());
        let file = object::File::parse(bytes).map_err(damaged)?;
        let section = file
            .section_by_name(".modinfo")
            .ok_or_else(|| NotAModule("it has no section .modinfo, so it is no kernel module".into()))?;
        let data = section.data().map_err(damaged)?;
        let mut found = Modinfo::default();
        for field in data.split(|&byte| byte == 0) {
            let field = String::from_utf8_lossy(field);
            match field.split_once('=') {
                Some(("depends", names)) => {
                    let names = names.split(',').filter(|name| !name.is_empty());
                    found.depends.extend(names.map(module_name));
                }
                Some(("softdep", names)) => {
                    // `pre: one two post: three`; what comes after a module is no matter of loading it.
                    let before = names.split("post:").next().unwrap_or_default();
                    let before = before.split("pre:").nth(1).unwrap_or_default();
                    found.wishes.extend(before.split_whitespace().map(module_name));
                }
                Some(("vermagic", text)) => {
                    found.release = text.split_whitespace().next().map(String::from);
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// The name of a module as the kernel says it: file names may have `-` where the kernel has `_`.
pub fn module_name(written: &str) -> String {
    written.replace('-', "_")
}
