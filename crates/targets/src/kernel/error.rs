use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no kernel to boot.
#[derive(Debug, Error)]
pub enum KernelError {
    /// Nothing has that name.
    #[error(
        "there is no kernel {}: no such file or directory{}",
        path.display(),
        if path.starts_with("~") { "; the shell did not replace the ~, write $HOME instead" } else { "" }
    )]
    Absent {
        /// What was asked for.
        path: PathBuf,
    },
    /// A file is there and cannot be read.
    #[error(
        "cannot read {}: {error}{}",
        path.display(),
        match error.kind() {
            io::ErrorKind::PermissionDenied => "; run kduel as root, or give a copy that this user may read",
            _ => "",
        }
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// A file is something else than a kernel image.
    #[error("{} is no kernel but {found}; kernel= takes a bzImage (also called vmlinuz), a build tree, a .deb or .rpm, \
             or `installed`", path.display())]
    NotAKernel {
        /// The file, with the name inside its package behind it.
        path: PathBuf,
        /// What it is, as far as its first bytes tell: "an archive for an initramfs".
        found: String,
    },
    /// A kernel for other processors.
    #[error("{} is a kernel for {architecture}; kduel boots kernels for x86-64", path.display())]
    OtherArchitecture {
        /// The file or directory.
        path: PathBuf,
        /// The processors that it is for.
        architecture: &'static str,
    },
    /// A file says itself that it should be longer.
    #[error("{} is truncated: {bytes} of {bytes_wanted} bytes are there; copy or download it again", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What is there.
        bytes: u64,
        /// What it should have, by its own header.
        bytes_wanted: u64,
    },
    /// A file contradicts itself.
    #[error("{} is damaged: {why}; copy or download it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file that kduel has no means to unpack.
    #[error("{} is compressed with {method}, which kduel does not read; unpack it and give what is inside", path.display())]
    Compression {
        /// The file.
        path: PathBuf,
        /// The name of the method.
        method: &'static str,
    },
    /// A source or build tree without an image.
    #[error("{} was never built: it has no arch/x86/boot/bzImage; run `make bzImage modules` there", path.display())]
    NeverBuilt {
        /// The tree.
        path: PathBuf,
    },
    /// A directory in which nothing looks like a kernel.
    #[error(
        "there is no kernel in {}: neither arch/x86/boot/bzImage, as in a build tree, nor a file bzImage* or vmlinuz*",
        path.display()
    )]
    EmptyDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// Packages that hold no image.
    #[error(
        "there is no kernel in {given}; the image is in linux-image-VERSION, from Linux 7 on in linux-binary-VERSION, on \
         rpm systems in kernel-core: give that one, and others of the same kernel behind it, joined by +"
    )]
    EmptyPackage {
        /// The packages.
        given: String,
    },
    /// More than one kernel where one was asked for.
    #[error("{given} holds {} kernels: {}; name one of them", images.len(), images.join(", "))]
    Several {
        /// What was asked for.
        given: String,
        /// The images.
        images: Vec<String>,
    },
    /// The image of the running kernel is not on this machine.
    #[error(
        "the running kernel {release} has no image here: {} are not there; name a file or package instead of `installed`",
        looked_for.join(", ")
    )]
    NotInstalled {
        /// What `uname -r` says.
        release: String,
        /// Where it was looked for.
        looked_for: Vec<String>,
    },
    /// A module that the kernel does not have.
    #[error(
        "the kernel {given} has no module {name}{}; {looked_for}",
        needed_by.as_ref().map(|by| format!(", which its module {by} needs")).unwrap_or_default()
    )]
    NoModule {
        /// The kernel as it was asked for.
        given: String,
        /// The module.
        name: String,
        /// The module that depends on it, when it was not asked for itself.
        needed_by: Option<String>,
        /// Where modules were looked for, as a clause.
        looked_for: String,
    },
    /// A module that was built for another kernel, which this one would refuse.
    #[error(
        "the module {} is for the kernel {found}, not for {wanted}; build image and modules together, or take both from \
         one place",
        path.display()
    )]
    OtherKernel {
        /// The module.
        path: PathBuf,
        /// The release that it was built for.
        found: String,
        /// The release of the image.
        wanted: String,
    },
}
