//! locktorture, a module of the kernel: loaded, left to run, removed, and read from the kernel log.

mod found;

use super::Program;
use crate::clock::{now_ns, seconds_between};
use crate::shared::warmup;
use crate::{Failure, Trial};
use experiment::Params;
use found::Found;
use machine::{KernelLog, Root, running_config};
use rustix::fs::{Mode, OFlags, open};
use rustix::system::{delete_module, finit_module};
use std::ffi::{CStr, CString};
use std::path::Path;
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

const OPTION: &str = "CONFIG_LOCK_TORTURE_TEST";

/// A run of it.
#[derive(Debug)]
pub struct Torture {
    time: Duration,
    /// Its parameters, as `name=value` separated by blanks.
    arguments: String,
    /// Where the modules are; empty where modprobe finds them.
    directory: String,
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
            directory: params.text("module-dir")?.into(),
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
        let loaded = Path::new("/sys/module/locktorture").exists();
        possible(built, loaded, !self.directory.is_empty(), rustix::process::geteuid().is_root())?;
        if !KernelLog::mark().is_readable() {
            return Err(Failure::Refused(
                "locktorture tells what it did in the kernel log, and /dev/kmsg cannot be read".into(),
            ));
        }
        match self.directory.is_empty() {
            true => Program::find("modprobe", Some("kmod")).map(drop),
            false => module_files(&self.directory).map(drop),
        }
    }

    /// Runs it and leaves what it counted in `trial`.
    ///
    /// # Errors
    /// When it cannot be loaded, when it found a lock broken, and when what it wrote is not understood.
    pub fn run(&self, trial: &mut Trial) -> Result<(), Failure> {
        self.check()?;
        let log = KernelLog::mark();
        let start_ns = now_ns();
        let mut loaded = self.load()?;
        let mut lines = Vec::new();
        let mut left = self.time;
        while !left.is_zero() {
            // Now and then, so that what else is logged does not fill what is kept.
            let part = left.min(Duration::from_secs(1));
            sleep(part);
            left -= part;
            lines.extend(log.since());
        }
        let elapsed_s = seconds_between(start_ns, now_ns());
        loaded.remove()?;
        lines.extend(log.since());
        let found = Found::read(&lines)?;
        trial.note(format!("measured by locktorture of this kernel, {}", self.arguments));
        found.leave(elapsed_s, trial)
    }

    fn load(&self) -> Result<Loaded, Failure> {
        if self.directory.is_empty() {
            let mut arguments = vec!["locktorture"];
            arguments.extend(self.arguments.split(' '));
            Program::find("modprobe", Some("kmod"))?.run(&arguments)?;
            return Ok(Loaded(true));
        }
        // Should the second one not be taken, the first goes with this.
        let loaded = Loaded(true);
        for (file, arguments) in module_files(&self.directory)?.iter().zip(["", &self.arguments]) {
            let refused = |error| Failure::Refused(format!("{file} cannot be loaded: {error}"));
            let module = open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(refused)?;
            let arguments = CString::new(arguments).unwrap_or_default();
            match finit_module(&module, &arguments, 0) {
                // The module that several tests share may be there already.
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(loaded)
    }
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

/// The files of the module that locktorture needs and of itself.
fn module_files(directory: &str) -> Result<[String; 2], Failure> {
    let files = ["torture.ko", "locktorture.ko"].map(|name| format!("{directory}/{name}"));
    match files.iter().find(|file| !Path::new(file).exists()) {
        None => Ok(files),
        Some(file) => {
            Err(Failure::Refused(format!("there is no module {file}; `module-dir` says where it is")))
        }
    }
}

/// That the module is loaded. It is removed when this is dropped.
struct Loaded(bool);

impl Loaded {
    fn remove(&mut self) -> Result<(), Failure> {
        let unload = |name: &CStr| delete_module(name, OFlags::NONBLOCK.bits() as i32);
        let removed = unload(c"locktorture");
        // Another test may need it.
        let _ = unload(c"torture");
        self.0 = removed.is_err();
        removed.map_err(|error| {
            Failure::Refused(format!("locktorture cannot be removed: {error}; try `rmmod locktorture`"))
        })
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.0 {
            // There is already an error to tell.
            let _ = self.remove();
        }
    }
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
        assert!(
            module_files("/no/such/place").unwrap_err().to_string().contains("/no/such/place/torture.ko")
        );
    }
}
