//! Which kernels a machine can be told to boot, and whether what came up is what was asked for.

use super::answer::Life;
use super::host::Host;
use super::parcel::Parcel;
use super::script::Script;
use super::trouble::SshError;
use crate::kernel::{self, ENTRY, ON_HOST, Version};
use std::collections::BTreeMap;

/// A kernel that panics comes back to the machine's own after so many seconds, where it would otherwise wait for somebody to
/// press a button.
const PANIC: &str = "panic=30";
/// `uname -v` has no more room than this.
const BUILD_BYTES_MAX: usize = 64;

/// A kernel that the machine can be told to boot.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    /// What it is called in messages.
    pub(crate) name: String,
    pub(crate) way: Way,
    /// What `uname -r` has to say then, where it is known.
    pub(crate) release: Option<String>,
    /// What `uname -v` has to say then, where it is known.
    pub(crate) build: Option<String>,
    /// The text of its configuration, where it came with one.
    pub(crate) config: Option<String>,
    /// What readers of the report should know.
    pub(crate) remarks: Vec<String>,
}

/// How the machine gets there.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// By kexec, from an image in kduel's cache there unless its path is absolute. The initramfs is empty where there is
    /// none.
    Kexec { image: String, initramfs: String },
    /// By an entry of its boot loader.
    Entry(String),
}

/// The kernels of a run, by the value of `kernel=`.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    found: BTreeMap<Option<String>, Choice>,
}

impl Kernels {
    /// The kernel that `given` means on a machine whose own is `first`; copied there if it is a file here.
    pub(crate) fn find(
        &mut self,
        host: &mut Host,
        first: &Life,
        given: Option<&str>,
    ) -> Result<Choice, SshError> {
        let key = given.map(str::to_string);
        if let Some(found) = self.found.get(&key) {
            return Ok(found.clone());
        }
        let found = match given {
            None | Some(kernel::INSTALLED) => own(host, first)?,
            Some(given) => match (given.strip_prefix(ON_HOST), given.strip_prefix(ENTRY)) {
                (Some(image), _) => on_host(host, image)?,
                (None, Some(entry)) => Choice {
                    name: format!("the boot entry {entry}"),
                    way: Way::Entry(entry.into()),
                    release: None,
                    build: None,
                    config: None,
                    remarks: Vec::new(),
                },
                (None, None) => from_here(host, first, given)?,
            },
        };
        self.found.insert(key, found.clone());
        Ok(found)
    }
}

/// The kernel that the machine ran at first.
fn own(host: &Host, first: &Life) -> Result<Choice, SshError> {
    let answer = host.ask(&Script::find_kernel("", &first.release))?;
    let no_image =
        || SshError::NoImage { host: host.name(), what: format!("image of its own {}", first.release) };
    Ok(Choice {
        name: format!("its own kernel {}", first.release),
        way: Way::Kexec {
            image: answer.get("image").ok_or_else(no_image)?.into(),
            initramfs: answer.get("initramfs").unwrap_or_default().into(),
        },
        release: Some(first.release.clone()),
        build: Some(first.build.clone()),
        config: None,
        remarks: Vec::new(),
    })
}

/// An image that lies there.
fn on_host(host: &Host, image: &str) -> Result<Choice, SshError> {
    let answer = host.ask(&Script::find_kernel(image, ""))?;
    let found =
        answer.get("image").ok_or_else(|| SshError::NoImage { host: host.name(), what: image.into() })?;
    let Version { release, build } = answer.get("banner").map(Version::of).unwrap_or_default();
    let remarks = match (&release, answer.says_yes("modules")) {
        (Some(release), false) => vec![no_modules(&host.name(), release)],
        _ => Vec::new(),
    };
    let way =
        Way::Kexec { image: found.into(), initramfs: answer.get("initramfs").unwrap_or_default().into() };
    Ok(Choice { name: image.into(), way, release, build, config: None, remarks })
}

/// A kernel in a file here. An initramfs has to find the machine's disk: that of the same release if the machine has one, or
/// else that of its own kernel, which is enough for a kernel that has its drivers built in.
fn from_here(host: &mut Host, first: &Life, given: &str) -> Result<Choice, SshError> {
    let name = host.name();
    let opened = kernel::open(given)
        .map_err(|error| SshError::Kernel { host: name.clone(), error: Box::new(error) })?;
    let parcel = Parcel::of_file("kernel", "a kernel", "image", opened.image);
    host.bring(&parcel)?;
    let mut remarks = Vec::new();
    let mut initramfs = None;
    if let Some(release) = &opened.release {
        let answer = host.ask(&Script::find_kernel("", release))?;
        initramfs = answer.get("initramfs").map(str::to_string);
        if !answer.says_yes("modules") {
            remarks.push(no_modules(&name, release));
        }
    }
    if initramfs.is_none() {
        let answer = host.ask(&Script::find_kernel("", &first.release))?;
        initramfs = answer.get("initramfs").map(str::to_string);
        if let Some(file) = &initramfs {
            remarks.push(format!("{given} was booted with the initramfs of {name}'s own kernel, {file}"));
        }
    }
    Ok(Choice {
        name: opened.given_as,
        way: Way::Kexec { image: format!("{}/image", parcel.name), initramfs: initramfs.unwrap_or_default() },
        release: opened.release,
        build: opened.build,
        config: opened.config,
        remarks,
    })
}

fn no_modules(host: &str, release: &str) -> String {
    format!("{host} has no modules for {release}: what is not built into that kernel was missing")
}

/// The boot arguments of a machine's first kernel with more of them behind, of which the kernel takes the last. What its
/// boot loader puts there for itself stays away.
pub(crate) fn command_line(first: &str, append: &[String]) -> String {
    // What stands behind `--` is for process 1.
    let mut words: Vec<&str> = first.split_whitespace().collect();
    let for_process_1 = words.split_off(words.iter().position(|word| *word == "--").unwrap_or(words.len()));
    words.retain(|word| !word.starts_with("BOOT_IMAGE=") && !word.starts_with("initrd="));
    words.extend(append.iter().map(String::as_str));
    if !words.iter().any(|word| word.starts_with("panic=")) {
        words.push(PANIC);
    }
    words.extend(for_process_1);
    words.join(" ")
}

impl Choice {
    /// How the kernel that came up differs from this one, booted with `command_line` where that is known.
    pub(crate) fn differs_from(&self, came: &Life, command_line: Option<&str>) -> Option<String> {
        let mut differences = Vec::new();
        if let Some(release) = self.release.as_ref().filter(|release| **release != came.release) {
            differences.push(format!("uname -r is `{}` and not `{release}`", came.release));
        }
        if let Some(build) = self.build.as_ref().filter(|build| !is_build(&came.build, build)) {
            differences.push(format!("uname -v is `{}` and not `{build}`", came.build));
        }
        let there: Vec<&str> = came.command_line.split_whitespace().collect();
        let asked = command_line.unwrap_or_default().split_whitespace();
        let missing: Vec<&str> = asked.filter(|word| !there.contains(word)).collect();
        if !missing.is_empty() {
            differences.push(format!("its command line lacks `{}`", missing.join(" ")));
        }
        (!differences.is_empty()).then(|| differences.join(", "))
    }
}

/// Whether `uname -v`, which may have been cut, says what stands in the image.
fn is_build(said: &str, image: &str) -> bool {
    said == image || (said.len() >= BUILD_BYTES_MAX && image.starts_with(said))
}

#[cfg(test)]
mod tests {
    use super::super::host::tests::Stage;
    use super::*;

    const BANNER: &str = "6.12.117 (me@box) #1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-11-12)";

    fn life(release: &str, build: &str, command_line: &str) -> Life {
        Life {
            boot: "b".into(),
            release: release.into(),
            build: build.into(),
            command_line: command_line.into(),
        }
    }

    /// An image as far as a boot loader looks at it.
    fn image(banner: &str) -> Vec<u8> {
        let mut image = vec![0; 4096];
        image[514..518].copy_from_slice(b"HdrS");
        image[526..528].copy_from_slice(&1024_u16.to_le_bytes());
        image[1024 + 512..1024 + 512 + banner.len()].copy_from_slice(banner.as_bytes());
        image
    }

    #[test]
    fn the_command_line_is_that_of_the_first_kernel_and_what_is_appended() {
        let first = "BOOT_IMAGE=/boot/vmlinuz-6.12 root=UUID=1 ro quiet initrd=\\initrd.img";
        assert_eq!(command_line(first, &[]), "root=UUID=1 ro quiet panic=30");
        let append = ["preempt=full".to_string(), "panic=-1".to_string()];
        assert_eq!(command_line(first, &append), "root=UUID=1 ro quiet preempt=full panic=-1");
        assert_eq!(command_line("quiet -- single", &append), "quiet preempt=full panic=-1 -- single");
    }

    #[test]
    fn what_came_up_is_compared_with_what_was_asked_for() {
        let Version { release, build } = Version::of(BANNER);
        let choice = Choice {
            name: "x".into(),
            way: Way::Entry("x".into()),
            release,
            build,
            config: None,
            remarks: Vec::new(),
        };
        let build = "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-11-12)";
        assert_eq!(choice.differs_from(&life("6.12.117", build, "a b c"), Some("a c")), None);
        let words = choice.differs_from(&life("6.1", "#2", "a"), Some("a c")).unwrap();
        assert_eq!(
            words,
            format!(
                "uname -r is `6.1` and not `6.12.117`, uname -v is `#2` and not `{build}`, its command line lacks `c`"
            )
        );
        assert!(is_build(&"x".repeat(64), &"x".repeat(70)), "the kernel has cut it");
        assert!(!is_build("xx", "xxx"));
    }

    #[test]
    fn kernels_are_found_on_the_machine() {
        let stage = Stage::new();
        let mut host = stage.host();
        let file = stage.home.path().join("bzImage");
        std::fs::write(&file, image(BANNER)).unwrap();
        let mut kernels = Kernels::default();
        let first = life("0.0.0-none", "#0", "quiet");
        let given = format!("host:{}", file.display());
        let choice = kernels.find(&mut host, &first, Some(&given)).unwrap();
        assert_eq!(choice.release.as_deref(), Some("6.12.117"));
        assert!(choice.build.unwrap().starts_with("#1 SMP"));
        assert!(choice.remarks[0].contains("no modules for 6.12.117"), "{:?}", choice.remarks);
        // The tests run beside Cargo.toml; ssh leads to the home of the user.
        let choice = kernels.find(&mut host, &first, Some("host:Cargo.toml")).unwrap();
        let Way::Kexec { image, .. } = choice.way else { panic!("{choice:?}") };
        assert_eq!(image, concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let error = kernels.find(&mut host, &first, Some("host:/nowhere/bzImage")).unwrap_err().to_string();
        assert!(error.contains("box has no kernel /nowhere/bzImage"), "{error}");
        let error = kernels.find(&mut host, &first, None).unwrap_err().to_string();
        assert!(error.contains("image of its own 0.0.0-none"), "{error}");
        let error = kernels.find(&mut host, &first, Some("/boot/no-such")).unwrap_err().to_string();
        assert!(error.contains("host:PATH"), "{error}");
        let entry = kernels.find(&mut host, &first, Some("entry:debian-6.12")).unwrap();
        assert!(matches!(entry.way, Way::Entry(name) if name == "debian-6.12"));
    }
}
