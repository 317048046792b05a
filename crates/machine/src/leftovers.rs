//! What the processes of a trial leave behind that outlives them.

use std::path::Path;

/// Removes the System V objects that dead processes of trials have left, and their directories for files in the
/// usual places for temporary files, and names what it removed.
pub fn remove_leftovers() -> Vec<String> {
    let mut removed = crate::system_v::remove_ownerless();
    for place in [&std::env::temp_dir(), Path::new("/dev/shm")] {
        removed.extend(crate::scratch::remove_ownerless(place));
    }
    removed
}
