//! One test of will-it-scale as a workload.

use super::{Directory, Site, places};
use crate::clock::now_ns;
use crate::counting::{self, Counted, Looping};
use crate::shared::{Mode, Semantics, mode, mode_parameter, room_for, semantics, with_shared};
use crate::{Failure, Trial, Workload};
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point, counted};
use machine::Root;
use std::path::Path;

/// A test: what its tasks do, and what they need for it.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    /// The name that will-it-scale gives it.
    pub(super) name: &'static str,
    /// What one operation is.
    pub(super) operation: &'static str,
    pub(super) run: fn(&Site) -> Result<Counted, Failure>,
    needs: Needs,
    caveat: Caveat,
}

/// What each task of a test needs.
#[derive(Debug, Clone, Copy)]
struct Needs {
    /// Open files.
    files: u64,
    /// Memory that it touches, in bytes, files in memory included.
    memory_bytes: u64,
    /// Bytes of its files.
    space_bytes: u64,
    /// Whether it has files with a place.
    directory: bool,
    /// Whether it has a partner, a further task.
    partner: bool,
    /// Why it cannot be done by threads, if so.
    not_by_threads: Option<&'static str>,
}

/// What a reader must know about a test.
#[derive(Debug, Clone, Copy)]
enum Caveat {
    None,
    /// Of what it does.
    About(&'static str),
    /// All want one mutex, of which processes each have a copy with original semantics.
    OneMutex,
}

const ONE_MUTEX: &str = "With original semantics processes each have a copy of the mutex, so that nobody contends for \
                         it; with strict semantics it lies in memory that they share.";

impl Test {
    pub(super) const fn new(
        name: &'static str,
        operation: &'static str,
        run: fn(&Site) -> Result<Counted, Failure>,
    ) -> Test {
        let needs = Needs {
            files: 0,
            memory_bytes: 0,
            space_bytes: 0,
            directory: false,
            partner: false,
            not_by_threads: None,
        };
        Test { name, operation, run, needs, caveat: Caveat::None }
    }

    /// A test whose tasks have so many open files each, which lie in a directory.
    pub(super) const fn with_files(mut self, files: u64) -> Test {
        self.needs.files = files;
        self.needs.directory = true;
        self
    }

    /// A test whose tasks have so many channels open.
    pub(super) const fn with_channels(mut self, files: u64) -> Test {
        self.needs.files = files;
        self
    }

    /// A test whose tasks have files that take so much space each.
    pub(super) const fn with_space(mut self, bytes: u64) -> Test {
        self.needs.space_bytes = bytes;
        self
    }

    /// A test whose tasks touch so much memory each.
    pub(super) const fn with_memory(mut self, bytes: u64) -> Test {
        self.needs.memory_bytes = bytes;
        self
    }

    /// A test whose tasks have a partner each.
    pub(super) const fn with_partner(mut self) -> Test {
        self.needs.partner = true;
        self
    }

    /// A test that threads cannot do.
    pub(super) const fn not_by_threads(mut self, why: &'static str) -> Test {
        self.needs.not_by_threads = Some(why);
        self
    }

    /// A test of which readers must know this.
    pub(super) const fn about(mut self, caveat: &'static str) -> Test {
        self.caveat = Caveat::About(caveat);
        self
    }

    /// A test in which all want one mutex.
    pub(super) const fn with_one_mutex(mut self) -> Test {
        self.caveat = Caveat::OneMutex;
        self
    }

    /// Whether all that `tasks` tasks need is there.
    fn room(&self, mode: Mode, tasks: u64) -> Result<(), Failure> {
        if let (Mode::Thread, Some(why)) = (mode, self.needs.not_by_threads) {
            return Err(Failure::Refused(format!("{why} Take mode=process.")));
        }
        machine::memory_for(&Root::real(), self.needs.memory_bytes * tasks).map_err(|shortage| {
            Failure::Refused(format!(
                "the memory of {}: {shortage}; take fewer tasks",
                counted(tasks, "task")
            ))
        })?;
        let all = tasks * if self.needs.partner { 2 } else { 1 };
        match mode {
            Mode::Process => room_for(0, all, self.needs.files + 16),
            Mode::Thread => room_for(all, 0, tasks * self.needs.files + 16),
        }
    }
}

/// Seconds of warm-up unless others are asked for.
const WARMUP_S: &str = "0.5";

impl Workload for Test {
    fn describe(&self) -> Description {
        let mut parameters = vec![
            mode_parameter(),
            Parameter::choice(
                "affinity",
                &["core", "cpu", "none"],
                "where task i runs: on the CPUs of the i-th core, on the i-th CPU, or where the scheduler puts it; \
                 counted round and round over those that the trial may use",
            ),
        ];
        if self.needs.directory {
            parameters.push(Parameter::text(
                "directory",
                "/dev/shm",
                "where the files are made; will-it-scale takes /tmp",
            ));
        }
        parameters.extend(counting::parameters(2.0));
        let mut parameters = with_shared(parameters, &[]);
        // The original does not count its first samples.
        parameters.iter_mut().filter(|parameter| parameter.name == "warmup").for_each(|warmup| {
            warmup.default = WARMUP_S.into();
        });
        let caveat = match self.caveat {
            Caveat::None => self.needs.not_by_threads.unwrap_or_default(),
            Caveat::About(text) => text,
            Caveat::OneMutex => ONE_MUTEX,
        };
        let operations = |help| Metric::new("", "ops/s", Direction::Higher, "operations per second", help);
        Description {
            name: format!("scale-{}", self.name),
            summary: format!("will-it-scale: {}", self.operation),
            about: format!(
                "Tasks, which are processes or threads, each do one thing over and over: {}. All start at once. Each \
                 counts in memory of its own, and the counters are read at both ends of the measured time.\n\n\
                 With original semantics operations are divided by the time that was asked for, and with strict \
                 ones by the time that passed. {caveat}",
                self.operation
            ),
            source: format!(
                "`{0}_processes` and `{0}_threads` of will-it-scale (2023). Tasks stop by a flag, not by a signal or by \
                 being cancelled.",
                self.name
            ),
            axis: Axis {
                name: "tasks".into(),
                heading: "Tasks".into(),
                suffix: String::new(),
                points: [1, 2, 4].map(Point::from).to_vec(),
                range: Some((1, 10_000)),
            },
            parameters,
            metrics: vec![
                Metric { name: "rate".into(), ..operations("operations of all tasks per second") },
                Metric {
                    name: "rate-per-task".into(),
                    units_line: "operations per second of a task".into(),
                    ..operations("operations per second of one task, as a mean over the tasks")
                }
                .secondary(),
            ],
            requirements: vec![match self.needs.partner {
                true => "twice as many tasks as the point says".into(),
                false => "as many tasks as the point says".into(),
            }],
        }
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        self.room(mode(params)?, trial.count()?)?;
        match self.needs.directory {
            true => Directory::new(Path::new(params.text("directory")?))?
                .room_for(self.needs.space_bytes * trial.count()?),
            false => Ok(()),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let (mode, tasks) = (mode(params)?, trial.count()?);
        self.room(mode, tasks)?;
        let mut looping = Looping::new(mode, tasks, params)?;
        looping.places = places::places(params.text("affinity")?, trial.cpus(), &Root::real())?;
        let directory = match self.needs.directory {
            true => Some(Directory::new(Path::new(params.text("directory")?))?),
            false => None,
        };
        // The first use of the clock looks for it; tasks that inherit what was found need not.
        now_ns();
        let site = Site { looping, semantics: semantics(params)?, directory };
        let counted = (self.run)(&site)?;
        let seconds = match site.semantics {
            Semantics::Original => site.looping.runtime.as_secs_f64(),
            Semantics::Strict => counted.elapsed_ns as f64 / 1e9,
        };
        let rate = counted.sum() as f64 / seconds;
        trial.sample("rate", rate)?;
        trial.sample("rate-per-task", rate / tasks as f64)?;
        if tasks > 1
            && matches!(
                (self.caveat, mode, site.semantics),
                (Caveat::OneMutex, Mode::Process, Semantics::Original)
            )
        {
            trial.note(
                "each process has a copy of the mutex, so nobody contends for it; semantics=strict shares it",
            );
        }
        let (slowest, fastest) = counted.extremes();
        trial.counter("ops/s of the slowest task", slowest as f64 / seconds);
        trial.counter("ops/s of the fastest task", fastest as f64 / seconds);
        trial.counter("fairness, slowest to fastest", slowest as f64 / fastest.max(1) as f64);
        trial.counter("batch", site.looping.batch as f64);
        Ok(())
    }
}
