//! The workloads after will-it-scale, `scale-TEST`: tasks that each do the same small thing over and over. How much more
//! is done by more of them?

mod directory;
mod files;
mod futexes;
mod ipc;
mod locks;
mod memory;
mod mutex;
mod places;
mod scheduling;
mod test;

use crate::Failure;
use crate::Workload;
use crate::counting::{Counted, Looping, Task};
use crate::shared::{Mode, Semantics};
use directory::Directory;
pub use test::Test;

/// The tests, by what they go for.
static FAMILIES: &[&[Test]] =
    &[memory::TESTS, locks::TESTS, futexes::TESTS, files::TESTS, ipc::TESTS, scheduling::TESTS];

/// Every one as a workload, in the order of `kduel list workloads`.
pub fn all() -> impl Iterator<Item = &'static dyn Workload> {
    FAMILIES.iter().copied().flatten().map(|test| test as &dyn Workload)
}

/// What a test has at hand when it runs.
#[derive(Debug)]
struct Site {
    looping: Looping,
    semantics: Semantics,
    /// Where its files are, if it has any.
    directory: Option<Directory>,
}

impl Site {
    /// Lets all tasks do `body`; see [`Looping::run`].
    fn run(&self, body: impl Fn(&Task) -> Result<(), Failure> + Sync) -> Result<Counted, Failure> {
        self.looping.run(body)
    }

    fn mode(&self) -> Mode {
        self.looping.mode
    }

    fn directory(&self) -> Result<&Directory, Failure> {
        self.directory.as_ref().ok_or_else(|| Failure::Refused("this test was given no directory".into()))
    }
}

/// Why a system call of a measured loop failed.
#[cold]
fn broken(call: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Invariant(format!("{call} failed: {error}"))
}

/// The invariant of tests that can be counted a second way.
fn same(what: &str, found: u64, counted: u64) -> Result<(), Failure> {
    match found == counted {
        true => Ok(()),
        false => Err(Failure::Invariant(format!("{counted} operations were counted, and {found} {what}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::patiently;
    use crate::{Failure, Trial};
    use experiment::{Outcome, Point};
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    /// Two tasks that may run anywhere.
    pub(super) fn site(mode: Mode, semantics: Semantics, runtime: Duration) -> Site {
        let looping =
            Looping { mode, tasks: 2, places: Vec::new(), warmup: Duration::ZERO, runtime, batch: 1 };
        Site { looping, semantics, directory: Some(Directory::new(Path::new("/dev/shm")).unwrap()) }
    }

    fn run(name: &str, tasks: u64, set: &[(&str, &str)]) -> Result<BTreeMap<String, Vec<f64>>, Failure> {
        let workload = crate::find(name).unwrap();
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = workload.describe().params(&set)?;
        let mut trial = Trial::new(Point::from(tasks), machine::cpus::allowed().unwrap().to_vec(), 1);
        workload.check(&params, &trial)?;
        workload.run(&params, &mut trial)?;
        match trial.into_outcome() {
            Outcome::Done { samples, .. } => Ok(samples),
            missing => panic!("{missing:?}"),
        }
    }

    /// Runs every test of a family by processes and by threads, and asserts that it leaves nothing.
    fn check_family(family: &[Test]) {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let directory = place.path().to_str().unwrap();
        for test in family {
            let description = test.describe();
            for [mode, semantics, affinity, batch] in
                [["process", "original", "core", "1"], ["thread", "strict", "none", "3"]]
            {
                let mut set =
                    vec![("mode", mode), ("semantics", semantics), ("affinity", affinity), ("batch", batch)];
                if description.parameter("directory").is_ok() {
                    set.push(("directory", directory));
                }
                let run_for = |runtime: Duration| {
                    let runtime_s = runtime.as_secs_f64().to_string();
                    let set = [set.as_slice(), &[("runtime", &runtime_s), ("warmup", "0.01")]].concat();
                    leaving_nothing(|| run(&description.name, 2, &set))
                };
                match patiently(run_for) {
                    Ok(samples) => {
                        let (rate, each) = (samples["rate"][0], samples["rate-per-task"][0]);
                        assert!(rate > 0.0 && (rate / each - 2.0).abs() < 1e-9, "{samples:?}");
                    }
                    Err(error) => {
                        let refused = mode == "thread" && test.name.starts_with("brk");
                        assert!(refused, "{} {set:?}: {error}", test.name);
                        assert!(error.to_string().contains("Take mode=process"), "{error}");
                    }
                }
            }
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "{}", test.name);
        }
    }

    #[test]
    fn tests_of_memory_count_and_leave_nothing() {
        alone("scale::tests::tests_of_memory_count_and_leave_nothing", || check_family(memory::TESTS));
    }

    #[test]
    fn the_other_tests_count_and_leave_nothing() {
        alone("scale::tests::the_other_tests_count_and_leave_nothing", || {
            for family in FAMILIES.iter().filter(|family| family[0].name != memory::TESTS[0].name) {
                check_family(family);
            }
        });
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for tasks in [0, 1_000_000_000] {
            let error = run("scale-futex1", tasks, &[]).unwrap_err().to_string();
            assert!(error.contains("from 1 to 10000"), "{error}");
        }
        for set in [("batch", "0"), ("runtime", "0"), ("mode", "coroutine"), ("affinity", "socket")] {
            assert!(run("scale-futex1", 1, &[set]).is_err());
        }
        let error = run("scale-open1", 1, &[("directory", "/no/such/place")]).unwrap_err().to_string();
        assert!(error.contains("/no/such/place") && error.contains("set directory="), "{error}");
        // It is told before anything is started: 2.4 TiB.
        let workload = crate::find("scale-page_fault2").unwrap();
        let params = workload.describe().params(&BTreeMap::new()).unwrap();
        let error = workload.check(&params, &Trial::new(Point::from(10_000), vec![0], 1)).unwrap_err();
        assert!(error.to_string().contains("2560000 MiB of memory"), "{error}");
    }
}
