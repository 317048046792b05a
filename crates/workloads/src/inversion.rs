//! `inversion`: a lock whose owner is unimportant, whose waiter is important, and work in between that keeps the owner
//! from its CPU.

mod kernel_paths;
mod lending;
mod path;
mod priority;
mod round;
mod user_paths;

use crate::shared::{self, ALL_THE_SAME, room_for, with_shared_alone};
use crate::{Failure, Trial, Workload};
use experiment::Direction::{Higher, Lower};
use experiment::{Axis, Description, Metric, Parameter, Params, Point, Statistic};
use kernel_paths::{Inode, Mmap, Pipe, Position};
pub use lending::{Lending, lending};
use machine::Root;
use priority::{Priorities, Role};
use round::{Plan, Round};
use std::collections::BTreeMap;
use std::time::Duration;
use user_paths::Futex;

/// A low-priority owner, middle-priority hogs and a high-priority waiter, for a fixed time.
pub struct Inversion;

impl Workload for Inversion {
    fn describe(&self) -> Description {
        self.describe_for(&BTreeMap::new())
    }

    fn describe_for(&self, set: &BTreeMap<String, String>) -> Description {
        let word = |name: &str, words: &[&'static str]| {
            let found = set.get(name).and_then(|value| words.iter().find(|word| **word == value.as_str()));
            found.or(words.first()).copied().unwrap_or_default()
        };
        Description {
            name: "inversion".into(),
            summary: "priority inversion: how long an important waiter waits for a lock whose owner cannot run".into(),
            about: ABOUT.into(),
            source: String::new(),
            axis: Axis {
                name: "hogs".into(),
                heading: "Case".into(),
                suffix: "-hogs".into(),
                points: [0, 1, 2, 4].map(Point::from).to_vec(),
                range: Some((0, HOGS_MAX)),
            },
            parameters: with_shared_alone(parameters(), ALL_THE_SAME),
            metrics: metrics(word("over", &OVER), word("priorities", &PRIORITIES)),
            requirements: vec![
                "for `priorities=fifo`: root, CAP_SYS_NICE or a limit on real-time priorities of 2 (ulimit -r)".into(),
                "for `over=mmap`: Linux 5.14".into(),
            ],
        }
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = plan(params, trial)?;
        room(params, &plan)?;
        // On a thread of its own: this process keeps the priority that it has.
        std::thread::scope(|scope| {
            let tried = scope.spawn(|| {
                // From the least to the most important, as an unprivileged thread can only become less so.
                plan.priorities.take(Role::Waiter)?;
                plan.priorities.take(Role::Hog)
            });
            tried.join().unwrap_or_else(|_| Err(Failure::Invariant("a thread of the check panicked".into())))
        })?;
        // A path that cannot be had says so as it is made.
        measure(params, &Plan { time: Duration::ZERO, hogs: 0, ..plan }).map(drop)
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = plan(params, trial)?;
        room(params, &plan)?;
        let warmup = shared::warmup(params)?;
        if !warmup.is_zero() {
            measure(params, &Plan { time: warmup, ..plan.clone() })?;
        }
        leave(&measure(params, &plan)?, trial)
    }
}

/// The words of the parameter `over`.
const OVER: [&str; 6] = ["position", "inode", "pipe", "mmap", "futex", "futex-pi"];

/// The words of the parameter `priorities`.
const PRIORITIES: [&str; 2] = ["nice", "fifo"];

/// More hogs per CPU than would help anybody.
const HOGS_MAX: u64 = 1000;

fn plan(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
    let cpus = trial.cpus();
    Ok(Plan {
        cpus: match params.text("place")? {
            "one" => cpus.iter().take(1).copied().collect(),
            _ => cpus.to_vec(),
        },
        hogs: trial.count()? as usize,
        time: Duration::from_secs_f64(params.decimal("seconds")?),
        interval: Duration::from_micros(params.count("interval-us")?),
        rest: Duration::from_micros(params.count("rest-us")?),
        hog_run: Duration::from_millis(params.count("hog-run-ms")?),
        priorities: match params.text("priorities")? {
            "fifo" => Priorities::Fifo,
            _ => Priorities::Nice,
        },
    })
}

/// Whether threads and memory of a round fit.
fn room(params: &Params, plan: &Plan) -> Result<(), Failure> {
    room_for(plan.threads() as u64, 0, 8)?;
    // A file in memory, what is written to it and what is read from it.
    let wanted_bytes = 3 * 1024 * params.count("size-kib")?;
    machine::memory_for(&Root::real(), wanted_bytes)
        .map_err(|shortage| Failure::Refused(format!("{shortage}; lower `size-kib`")))
}

/// Plays a round over the path that `params` names.
fn measure(params: &Params, plan: &Plan) -> Result<Round, Failure> {
    let bytes = params.count("size-kib")? as usize * 1024;
    let hold = Duration::from_micros(params.count("hold-us")?);
    let directory = params.text("directory")?;
    match params.text("over")? {
        "inode" => plan.play(Inode::new(bytes, directory)?),
        "pipe" => plan.play(Pipe::new(bytes)?),
        "mmap" => plan.play(Mmap::new(bytes)?),
        "futex" => plan.play(Futex::<locks::Futex3State>::new(hold)?),
        "futex-pi" => plan.play(Futex::<locks::PthreadPi>::new(hold)?),
        _ => plan.play(Position::new(bytes)?),
    }
}

fn leave(round: &Round, trial: &mut Trial) -> Result<(), Failure> {
    let Round { waits, holds, elapsed_s } = round;
    // A bucket of the histogram may end beyond the longest wait.
    let percentile_us =
        |percent| waits.histogram.percentile(percent).map(|ns| ns.min(waits.max_ns) as f64 / 1e3);
    let (Some(p50_us), Some(p99_us), Some(mean_us), Some(hold_us)) =
        (percentile_us(50.0), percentile_us(99.0), waits.mean_us(), holds.mean_us())
    else {
        return Err(Failure::Invariant("the waiter or the owner never had the lock".into()));
    };
    trial.sample("wait-p99", p99_us)?;
    trial.sample("wait-max", waits.max_ns as f64 / 1e3)?;
    trial.sample("wait-p50", p50_us)?;
    trial.sample("wait-mean", mean_us)?;
    trial.sample("acquisitions", waits.count() as f64 / elapsed_s)?;
    trial.sample("hold-mean", hold_us)?;
    trial.sample("hold-max", holds.max_ns as f64 / 1e3)?;
    trial.histogram("wait", &waits.histogram)?;
    trial.histogram("hold", &holds.histogram)?;
    trial.counter("acquisitions of the waiter", waits.count() as f64);
    trial.counter("acquisitions of the owner", holds.count() as f64);
    if waits.count() < 100 {
        trial.note(
            "fewer than 100 waits in a trial, so that their 99th percentile is the longest; raise `seconds`",
        );
    }
    Ok(())
}

fn parameters() -> Vec<Parameter> {
    vec![
        Parameter::choice(
            "over",
            &OVER,
            "which lock: in the kernel the one of a file position, a file's content, a pipe, or an address space; in user \
             space a mutex on a plain futex, or on one with priority inheritance",
        ),
        Parameter::choice(
            "priorities",
            &PRIORITIES,
            "`nice`: owner 19, hogs 10, waiter as the trial; `fifo`: owner as the trial, hogs SCHED_FIFO 1, waiter \
             SCHED_FIFO 2",
        ),
        Parameter::choice(
            "place",
            &["one", "any"],
            "`one`: all threads on the first CPU of the trial; `any`: that many hogs on each CPU, owner and waiter where the \
             scheduler puts them",
        ),
        Parameter::decimal("seconds", 5.0, 0.001, 3600.0, "how long it runs"),
        Parameter::integer(
            "interval-us",
            5000,
            0,
            1_000_000_000,
            "sleep of the waiter between two acquisitions, in us",
        ),
        Parameter::integer("rest-us", 0, 0, 1_000_000_000, "sleep of the owner between two holds, in us"),
        Parameter::integer(
            "size-kib",
            1024,
            4,
            1 << 20,
            "KiB that the owner moves in one call, so how long it holds a lock of the kernel",
        ),
        Parameter::integer(
            "hold-us",
            500,
            0,
            10_000_000,
            "processor time for which the owner holds a lock in user space, in us",
        ),
        Parameter::integer(
            "hog-run-ms",
            10,
            1,
            1000,
            "processor time between two sleeps of a hog with `priorities=fifo`, in ms; n hogs sleep n times as long",
        ),
        Parameter::text(
            "directory",
            "",
            "where the file of `over=inode` is, without a name; where nothing is set, in memory",
        ),
    ]
}

/// The metrics, in blocks that say over which lock and by what priorities.
fn metrics(over: &str, priorities: &str) -> Vec<Metric> {
    let us = |name: &str, units_line: &str, help: &str| Metric::new(name, "us", Lower, units_line, help);
    let metrics = [
        us(
            "wait-p99",
            "99th percentile wait in us",
            "the wait that one acquisition of the waiter in a hundred exceeds",
        )
        .by(Statistic::Median),
        us("wait-max", "longest wait in us", "the longest wait of the waiter").by(Statistic::Median),
        us("wait-p50", "median wait in us", "the median wait of the waiter")
            .by(Statistic::Median)
            .secondary(),
        us("wait-mean", "mean wait in us", "the mean wait of the waiter").secondary(),
        Metric::new(
            "acquisitions",
            "1/s",
            Higher,
            "acquisitions of the waiter per second",
            "acquisitions of the waiter per second",
        )
        .secondary(),
        us(
            "hold-mean",
            "mean hold in us",
            "the mean time for which the owner holds the lock, time without the CPU included",
        )
        .secondary(),
        us("hold-max", "longest hold in us", "the longest time for which the owner holds the lock")
            .secondary(),
    ];
    let test = format!("inversion-{over}-{priorities}");
    metrics.map(|metric| metric.titled(&test)).into()
}

const ABOUT: &str = "\
Three kinds of threads share a CPU. The owner, which is unimportant, takes a lock, works under it and releases it, over and \
over. The hogs, which are more important, never need the lock and keep the CPU busy. The waiter, which is the most \
important, sleeps for `interval-us`, takes the lock once, and measures how long that took. When the hogs keep the owner from \
its CPU while it holds the lock, the waiter waits for work that is less important than itself: priority inversion. \
Mechanisms that lend the waiter's priority to the owner show as a wait that does not grow with the hogs.

The locks of the kernel are held through one long call: `position` reads a file, which has the mutex of the shared file \
position; `inode` writes it, which has the rwsem of the inode; `pipe` splices a file into a pipe, which has its mutex; \
`mmap` populates memory, which has the rwsem of the address space for reading. The waiter makes a short call that needs \
the same lock: a seek, a write of 8 bytes, a question about the pipe, a mapping of a page. How long the owner holds is how long its \
call takes. The locks in user space are mutexes that sleep on a futex, without and with priority inheritance.

The trial counts only if the work adds up: no two sections overlap and their counter is right, or every byte has been moved \
and the last ones are found in the file, or every page was faulted in.

With `priorities=nice` no privilege is needed. A futex with priority inheritance does nothing then: it lends real-time \
priorities only. With `priorities=fifo` the hogs sleep after each `hog-run-ms`, n of them n times as long, so that \
the owner has its share of the CPU, and every thread ends by itself when the time is over.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use experiment::Outcome;

    fn run(hogs: u64, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
        let set: BTreeMap<String, String> =
            set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = Inversion.describe().params(&set)?;
        let cpus = machine::cpus::allowed().unwrap().to_vec();
        let mut trial = Trial::new(Point::from(hogs), cpus, 1);
        Inversion.check(&params, &trial)?;
        Inversion.run(&params, &mut trial)?;
        Ok(trial.into_outcome())
    }

    #[test]
    fn every_path_yields_waits_and_holds_and_leaves_nothing() {
        alone("inversion::tests::every_path_yields_waits_and_holds_and_leaves_nothing", || {
            for over in OVER {
                for place in ["one", "any"] {
                    let set = [
                        ("over", over),
                        ("place", place),
                        ("seconds", "0.03"),
                        ("interval-us", "1000"),
                        ("size-kib", "64"),
                        ("hold-us", "20"),
                    ];
                    let outcome = leaving_nothing(|| run(1, &set).unwrap());
                    let Outcome::Done { samples, histograms, .. } = outcome else { panic!() };
                    for metric in Inversion.describe().metrics {
                        assert_eq!(samples[&metric.name].len(), 1, "{over}: {}", metric.name);
                    }
                    assert!(samples["wait-p50"][0] <= samples["wait-max"][0]);
                    assert!(histograms.contains_key("wait") && histograms.contains_key("hold"));
                }
            }
        });
    }

    #[test]
    fn real_time_priorities_end_in_time_or_are_refused() {
        alone("inversion::tests::real_time_priorities_end_in_time_or_are_refused", || {
            let set =
                [("over", "futex-pi"), ("priorities", "fifo"), ("seconds", "0.05"), ("hog-run-ms", "2")];
            match leaving_nothing(|| run(2, &set)) {
                Ok(_) => {}
                Err(Failure::Refused(why)) => println!("skipped: {why}"),
                Err(other) => panic!("{other}"),
            }
        });
    }

    #[test]
    fn what_cannot_be_had_is_refused_with_what_would_help() {
        let error = |set: &[(&str, &str)]| run(0, set).unwrap_err().to_string();
        assert!(run(HOGS_MAX + 1, &[]).unwrap_err().to_string().contains("from 0 to 1000"));
        let absent = error(&[("over", "inode"), ("directory", "/no/such/directory")]);
        assert!(absent.contains("/no/such/directory"), "{absent}");
        let beyond = error(&[("over", "pipe"), ("size-kib", "1048576")]);
        assert!(beyond.contains("size-kib"), "{beyond}");
    }

    #[test]
    fn sleeps_do_not_last_beyond_the_end() {
        alone("inversion::tests::sleeps_do_not_last_beyond_the_end", || {
            let hour = "1000000000";
            let set = [("seconds", "0.01"), ("interval-us", hour), ("rest-us", hour), ("size-kib", "4")];
            // It would be killed if it did.
            leaving_nothing(|| run(1, &set).unwrap());
        });
    }
}
