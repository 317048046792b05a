//! Files that are copied to another machine as one, into a directory of their own in kduel's cache there.

use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;

/// Files for one directory, whose name tells what is in it: what lies there once need not be copied again.
#[derive(Clone)]
pub(crate) struct Parcel {
    /// The name of the directory.
    pub(crate) name: String,
    /// What it is, for messages.
    pub(crate) what: &'static str,
    files: Vec<ParcelFile>,
    sums: Vec<String>,
}

/// A file of a parcel.
#[derive(Clone)]
pub(crate) struct ParcelFile {
    /// Its name, without directories.
    pub(crate) name: String,
    /// Whether it is a program.
    pub(crate) executable: bool,
    /// What is in it.
    pub(crate) bytes: Vec<u8>,
}

impl Parcel {
    /// Files by their names.
    pub(crate) fn new(name: String, what: &'static str, files: Vec<ParcelFile>) -> Parcel {
        let sums = files.iter().map(|file| format!("{}  {}", sha256(&file.bytes), file.name)).collect();
        Parcel { name, what, files, sums }
    }

    /// One file, in a directory that is named by what is in it.
    pub(crate) fn of_file(kind: &str, what: &'static str, name: &str, bytes: Vec<u8>) -> Parcel {
        let directory = format!("{kind}-{}", &sha256(&bytes)[..16]);
        let file = ParcelFile { name: name.into(), executable: false, bytes };
        Parcel::new(directory, what, vec![file])
    }

    /// The hashes of the files, in lines as `sha256sum -c` takes them.
    pub(crate) fn sums(&self) -> &[String] {
        &self.sums
    }

    /// How much there is to copy.
    pub(crate) fn bytes(&self) -> usize {
        self.files.iter().map(|file| file.bytes.len()).sum()
    }

    /// All files in one stream.
    pub(crate) fn tar(&self) -> io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::with_capacity(self.bytes() + (64 << 10)));
        for file in &self.files {
            let mut header = tar::Header::new_ustar();
            header.set_size(file.bytes.len() as u64);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_mode(if file.executable { 0o700 } else { 0o600 });
            archive.append_data(&mut header, &file.name, file.bytes.as_slice())?;
        }
        archive.into_inner()
    }
}

fn sha256(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(bytes) {
        // A string takes everything.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_and_the_sum_tell_what_is_inside() {
        let parcel = Parcel::of_file("kernel", "the kernel", "image", b"hello world".to_vec());
        assert_eq!(parcel.name, "kernel-b94d27b9934d3e08");
        assert_eq!(
            parcel.sums(),
            ["b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9  image"]
        );
        assert_eq!(parcel.bytes(), 11);
    }
}
