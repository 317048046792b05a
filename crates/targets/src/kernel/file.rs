//! An image in a file, and what lies beside it or where distributions keep it.

use crate::kernel::store::Source;
use crate::kernel::{INSTALLED, Kernel, KernelError, Modules, directory, image};
use machine::{KernelConfig, Root};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Configurations have some 130 KiB.
pub(super) const CONFIG_BYTES_MAX: u64 = 8 << 20;

/// Where a build tree keeps its image. `arch/x86_64/boot/bzImage` is a link to it.
pub(super) const IMAGE_OF_TREE: &str = "arch/x86/boot/bzImage";

/// The kernel in a file.
pub(super) fn open(root: &Root, path: &Path, given: &str) -> Result<Kernel, KernelError> {
    let (image, version) = image::read(path)?;
    let release = version.release.as_deref();
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    // Whoever names the image of a build tree means that build.
    let tree = real.ends_with(IMAGE_OF_TREE).then(|| real.ancestors().nth(4)).flatten();
    let (config, modules) = match tree {
        Some(tree) => {
            (config_in(tree, &[".config"]), Modules::new(Source::Tree(tree.into()), release, given))
        }
        None => (config_beside(root, path, release), modules_beside(root, path, release, given)),
    };
    let (release, build) = (version.release, version.build);
    Ok(Kernel { image, release, build, config, modules, given_as: given.into() })
}

/// The kernel that runs now.
pub(super) fn installed(root: &Root) -> Result<Kernel, KernelError> {
    let said = root.path("proc/sys/kernel/osrelease");
    let release = std::fs::read_to_string(&said).map_err(|error| KernelError::Read { path: said, error })?;
    let release = release.trim_end();
    let places = [
        format!("boot/vmlinuz-{release}"),
        format!("usr/lib/modules/{release}/vmlinuz"),
        format!("lib/modules/{release}/vmlinuz"),
        format!("lib/modules/{release}/build/{IMAGE_OF_TREE}"),
    ];
    match places.iter().map(|place| root.path(place)).find(|place| place.exists()) {
        Some(path) => open(root, &path, INSTALLED),
        None => Err(KernelError::NotInstalled {
            release: release.into(),
            looked_for: places.iter().map(|place| root.path(place).display().to_string()).collect(),
        }),
    }
}

/// What the name of an image says behind `bzImage-` or `vmlinuz-`: those who keep several kernels in a directory name what
/// belongs to them alike.
fn suffix(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("bzImage-")
        .or_else(|| name.strip_prefix("vmlinuz-"))
        .filter(|suffix| !suffix.is_empty())
}

/// The names behind `what-` that belong to an image: by its own name, and by its release.
fn names(what: &str, path: &Path, release: Option<&str>) -> Vec<String> {
    let mut names: Vec<String> =
        [suffix(path), release].into_iter().flatten().map(|of| format!("{what}-{of}")).collect();
    names.push(what.into());
    names
}

fn config_beside(root: &Root, path: &Path, release: Option<&str>) -> Option<String> {
    let beside = names("config", path, release);
    let beside: Vec<&str> = beside.iter().map(String::as_str).collect();
    config_in(directory::of(path), &beside).or_else(|| {
        let release = release?;
        let places = [
            format!("boot/config-{release}"),
            format!("usr/lib/modules/{release}/config"),
            format!("lib/modules/{release}/config"),
            format!("lib/modules/{release}/build/.config"),
        ];
        places.iter().find_map(|place| config(&root.path(place)))
    })
}

fn config_in(folder: &Path, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| config(&folder.join(name)))
}

/// The text of a file, if it is the configuration of a kernel.
fn config(path: &Path) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    KernelConfig::is_in(&text).then_some(text)
}

fn modules_beside(root: &Root, path: &Path, release: Option<&str>, given: &str) -> Modules {
    let folder = directory::of(path);
    let mut places: Vec<PathBuf> = Vec::new();
    // lib/modules/RELEASE/vmlinuz lies among its modules.
    if folder.join("modules.order").is_file() {
        places.push(folder.into());
    }
    places.extend(names("modules", path, release).iter().map(|name| folder.join(name)));
    if let Some(release) = release {
        // A package that was unpacked with dpkg-deb has boot beside lib.
        for top in [folder.into(), directory::of(folder).into(), root.path("")] {
            places.extend(["lib/modules", "usr/lib/modules"].map(|inside| top.join(inside).join(release)));
        }
    }
    let mut met = BTreeSet::new();
    places.retain(|place| met.insert(place.clone()));
    let source = match places.iter().find(|place| place.is_dir()) {
        Some(place) => Source::Directory(place.clone()),
        None => Source::Absent(places),
    };
    Modules::new(source, release, given)
}
