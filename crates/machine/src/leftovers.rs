//! What the processes of a trial leave behind that outlives them.

/// Removes the System V objects that dead processes of trials have left, and their directories for files in the
/// usual place for temporary files, and names what it removed.
pub fn remove_leftovers() -> Vec<String> {
    let mut removed = crate::system_v::remove_ownerless();
    removed.extend(crate::scratch::remove_ownerless(&std::env::temp_dir()));
    removed
}
