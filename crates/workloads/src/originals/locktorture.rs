//! locktorture, a module of the kernel: loaded, left to run, removed, and read from the kernel log.

mod found;

use super::Program;
use crate::shared::warmup;
use crate::{Failure, Trial};
use experiment::Params;
use found::Found;
use machine::modules::{self, CARRIED_MODULES, ModuleError, ModuleNeed, ModulesBefore};
use machine::{KernelLog, Root, running_config};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// The locks that it knows, in its words.
pub const TYPES: [&str; 11] = [
    "spin_lock",
    "spin_lock_irq",
    "raw_spin_lock",
    "raw_spin_lock_irq",
    "rw_lock",
    "rw_lock_irq",
    "mutex_lock",
    "ww_mutex_lock",
    "rtmutex_lock",
    "rwsem_lock",
    "percpu_rwsem_lock",
];

/// The module.
pub const MODULE: ModuleNeed = ModuleNeed { name: "locktorture", option: "CONFIG_LOCK_TORTURE_TEST" };
const OPTION: &str = MODULE.option;

/// A run of it.
#[derive(Debug)]
pub struct Torture {
    time: Duration,
    /// Its parameters, as `name=value` separated by blanks.
    arguments: String,
    /// Where the modules are; none where modprobe finds them.
    directory: Option<PathBuf>,
}

impl Torture {
    /// The run that `params` ask for, for the point of `trial`.
    ///
    /// # Errors
    /// When a parameter has no counterpart.
    pub fn new(params: &Params, trial: &Trial) -> Result<Torture, Failure> {
        if !warmup(params)?.is_zero() {
            return Err(Failure::Refused("locktorture has no warm-up; leave out `warmup`".into()));
        }
        let stutter_s = params.decimal("stutter")?;
        let stutter_jiffies = match (stutter_s > 0.0, running_config(&Root::real())) {
            (false, _) => 0,
            (true, Some((config, _))) => {
                let per_s = config.get("CONFIG_HZ").and_then(|hz| hz.parse().ok()).unwrap_or(250.0);
                (stutter_s * per_s).round().max(1.0) as u64
            }
            (true, None) => {
                return Err(Failure::Refused(
                    "locktorture counts `stutter` in jiffies, and how long one is here is not known; leave out `stutter`"
                        .into(),
                ));
            }
        };
        Ok(Torture {
            time: Duration::from_secs_f64(params.decimal("seconds")?),
            arguments: format!(
                "torture_type={} nwriters_stress={} long_hold={} nested_locks={} stutter={stutter_jiffies} \
                 shuffle_interval=0 stat_interval=0 verbose=0",
                params.text("kernel-lock")?,
                trial.count()?,
                params.count("long-hold-ms")?,
                params.count("nested")?,
            ),
            directory: directory(params.text("module-dir")?),
        })
    }

    /// Whether it could run here.
    ///
    /// # Errors
    /// What stands against it.
    pub fn check(&self) -> Result<(), Failure> {
        let root = Root::real();
        let built = running_config(&root);
        let built = built.as_ref().map(|(config, _)| config.value(OPTION));
        let loaded = modules::is_loaded(&root, MODULE.name);
        possible(built, loaded, self.directory.is_some(), rustix::process::geteuid().is_root())?;
        if !KernelLog::mark().is_readable() {
            return Err(Failure::Refused(
                "locktorture tells what it did in the kernel log, and /dev/kmsg cannot be read".into(),
            ));
        }
        match &self.directory {
            None => Program::find("modprobe", Some("kmod")).map(drop),
            Some(directory) => modules::in_load_order(directory, MODULE.name).map(drop).map_err(|error| {
                Failure::Refused(match carried() {
                    Some(_) => {
                        format!("{error}; leave out `module-dir`, this machine has the module without it")
                    }
                    None => format!("{error}; `module-dir` says where it is"),
                })
            }),
        }
    }

    /// Runs it and leaves what it counted in `trial`.
    ///
    /// # Errors
    /// When it cannot be loaded, when it found a lock broken, and when what it wrote is not understood.
    pub fn run(&self, trial: &mut Trial) -> Result<(), Failure> {
        self.check()?;
        let log = KernelLog::mark();
        let mut loaded = Loaded(Some(ModulesBefore::now([MODULE.name])));
        self.load()?;
        let mut lines = Vec::new();
        let mut left = self.time;
        while !left.is_zero() {
            // Now and then, so that what else is logged does not fill what is kept.
            let part = left.min(Duration::from_secs(1));
            sleep(part);
            left -= part;
            lines.extend(log.since());
        }
        loaded.remove()?;
        lines.extend(log.since());
        let found = Found::read(&lines)?;
        let uname = rustix::system::uname();
        let release = uname.release().to_string_lossy();
        trial.note(format!("measured by locktorture of Linux {release}, {}", self.arguments));
        found.leave(trial)
    }

    fn load(&self) -> Result<(), Failure> {
        let Some(directory) = &self.directory else {
            let mut arguments = vec![MODULE.name];
            arguments.extend(self.arguments.split(' '));
            return Program::find("modprobe", Some("kmod"))?.run(&arguments).map(drop);
        };
        modules::load_from(directory, MODULE.name, &self.arguments).map_err(refused)
    }
}

fn refused(error: ModuleError) -> Failure {
    Failure::Refused(error.to_string())
}

/// That the module is loaded, or about to be. It is removed when this is dropped.
struct Loaded(Option<ModulesBefore>);

impl Loaded {
    fn remove(&mut self) -> Result<(), Failure> {
        self.0.take().map_or(Ok(()), |before| before.remove().map_err(refused))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // There is already an error to tell.
        let _ = self.remove();
    }
}

/// The directory with the modules: the one that is named, or else that of a machine which kduel has made.
fn directory(named: &str) -> Option<PathBuf> {
    match named.is_empty() {
        false => Some(named.into()),
        true => carried(),
    }
}

/// Where a machine that kduel has made for this work has the modules.
fn carried() -> Option<PathBuf> {
    let carried = Path::new(CARRIED_MODULES);
    carried.join(format!("{}.ko", MODULE.name)).exists().then(|| carried.into())
}

/// What stands against a run in a kernel that has the option with this value (`None` where that is not known), whether the
/// module is loaded, a directory with modules is named, and the user is root.
fn possible(built: Option<&str>, loaded: bool, named: bool, root: bool) -> Result<(), Failure> {
    let why = match built {
        Some("y") => {
            format!("locktorture is built into this kernel and cannot be loaded; {OPTION}=m would help")
        }
        _ if loaded => "locktorture is loaded already; `rmmod locktorture` ends it".into(),
        Some("n") if !named => format!("this kernel was built without locktorture; {OPTION}=m would help"),
        _ if !root => "only root can load a module of the kernel, which locktorture is".into(),
        _ => return Ok(()),
    };
    Err(Failure::Refused(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_against_it_is_told() {
        let why = |built, loaded, named, root| possible(built, loaded, named, root).unwrap_err().to_string();
        assert!(why(Some("n"), false, false, true).contains("CONFIG_LOCK_TORTURE_TEST=m"));
        assert!(why(Some("y"), false, true, true).contains("built into"));
        assert!(why(Some("m"), true, false, true).contains("rmmod locktorture"));
        assert!(why(None, false, false, false).contains("root"));
        possible(Some("m"), false, false, true).unwrap();
        possible(Some("n"), false, true, true).unwrap();
        assert_eq!(directory("/modules"), Some("/modules".into()));
    }
}
