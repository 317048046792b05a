//! The knobs that are files of the kernel: read, apply, verify. Putting back is the work of [`crate::undo`].

use crate::scheduling::SchedulingError;
use crate::undo::write_setting;
use crate::{CpuError, CpuSet, Root, Undo, UndoError, Unrestored, Unusable, cpus, mounts, scheduling, value};
use experiment::{Knob, Scope};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A knob that cannot be turned, or did not stay turned.
#[derive(Debug, Error)]
#[error("knob `{knob}`: {why}")]
pub struct KnobProblem {
    /// The knob as it was asked for: `key=value`.
    pub knob: String,
    /// What is wrong.
    #[source]
    pub why: Why,
}

/// What is wrong with a knob.
#[derive(Debug, Error)]
pub enum Why {
    /// It names no file.
    #[error("`{0}` is no name of a setting")]
    Name(String),
    /// This kernel does not have it.
    #[error("{} does not exist; this kernel does not have the setting, or it is built without it", .0.display())]
    Absent(PathBuf),
    /// The file system that holds it is not mounted.
    #[error("debugfs is not mounted; as root: mount -t debugfs none /sys/kernel/debug")]
    NoDebugfs,
    /// This user may not read or write it.
    #[error("{} needs root; run kduel as root", .0.display())]
    NeedsRoot(PathBuf),
    /// Nobody may read it.
    #[error("{} cannot be read, even by root: this kernel is locked down, or this is a container", .0.display())]
    Forbidden(PathBuf),
    /// Nobody may write it.
    #[error("{} cannot be written, even by root: it is read-only, or this kernel is locked down", .0.display())]
    ReadOnly(PathBuf),
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel does not take this value.
    #[error("the kernel refused the value in {}: {source}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The file says something else than what was written.
    #[error("{} says `{found}`", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// The scheduler of this kernel has no such feature.
    #[error("this kernel has no scheduler feature {unknown}; it has {known}")]
    Feature {
        /// Those that it does not have.
        unknown: String,
        /// Those that it has, as they stand.
        known: String,
    },
    /// What another variant had turned did not go back.
    #[error("could not put back {0}")]
    NotBack(Unrestored),
    /// The old value could not be written down, and so nothing was turned.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// The CPUs cannot be had.
    #[error(transparent)]
    Cpus(#[from] CpuError),
    /// The scheduling policy or the nice value cannot be had.
    #[error(transparent)]
    Scheduling(#[from] SchedulingError),
}

/// The value of a knob of the machine that is in force now, in the form in which it would be written. `None` for a
/// knob that is no file of the kernel.
///
/// # Errors
/// When the file is not there or cannot be read.
pub fn read(root: &Root, knob: &Knob) -> Result<Option<String>, KnobProblem> {
    let read = || -> Result<Option<String>, Why> {
        let Some(path) = file(root, &knob.scope)? else { return Ok(None) };
        in_force(&path).map(Some)
    };
    read().map_err(problem(knob))
}

/// Turns the knobs of the machine among `knobs` in their order and verifies each; the others are not touched. The
/// old value of each is in the undo journal before it is turned. After an error the caller restores `undo`.
///
/// # Errors
/// At the first that cannot be turned or does not stay turned.
pub fn apply(root: &Root, knobs: &[Knob], undo: &mut Undo) -> Result<(), KnobProblem> {
    for knob in knobs {
        let mut turn = || -> Result<(), Why> {
            let Some(path) = file(root, &knob.scope)? else { return Ok(()) };
            undo.note(&path, &knob.value, || in_force(&path))?;
            write_setting(&path, &knob.value).map_err(|source| refusal(&path, source))?;
            Ok(())
        };
        turn().map_err(problem(knob))?;
        verify(root, knob)?;
    }
    Ok(())
}

/// Turns the knobs of the machine to just these, so that nothing of the variant before is left, and verifies them.
/// Does nothing but verify where they are turned so already. After an error everything is put back.
///
/// # Errors
/// At the first that cannot be turned or does not stay turned.
pub fn turn_to(root: &Root, knobs: &[Knob], undo: &mut Undo) -> Result<(), KnobProblem> {
    let mut turn = || -> Result<(), KnobProblem> {
        let mut wanted = Vec::new();
        for knob in knobs {
            let path = file(root, &knob.scope).map_err(problem(knob))?;
            wanted.extend(path.map(|path| (path, knob.value.as_str())));
        }
        if undo.turned().eq(wanted.iter().map(|(path, value)| (path.as_path(), *value))) {
            return knobs.iter().try_for_each(|knob| verify(root, knob));
        }
        if let Some(failed) = undo.rewind().failed.pop() {
            let knob = failed.setting.path.display().to_string();
            return Err(KnobProblem { knob, why: Why::NotBack(failed) });
        }
        apply(root, knobs, undo)
    };
    let turned = turn();
    if turned.is_err() {
        undo.restore();
    }
    turned
}

/// Proves that a knob of the machine has its value still; says nothing about other knobs.
///
/// # Errors
/// When it has another value or cannot be read.
pub fn verify(root: &Root, knob: &Knob) -> Result<(), KnobProblem> {
    let verify = || -> Result<(), Why> {
        let Some(path) = file(root, &knob.scope)? else { return Ok(()) };
        let found = in_force(&path)?;
        let same = match value::is_feature_list(&path) {
            true => value::features_in_force(&knob.value, &found),
            false => value::same(&knob.value, &found),
        };
        if same { Ok(()) } else { Err(Why::Differs { path, found }) }
    };
    verify().map_err(problem(knob))
}

/// Everything that will keep knobs from being turned, as far as it can be known without turning one of the machine:
/// before the first trial, so that a run does not fail in its middle.
pub fn check(root: &Root, knobs: &[Knob]) -> Vec<KnobProblem> {
    let check = |knob: &Knob| -> Result<(), Why> {
        if let Scope::Cpus = knob.scope {
            let asked = knob.value.parse::<CpuSet>()?;
            let unusable = Unusable::explain(root, &asked, &asked.and(&cpus::online(root)?))?;
            if !unusable.is_empty() {
                return Err(CpuError::Unusable(unusable).into());
            }
        }
        if !root.is_real() && !knob.changes_machine() {
            return Ok(());
        }
        if let Some(path) = file(root, &knob.scope)? {
            let now = in_force(&path)?;
            let unknown = value::unknown_features(&knob.value, &now);
            if value::is_feature_list(&path) && !unknown.is_empty() {
                return Err(Why::Feature { unknown: unknown.join(" "), known: now });
            }
            return writable(&path);
        }
        // What a thread may do is best asked by doing it, in one that ends at once.
        std::thread::scope(|scope| {
            let attempt = std::thread::Builder::new().spawn_scoped(scope, || scheduling::apply(knob));
            // Where no thread can be started, the trial itself will tell.
            attempt.ok().and_then(|attempt| attempt.join().ok()).unwrap_or(Ok(()))
        })
    };
    knobs.iter().filter_map(|knob| check(knob).map_err(problem(knob)).err()).collect()
}

/// As [`check`], and then turns every knob of the machine once and puts it back, which also tells the values that the
/// kernel refuses.
pub fn rehearse(root: &Root, knobs: &[Knob], undo: &mut Undo) -> Vec<KnobProblem> {
    let mut problems = check(root, knobs);
    if problems.is_empty() {
        problems.extend(apply(root, knobs, undo).err());
        undo.restore();
    }
    problems
}

/// Applies the knobs of the trial's own process, which are its CPUs, policy and nice value, to the calling thread
/// and so to all that it will start, and verifies each; the others are not touched.
///
/// # Errors
/// At the first that the kernel refuses or changes.
pub fn apply_to_self(knobs: &[Knob]) -> Result<(), KnobProblem> {
    knobs.iter().try_for_each(|knob| scheduling::apply(knob).map_err(problem(knob)))
}

/// The file that a knob of the machine is; `None` for the other knobs.
fn file(root: &Root, scope: &Scope) -> Result<Option<PathBuf>, Why> {
    let inside = |name: &str, path: String| {
        let leaves = path.split('/').any(|part| matches!(part, "" | "." | ".."));
        if leaves { Err(Why::Name(name.into())) } else { Ok(path) }
    };
    Ok(Some(match scope {
        Scope::Sysctl(name) => root.path("proc/sys").join(inside(name, sysctl_path(name))?),
        Scope::Sysfs(name) => root.path("sys").join(inside(name, name.clone())?),
        Scope::Debugfs(name) => debugfs(root)?.join(inside(name, name.clone())?),
        _ => return Ok(None),
    }))
}

/// The path of a sysctl below /proc/sys. As in sysctl(8), the separator that comes first is the one that separates,
/// and the other one stands for it inside a part: `net.ipv4.conf.eth0/1.mtu` and `net/ipv4/conf/eth0.1/mtu`.
fn sysctl_path(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(at) if name[at..].starts_with('.') => name
            .chars()
            .map(|character| match character {
                '.' => '/',
                '/' => '.',
                other => other,
            })
            .collect(),
        _ => name.to_string(),
    }
}

/// Where debugfs is mounted.
pub(crate) fn debugfs(root: &Root) -> Result<PathBuf, Why> {
    let table = root.text("proc/self/mountinfo").unwrap_or_default();
    let mounted = mounts::parse(&table).into_iter().find(|mount| mount.kind == "debugfs");
    mounted.map(|mount| root.path(mount.point)).ok_or(Why::NoDebugfs)
}

/// What would have to be written to get what a file says now.
fn in_force(path: &Path) -> Result<String, Why> {
    let bytes = std::fs::read(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Why::Absent(path.into()),
        io::ErrorKind::PermissionDenied if !is_root() => Why::NeedsRoot(path.into()),
        io::ErrorKind::PermissionDenied => Why::Forbidden(path.into()),
        _ => Why::Unreadable { path: path.into(), source },
    })?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(value::in_force(&text)),
        Err(_) => {
            let source = io::Error::new(io::ErrorKind::InvalidData, "it holds no text");
            Err(Why::Unreadable { path: path.into(), source })
        }
    }
}

fn writable(path: &Path) -> Result<(), Why> {
    match accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(()),
        Err(Errno::ROFS) => Err(Why::ReadOnly(path.into())),
        Err(_) if is_root() => Err(Why::ReadOnly(path.into())),
        Err(_) => Err(Why::NeedsRoot(path.into())),
    }
}

fn refusal(path: &Path, source: io::Error) -> Why {
    match source.kind() {
        io::ErrorKind::PermissionDenied if !is_root() => Why::NeedsRoot(path.into()),
        io::ErrorKind::ReadOnlyFilesystem => Why::ReadOnly(path.into()),
        _ => Why::Refused { path: path.into(), source },
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn problem<W: Into<Why>>(knob: &impl fmt::Display) -> impl FnOnce(W) -> KnobProblem {
    let knob = knob.to_string();
    move |why| KnobProblem { knob, why: why.into() }
}
