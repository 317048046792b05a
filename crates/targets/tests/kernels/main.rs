//! What `kernel=` takes, and what it says of what it does not take.
#![cfg(test)]

mod forms;
mod make;
mod modules;
mod torn;

use machine::Root;
use std::path::Path;
use targets::kernel::{Kernel, KernelError, open_on};
use tempfile::TempDir;

/// Opens `path` on a machine of which nothing else is there.
fn open(path: &Path) -> Result<Kernel, KernelError> {
    let nothing = TempDir::new().unwrap();
    open_on(&Root::at(nothing.path()), path.to_str().unwrap())
}

/// The text of the error of a kernel that must not open.
fn refused(path: &Path) -> String {
    match open(path) {
        Ok(kernel) => panic!("{} was taken for a kernel: {kernel:?}", path.display()),
        Err(error) => error.to_string(),
    }
}
