//! jobmix: users that each do a hundred jobs of many kinds, in random order.

mod arithmetic;
mod calculations;
mod disk;
mod files;
mod ipc;
mod jump;
mod memory;
mod mix;
mod network;
mod processes;
mod room;
mod shell;
mod sub_tests;
mod user;

use crate::clock::{elapsed_ns, now_ns};
use crate::processes::usage_of_children;
use crate::random::Random;
use crate::shared::{Semantics, semantics, warm_up, with_shared};
use crate::shared_memory::Shared;
use crate::{Failure, Trial, Workload, process_crew};
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point};
use machine::Scratch;
use mix::Mix;
use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use user::User;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct JobMix;

impl Workload for JobMix {
    fn describe(&self) -> Description {
        self.describe_for(&BTreeMap::new())
    }

    fn describe_for(&self, set: &BTreeMap<String, String>) -> Description {
        let text = |name: &str| set.get(name).map(String::as_str).filter(|text| !text.is_empty());
        let what = text("sub-test").or(text("mix")).unwrap_or(mix::NAMES[0]);
        Description {
            name: "jobmix".into(),
            summary: "jobs per minute of many users, who do jobs of many kinds in random order".into(),
            about: "Each user is a process that does about `jobs` jobs and ends. A job is one execution of a sub-test: \
                    an arithmetic loop, a sort, a file copied, a process forked, messages through a pipe, a segment \
                    of System V shared memory. The mix says which sub-tests there are and how many jobs of each; \
                    every user does the same jobs, in an order of its own that the seed decides. Every job checks \
                    its result.\n\n\
                    The clock starts when all users have been forked and are released together. With original \
                    semantics it stops when the last user has been reaped, so that the end of the processes is part \
                    of what is measured, the jobs of each sub-test are rounded on their own (97 for `shared`, not \
                    100), and the size of files depends on the number of users. With strict semantics it stops \
                    when the last user has done its last job, each does exactly `jobs` jobs, and files have \
                    `file-kib` KiB."
                .into(),
            source: "re-AIM 7, whose sub-tests were written anew from their description: what a job does is the \
                     same where the description says it, and figures are not comparable across the two. Nothing is \
                     retried or waited out in silence; times are not cut off to clock ticks; no alarm kills slow \
                     users."
                .into(),
            axis: Axis {
                name: "users".into(),
                heading: "Users".into(),
                suffix: String::new(),
                points: [10, 100].map(Point::from).to_vec(),
                range: Some((1, 1_000_000)),
            },
            parameters: with_shared(
                vec![
                    Parameter::choice(
                        "mix",
                        &mix::NAMES,
                        "which sub-tests a user does; `shared-memory` is that one alone",
                    ),
                    Parameter::text("sub-test", "", "one sub-test alone, by its name, instead of a mix"),
                    Parameter::integer("jobs", 100, 1, 1_000_000, "jobs per user, about"),
                    Parameter::integer("file-kib", 10, 1, 1 << 30, "KiB of each file of the disk tests"),
                    Parameter::integer(
                        "pool-kib",
                        1024,
                        0,
                        1 << 30,
                        "KiB that all users share among their files, with original semantics",
                    ),
                    Parameter::choice(
                        "sync",
                        &["off", "on"],
                        "whether each disk test first syncs the whole machine, as the original does unless told not to",
                    ),
                    Parameter::text("directory", "", "where files are made; the usual place for temporary files"),
                ],
                self.originals(),
            ),
            metrics: metrics(&format!("jobmix-{what}")),
            requirements: vec![
                "a process per user".into(),
                "System V shared memory and semaphores, one of each per user".into(),
                "sh, ls, sort, wc and true for mixes that start programs".into(),
            ],
        }
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        let plan = Plan::new(params, trial)?;
        plan.room(plan.scratch()?.as_ref())
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        let plan = Plan::new(params, trial)?;
        plan.room(plan.scratch()?.as_ref())?;
        warm_up(params, || plan.run().map(drop))?;
        let usage_before = usage_of_children();
        let finished = plan.run()?;
        let usage = usage_of_children();

        let jobs_per_min = 60.0 * plan.mix.jobs() as f64 / finished.time_s;
        let times = finished.spread();
        trial.sample("throughput", jobs_per_min * plan.users as f64)?;
        trial.sample("throughput-per-user", jobs_per_min)?;
        trial.sample("spread", times.deviation_s / times.mean_s * 100.0)?;
        trial.sample("jti", (1.0 - times.deviation_s / times.mean_s) * 100.0)?;
        trial.counter("jobs_per_user", plan.mix.jobs() as f64);
        trial.counter("time_s", finished.time_s);
        trial.counter("user_time_mean_s", times.mean_s);
        trial.counter("user_time_deviation_s", times.deviation_s);
        trial.counter("user_cpu_s", (usage.user_ns as f64 - usage_before.user_ns as f64) / 1e9);
        trial.counter("system_cpu_s", (usage.system_ns as f64 - usage_before.system_ns as f64) / 1e9);
        Ok(())
    }
}

/// The metrics, in blocks that are called `test`.
fn metrics(test: &str) -> Vec<Metric> {
    use Direction::{Higher, Lower};
    let metrics = [
        Metric::new(
            "throughput",
            "jobs/min",
            Higher,
            "jobs per minute",
            "jobs of all users over the time for all",
        ),
        Metric::new(
            "throughput-per-user",
            "jobs/min",
            Higher,
            "jobs per minute and user",
            "jobs of one user over the time for all",
        )
        .secondary(),
        Metric::new(
            "spread",
            "%",
            Lower,
            "spread of the users' times",
            "standard deviation of the users' times over their mean",
        )
        .secondary(),
        Metric::new("jti", "%", Higher, "job timing index", "100 % less the spread").secondary(),
    ];
    metrics.map(|metric| metric.titled(test)).into()
}

/// What is to be done.
#[derive(Debug, Clone)]
struct Plan {
    users: usize,
    mix: Mix,
    file_kib: u64,
    sync: bool,
    directory: PathBuf,
    seed: u64,
    semantics: Semantics,
    /// Jobs that each user must have done in the end: those of the mix, except in tests that break the work.
    expected_jobs: u64,
}

impl Plan {
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        JobMix.describe().check_point(trial.point())?;
        let (users, jobs, semantics) = (trial.count()?, params.count("jobs")?, semantics(params)?);
        let mix = match params.text("sub-test")? {
            "" => Mix::named(params.text("mix")?, jobs, semantics)?,
            sub_test => Mix::single(sub_test, jobs)?,
        };
        let of_pool = match semantics {
            Semantics::Original => params.count("pool-kib")? / users,
            Semantics::Strict => 0,
        };
        let directory = match params.text("directory")? {
            "" => env::temp_dir(),
            directory => directory.into(),
        };
        Ok(Plan {
            users: users as usize,
            expected_jobs: mix.jobs(),
            mix,
            file_kib: params.count("file-kib")? + of_pool,
            sync: params.text("sync")? == "on",
            directory,
            seed: trial.seed(),
            semantics,
        })
    }

    /// The directory for the files of all users; none where no sub-test has any.
    fn scratch(&self) -> Result<Option<Scratch>, Failure> {
        if !self.mix.sub_tests().any(|test| test.has_files) {
            return Ok(None);
        }
        Scratch::new(&self.directory).map(Some).map_err(|error| {
            Failure::Refused(format!(
                "cannot make a directory in {}: {error}; `directory` names another place",
                self.directory.display()
            ))
        })
    }

    /// Does the work once.
    fn run(&self) -> Result<Finished, Failure> {
        let scratch = self.scratch()?;
        let done = Shared::<Done>::new(self.users)
            .map_err(|error| Failure::Refused(format!("no memory to share with the users: {error}")))?;
        let user = |index: usize, gate: &process_crew::Gate| {
            let mut user = User {
                index,
                directory: scratch.as_ref().map(|scratch| scratch.path().into()).unwrap_or_default(),
                file_kib: self.file_kib,
                sync: self.sync,
                random: Random::new(self.seed, index),
            };
            if gate.wait() {
                let jobs = user.work(&self.mix)?;
                done[index].jobs.store(jobs, Ordering::Relaxed);
                done[index].end_ns.store(now_ns(), Ordering::Relaxed);
            }
            Ok(())
        };
        let release = |gate: &process_crew::Gate| {
            let start_ns = now_ns();
            gate.open();
            Ok(start_ns)
        };
        let released = process_crew::run(self.users, user, release);
        let reaped_ns = now_ns();
        if released.is_err() {
            // Those that were killed could not remove what they had made.
            machine::remove_leftovers();
        }
        self.finished(released?, reaped_ns, &done)
    }

    /// The invariant: every user has done its jobs.
    fn finished(&self, start_ns: u64, reaped_ns: u64, done: &[Done]) -> Result<Finished, Failure> {
        let mut user_times_s = Vec::with_capacity(done.len());
        let mut last_ns = start_ns;
        for (index, done) in done.iter().enumerate() {
            let (jobs, end_ns) = (done.jobs.load(Ordering::Relaxed), done.end_ns.load(Ordering::Relaxed));
            if jobs != self.expected_jobs {
                let text = format!("user {index} did {jobs} jobs, of {}", self.expected_jobs);
                return Err(Failure::Invariant(text));
            }
            user_times_s.push(elapsed_ns(start_ns, end_ns)? as f64 / 1e9);
            last_ns = last_ns.max(end_ns);
        }
        let end_ns = match self.semantics {
            Semantics::Original => reaped_ns,
            Semantics::Strict => last_ns,
        };
        Ok(Finished { time_s: elapsed_ns(start_ns, end_ns)? as f64 / 1e9, user_times_s })
    }
}

/// What a user leaves.
#[derive(Debug, Default)]
struct Done {
    jobs: AtomicU64,
    end_ns: AtomicU64,
}

/// Work that came to its end.
#[derive(Debug)]
struct Finished {
    time_s: f64,
    user_times_s: Vec<f64>,
}

struct Spread {
    mean_s: f64,
    deviation_s: f64,
}

impl Finished {
    fn spread(&self) -> Spread {
        let mean =
            |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / self.user_times_s.len() as f64;
        let mean_s = mean(&mut self.user_times_s.iter().copied());
        let variance = mean(&mut self.user_times_s.iter().map(|time_s| (time_s - mean_s).powi(2)));
        Spread { mean_s, deviation_s: variance.sqrt() }
    }
}

#[cfg(test)]
mod tests;
