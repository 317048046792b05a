//! Synthetic trees.

use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Makes a tree of these files, in memory where that is possible: large ones take a disk under load half a minute.
pub fn tree(files: &[(&str, &str)]) -> TempDir {
    let tree = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    for (inside, text) in files {
        plant(tree.path(), inside, text);
    }
    tree
}

/// Makes or replaces a file of a tree.
pub fn plant(top: &Path, inside: &str, text: &str) {
    let path = top.join(inside);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
