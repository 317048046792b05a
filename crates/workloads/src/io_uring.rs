//! io-uring: how many I/O operations per second threads get through rings of their own.

mod conduct;
mod queues;
mod reads;
mod ring;
mod target;
mod work;

use crate::shared::{Semantics, room_for, semantics, warmup, with_shared};
use crate::{Failure, Original, Trial, Workload, originals};
use conduct::Measured;
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point, Statistic};
use std::collections::BTreeMap;
use std::time::Duration;
pub use target::Target;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct IoUring;

/// The percentiles of the latency that are metrics, by name.
pub const PERCENTILES: [(&str, f64); 4] =
    [("latency-p50", 50.0), ("latency-p90", 90.0), ("latency-p99", 99.0), ("latency-p99.9", 99.9)];

impl Workload for IoUring {
    fn describe(&self) -> Description {
        Description {
            name: "io-uring".into(),
            summary: "I/O operations per second through io_uring".into(),
            about: "Every thread has a ring of its own and keeps up to `depth` reads of `bs` bytes in flight. It \
                    prepares up to `submit` of them, enters the kernel once, takes every completion that is there, \
                    and begins again. It waits in the kernel, for `complete` completions, where another batch would \
                    not fit into `depth`. It never writes.\n\n\
                    `target=nop`, the default, needs no device: the operations do nothing, and what is measured is the \
                    ring itself. `target=auto` reads a temporary file without a name, any other value the file or \
                    block device of that name.\n\n\
                    With original semantics an operation counts when the kernel has accepted it, an EIO or ENODATA is \
                    taken off again, and fixed buffers mean that all reads go into one. With strict semantics an \
                    operation counts when it has completed, every error fails the trial, and the reads take the \
                    buffers in turn. Both counts are divided by the time that passed, not by whole seconds."
                .into(),
            source: "t/io_uring of fio (2023). It polls by default (-p1), kduel does not; where it divides by \
                     the second that it wanted to sleep, kduel divides by the time that passed. fio's io_uring engine \
                     is what `via=fio` runs."
                .into(),
            axis: Axis {
                name: "threads".into(),
                heading: "Threads".into(),
                suffix: String::new(),
                points: [1, 2, 4, 8].map(Point::from).to_vec(),
                range: Some((1, 10_000)),
            },
            parameters: with_shared(parameters(), self.originals()),
            metrics: metrics(true, true),
            requirements: vec![
                "io_uring: Linux 5.4 with kernel.io_uring_disabled=0, and no seccomp filter against it".into(),
                "locked memory of depth x bs per thread with `fixed-buffers`".into(),
                "fio for `via`".into(),
            ],
        }
    }

    fn describe_for(&self, set: &BTreeMap<String, String>) -> Description {
        let description = self.describe();
        let Ok(params) = description.params(set) else { return description };
        let moves = params.text("target").is_ok_and(|target| target != target::NOP);
        let latency = params.flag("latency").unwrap_or_default();
        Description { metrics: metrics(moves, latency), ..description }
    }

    fn originals(&self) -> &'static [Original] {
        &[Original::FIO]
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        originals::check(params, self.originals())?;
        let plan = Plan::new(params, trial)?;
        match originals::wanted(params, self.originals())? {
            Some(_) => originals::fio::check(&plan),
            // One batch shows whether the ring, its buffers and the target can be had as asked.
            None => conduct::try_out(&plan, &Target::open(&plan.target, Some(plan.bs))?),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        let target = Target::open(&plan.target, None)?;
        if originals::wanted(params, self.originals())?.is_some() {
            return originals::fio::run(&plan, &target, trial);
        }
        room_for(plan.threads as u64, 0, 2 * plan.threads as u64 + 8)?;
        let measured = conduct::run(&plan, &target)?;
        plan.report(&measured, trial)
    }
}

fn parameters() -> Vec<Parameter> {
    vec![
        Parameter::text(
            "target",
            target::NOP,
            "what is read: `nop` for operations that do nothing, `auto` for a temporary file, or the path of a file \
             or block device, which is never written",
        ),
        Parameter::integer("size", 64, 1, 1 << 20, "MiB of the temporary file of `target=auto`"),
        Parameter::integer("depth", 128, 1, 32_768, "operations in flight per thread"),
        Parameter::integer("submit", 32, 1, 32_768, "operations per submission"),
        Parameter::integer("complete", 32, 1, 32_768, "completions to wait for, where a thread has to wait"),
        Parameter::integer(
            "bs",
            4096,
            1,
            1 << 24,
            "bytes per read; with `direct` a multiple of the device's block",
        ),
        Parameter::flag("random", true, "read random blocks instead of one after the other"),
        Parameter::flag(
            "polled",
            false,
            "look for completions instead of waiting for interrupts (IORING_SETUP_IOPOLL)",
        ),
        Parameter::flag("fixed-buffers", true, "register the buffers with the ring"),
        Parameter::flag("registered-files", true, "register the file with the ring"),
        Parameter::flag("registered-ring", true, "register the ring itself, where the kernel can (5.18)"),
        Parameter::flag("direct", true, "read past the page cache (O_DIRECT)"),
        Parameter::flag(
            "latency",
            false,
            "take the latency of every operation; costs two looks at the clock per batch",
        ),
        Parameter::decimal("runtime", 5.0, 0.01, 86_400.0, "seconds for which is measured"),
    ]
}

fn metrics(moves: bool, latency: bool) -> Vec<Metric> {
    let metric = |name: &str, unit: &str, direction, units_line: &str, help: &str| {
        Metric::new(name, unit, direction, units_line, help)
    };
    let mut metrics = vec![
        metric(
            "iops",
            "IO/s",
            Direction::Higher,
            "IOPS",
            "operations of all threads per second: accepted ones with original semantics, completed ones with strict",
        ),
        metric(
            "best-second",
            "IO/s",
            Direction::Higher,
            "IOPS of the best second",
            "the most in any of the seconds, which the original calls Maximum IOPS",
        )
        .titled("io-uring-best-second")
        .secondary(),
        metric(
            "ios-per-call",
            "IO/call",
            Direction::Higher,
            "operations per system call",
            "operations per entry into the kernel",
        )
        .titled("io-uring-ios-per-call")
        .secondary(),
    ];
    if moves {
        metrics.push(
            metric(
                "bandwidth",
                "MiB/s",
                Direction::Higher,
                "bandwidth in MiB/s",
                "bytes of the operations per second",
            )
            .titled("io-uring-bandwidth")
            .secondary(),
        );
    }
    if latency {
        metrics.extend(PERCENTILES.map(|(name, percent)| {
            let help = format!("time from submission to completion that {percent} % of the operations kept");
            metric(name, "us", Direction::Lower, "latency in us", &help)
                .by(Statistic::Median)
                .titled(&format!("io-uring-{name}"))
                .secondary()
        }));
    }
    metrics
}

/// What is to be done, as numbers.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Threads, each with a ring.
    pub threads: usize,
    /// What is read.
    pub target: target::Wanted,
    /// Operations in flight per thread.
    pub depth: u32,
    /// Operations per submission.
    pub submit: u32,
    /// Completions to wait for.
    pub complete: u32,
    /// Bytes per read.
    pub bs: u32,
    /// Random blocks instead of one after the other.
    pub random: bool,
    /// IORING_SETUP_IOPOLL.
    pub polled: bool,
    /// Registered buffers.
    pub fixed_buffers: bool,
    /// Registered files.
    pub registered_files: bool,
    /// A registered ring.
    pub registered_ring: bool,
    /// Whether the latency of every operation is taken.
    pub latency: bool,
    /// How long is measured.
    pub runtime: Duration,
    /// How long the work is done before.
    pub warmup: Duration,
    /// Which traits of the original are kept.
    pub semantics: Semantics,
    /// The seed of the random blocks.
    pub seed: u64,
    /// What every operation returns: the bytes of a read, and nothing for one that does nothing; another number only
    /// in tests that break the work.
    expected: i32,
}

impl Plan {
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        let [depth, submit, complete, bs] =
            ["depth", "submit", "complete", "bs"].map(|name| params.count(name).map(|count| count as u32));
        let (depth, bs) = (depth?, bs?);
        let target = target::Wanted::new(params)?;
        let fixed_buffers = params.flag("fixed-buffers")?;
        if fixed_buffers && depth > ring::MOST_BUFFERS {
            return Err(Failure::Refused(format!(
                "the kernel registers no more than {} buffers; take a smaller depth or fixed-buffers=off",
                ring::MOST_BUFFERS
            )));
        }
        Ok(Plan {
            threads: trial.count()? as usize,
            depth,
            submit: submit?,
            complete: complete?,
            bs,
            random: params.flag("random")?,
            polled: params.flag("polled")?,
            fixed_buffers,
            registered_files: params.flag("registered-files")?,
            registered_ring: params.flag("registered-ring")?,
            latency: params.flag("latency")?,
            runtime: Duration::from_secs_f64(params.decimal("runtime")?),
            warmup: warmup(params)?,
            semantics: semantics(params)?,
            seed: trial.seed(),
            expected: if target.is_nop() { 0 } else { bs as i32 },
            target,
        })
    }

    fn report(&self, measured: &Measured, trial: &mut Trial) -> Result<(), Failure> {
        let counts = |counts: &conduct::Counts| match self.semantics {
            Semantics::Original => counts.submitted - counts.errors,
            Semantics::Strict => counts.completed,
        };
        let whole = &measured.whole;
        let iops = counts(whole) as f64 / measured.time_s;
        trial.sample("iops", iops)?;
        trial.sample("ios-per-call", counts(whole) as f64 / whole.calls.max(1) as f64)?;
        let seconds = measured.seconds.iter().map(|(second, time_s)| counts(second) as f64 / time_s);
        trial.sample("best-second", seconds.fold(0.0, f64::max))?;
        if !self.target.is_nop() {
            trial.sample("bandwidth", iops * f64::from(self.bs) / f64::from(1 << 20))?;
        }
        if self.latency {
            trial.histogram("latency", &measured.latency_ns)?;
            for (name, percent) in PERCENTILES {
                let latency_ns = measured.latency_ns.percentile(percent).ok_or_else(|| {
                    Failure::Invariant(
                        "no operation was both begun and completed while it was measured".into(),
                    )
                })?;
                trial.sample(name, latency_ns as f64 / 1e3)?;
            }
        }
        trial.counter("submitted", whole.submitted as f64);
        trial.counter("completed", whole.completed as f64);
        trial.counter("calls", whole.calls as f64);
        trial.counter("submitted per second", whole.submitted as f64 / measured.time_s);
        trial.counter("completed per second", whole.completed as f64 / measured.time_s);
        if whole.errors > 0 {
            trial.counter("io errors", whole.errors as f64);
            trial.note(
                "some reads failed with EIO or ENODATA and are not counted; semantics=strict fails instead",
            );
        }
        if let Some(note) = &measured.note {
            trial.note(note.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing, limit_tasks};
    use crate::originals::on_path;
    use experiment::Outcome;
    use rustix::process::{Resource, Rlimit, setrlimit};
    use std::fs;
    use std::io::Write;

    fn params(set: &[(&str, &str)]) -> Result<Params, Failure> {
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Ok(IoUring.describe().params(&set)?)
    }

    fn outcome(threads: u64, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
        let params = params(set)?;
        let mut trial = Trial::new(Point::from(threads), vec![0], 1);
        IoUring.check(&params, &trial)?;
        IoUring.run(&params, &mut trial)?;
        Ok(trial.into_outcome())
    }

    /// Whether this machine has io_uring at all.
    fn no_uring() -> bool {
        let plan = Plan::new(&params(&[]).unwrap(), &Trial::new(Point::from(1), vec![0], 1)).unwrap();
        let refused = conduct::try_out(&plan, &Target::Nop).err();
        if let Some(error) = &refused {
            println!("skipped: {error}");
        }
        refused.is_some()
    }

    const SHORT: (&str, &str) = ("runtime", "0.03");

    #[test]
    fn every_way_of_doing_nothing_adds_up_and_leaves_nothing() {
        alone("io_uring::tests::every_way_of_doing_nothing_adds_up_and_leaves_nothing", || {
            if no_uring() {
                return;
            }
            for more in [
                ("semantics", "strict"),
                ("warmup", "0.02"),
                ("polled", "on"),
                ("latency", "on"),
                ("registered-ring", "off"),
                ("depth", "1"),
                ("submit", "500"),
                ("complete", "500"),
                ("fixed-buffers", "off"),
            ] {
                let outcome = leaving_nothing(|| outcome(2, &[SHORT, more]).unwrap());
                let Outcome::Done { samples, histograms, counters, .. } = outcome else { panic!("missing") };
                assert!(samples["iops"][0] > 0.0 && samples["ios-per-call"][0] > 0.0, "{more:?}");
                // At both ends of the time up to `depth` operations of each thread are under way.
                assert!((counters["submitted"] - counters["completed"]).abs() <= 512.0, "{more:?}");
                assert!(!samples.contains_key("bandwidth"));
                assert_eq!(samples.contains_key("latency-p99"), more.0 == "latency");
                assert_eq!(histograms.contains_key("latency"), more.0 == "latency");
            }
        });
    }

    #[test]
    fn every_way_of_reading_adds_up_and_leaves_nothing() {
        alone("io_uring::tests::every_way_of_reading_adds_up_and_leaves_nothing", || {
            if no_uring() {
                return;
            }
            let temporary_files = || fs::read_dir(std::env::temp_dir()).unwrap().count();
            let before = temporary_files();
            for more in [
                ("semantics", "strict"),
                ("random", "off"),
                ("fixed-buffers", "off"),
                ("registered-files", "off"),
                ("latency", "on"),
                ("bs", "65536"),
                ("depth", "3"),
            ] {
                // Not every file system of temporary files has O_DIRECT.
                let set = [SHORT, ("target", "auto"), ("size", "1"), ("direct", "off"), more];
                let outcome = leaving_nothing(|| outcome(2, &set).unwrap());
                let Outcome::Done { samples, .. } = outcome else { panic!("missing") };
                assert!(samples["bandwidth"][0] > 0.0, "{more:?}");
            }
            assert_eq!(temporary_files(), before);
        });
    }

    #[test]
    fn reads_bring_what_the_file_holds_and_end_with_their_ring() {
        if no_uring() {
            return;
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for block in 0..8_u8 {
            file.write_all(&[block + 1; 4096]).unwrap();
        }
        let path = file.path().to_str().unwrap();
        for fixed in ["on", "off"] {
            let set = [
                ("target", path),
                ("direct", "off"),
                ("random", "off"),
                ("depth", "8"),
                ("submit", "8"),
                ("semantics", "strict"),
                ("fixed-buffers", fixed),
            ];
            let plan = Plan::new(&params(&set).unwrap(), &Trial::new(Point::from(1), vec![0], 1)).unwrap();
            let target = Target::open(&plan.target, None).unwrap();
            let mut ring = ring::Ring::new(&plan, &target).unwrap();
            let once = (&work::Progress::default(), &std::sync::atomic::AtomicBool::new(true));
            work::until_stopped(&mut ring, &plan, &target, 0, once, 0).unwrap();
            for block in 0..8_usize {
                // SAFETY: the buffer has `bs` bytes, and no operation is in flight any more.
                let found = unsafe { std::slice::from_raw_parts(ring.buffer(block), 4096) };
                assert!(found.iter().all(|byte| usize::from(*byte) == block + 1), "block {block}");
            }
        }
    }

    #[test]
    fn an_operation_with_another_result_fails_the_trial() {
        if no_uring() {
            return;
        }
        for semantics in ["original", "strict"] {
            let trial = Trial::new(Point::from(2), vec![0], 1);
            let set = [SHORT, ("semantics", semantics)];
            let plan = Plan { expected: 1, ..Plan::new(&params(&set).unwrap(), &trial).unwrap() };
            let error = conduct::run(&plan, &Target::Nop).unwrap_err();
            assert!(matches!(&error, Failure::Invariant(text) if text.contains("returned 0")), "{error}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(4096).unwrap();
        let set = [SHORT, ("target", file.path().to_str().unwrap()), ("direct", "off")];
        let plan = Plan::new(&params(&set).unwrap(), &Trial::new(Point::from(1), vec![0], 1)).unwrap();
        let target = Target::open(&plan.target, None).unwrap();
        // A file that becomes shorter meanwhile.
        file.as_file().set_len(100).unwrap();
        let error = conduct::run(&plan, &target).unwrap_err();
        assert!(matches!(&error, Failure::Invariant(text) if text.contains("100 of 4096 bytes")), "{error}");
    }

    #[test]
    fn what_cannot_be_is_refused_and_leaves_nothing() {
        alone("io_uring::tests::what_cannot_be_is_refused_and_leaves_nothing", || {
            if no_uring() {
                return;
            }
            for threads in [0, 10_001] {
                let params = params(&[]).unwrap();
                let error =
                    IoUring.run(&params, &mut Trial::new(Point::from(threads), vec![0], 1)).unwrap_err();
                assert!(error.to_string().contains("from 1 to 10000"), "{error}");
            }
            let small = tempfile::NamedTempFile::new().unwrap();
            let small = small.path().to_str().unwrap();
            for (set, said) in [
                (vec![("target", "/nowhere/at/all")], "/nowhere/at/all cannot be opened"),
                (vec![("target", "/tmp")], "is a directory"),
                (vec![("target", "/dev/null")], "is no file that has blocks"),
                (vec![("target", small), ("direct", "off")], "has 0 bytes"),
                (vec![("target", "auto"), ("polled", "on"), ("direct", "off")], "set polled=off"),
                (vec![("depth", "20000")], "fixed-buffers=off"),
                (vec![("target", "auto"), ("depth", "16000"), ("bs", "1000000")], "is the most"),
                (vec![("via", "fio")], "no operations that do nothing"),
            ] {
                if set[0].0 == "via" && on_path("fio").is_none() {
                    continue;
                }
                let error = leaving_nothing(|| outcome(1, &set)).unwrap_err().to_string();
                assert!(error.contains(said), "{set:?}: {error}");
            }
            if !limit_tasks(8) {
                return;
            }
            let error = leaving_nothing(|| outcome(64, &[SHORT])).unwrap_err().to_string();
            assert!(error.contains("64"), "{error}");
            setrlimit(Resource::Memlock, Rlimit { current: Some(1 << 16), maximum: Some(1 << 16) }).unwrap();
            let error =
                leaving_nothing(|| outcome(1, &[SHORT, ("target", "auto"), ("direct", "off")])).unwrap_err();
            assert!(error.to_string().contains("RLIMIT_MEMLOCK"), "{error}");
        });
    }

    #[test]
    fn metrics_follow_the_parameters() {
        let names = |set: &[(&str, &str)]| -> Vec<String> {
            let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            IoUring.describe_for(&set).metrics.into_iter().map(|metric| metric.name).collect()
        };
        assert_eq!(names(&[]), ["iops", "best-second", "ios-per-call"]);
        assert!(names(&[("target", "auto")]).contains(&"bandwidth".to_string()));
        assert!(names(&[("latency", "on")]).contains(&"latency-p99.9".to_string()));
    }

    #[test]
    fn fio_is_run_and_read() {
        if on_path("fio").is_none() || no_uring() {
            println!("skipped: fio is not installed, or there is no io_uring");
            return;
        }
        let set = [
            ("via", "fio"),
            ("target", "auto"),
            ("size", "1"),
            ("direct", "off"),
            ("latency", "on"),
            ("runtime", "0.1"),
        ];
        let Outcome::Done { samples, notes, .. } = outcome(2, &set).unwrap() else { panic!("missing") };
        assert!(samples["iops"][0] > 0.0 && samples["bandwidth"][0] > 0.0);
        assert!(samples["latency-p50"][0] <= samples["latency-p99.9"][0]);
        assert!(notes[0].starts_with("measured by fio-"), "{notes:?}");
    }
}
