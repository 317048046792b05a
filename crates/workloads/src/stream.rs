//! stream: four loops over arrays that no cache holds, after STREAM.

mod arrays;
mod kernels;
mod team;

use crate::clock::elapsed_ns;
use crate::shared::{Semantics, memory_for, own_cpu, room_for, semantics, warm_up, with_shared};
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point, Statistic};
use kernels::Kernels;
use machine::Root;
use std::collections::BTreeMap;
use team::Iteration;
pub use team::Kernel;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct Stream;

impl Workload for Stream {
    fn describe(&self) -> Description {
        self.describe_for(&BTreeMap::new())
    }

    fn describe_for(&self, set: &BTreeMap<String, String>) -> Description {
        let iterations = set.get("iterations").map_or("10".into(), |digits| digits.replace('_', ""));
        Description {
            name: "stream".into(),
            summary: "memory bandwidth of a team of threads, and with it where the scheduler puts them".into(),
            about: "Three arrays of `elements` numbers of 8 bytes, a = 2, b = 2 and c = 0. In each of \
                    `iterations` rounds a team of threads does four loops over them: Copy c = a, Scale b = 3c, \
                    Add c = a + b, Triad a = b + 3c. Every thread has the same part of the arrays in every loop, \
                    and touched it first. The clock runs from before the team sets out to after its last \
                    thread is done, for each loop.\n\n\
                    A rate is 16 bytes per element for Copy and Scale, 24 for Add and Triad, over that time, in \
                    10^6 bytes a second. The first round never counts. With original semantics the rate \
                    that is judged is that of the best round. It hides rounds in which threads shared a CPU; \
                    with strict semantics the judged rate is over the mean time of the rounds.\n\n\
                    Where threads run is left to the scheduler, unless `pin` says otherwise. On a big \
                    machine take one thread per last-level cache and arrays of four times the caches; ten \
                    rounds then show the first placement, and a hundred what load balancing makes of it."
                .into(),
            source: "STREAM 5.10 compiled with -O2 -fopenmp. The loops are compiled to one element at a time, as \
                     gcc does there, except that gcc makes Copy a call of memcpy, which this does not. What \
                     it yields is, in the words of STREAM's rules, from a variant of STREAM."
                .into(),
            axis: Axis {
                name: "threads".into(),
                heading: "Test".into(),
                suffix: "-threads".into(),
                points: vec![Point::from(2)],
                range: Some((1, 100_000)),
            },
            parameters: with_shared(
                vec![
                    Parameter::integer("elements", 10_000_000, 1000, 1 << 40, "elements of each of the three arrays"),
                    // Every round multiplies by 15; after 261 there are no such numbers.
                    Parameter::integer("iterations", 10, 2, 250, "rounds of the four loops; the first does not count"),
                    Parameter::integer(
                        "spin",
                        300_000,
                        0,
                        30_000_000_000,
                        "how often a thread that waits for the others looks before it sleeps; at most 100 times \
                         where there are more threads than CPUs",
                    ),
                    Parameter::flag("pin", false, "run thread i on the (i mod n)-th of the n CPUs of the trial"),
                    Parameter::flag("non-temporal", false, "store past the caches; x86-64 only"),
                ],
                self.originals(),
            ),
            metrics: metrics(&format!("stream-{iterations}")),
            requirements: vec![
                "24 bytes of memory per element".into(),
                "for `via`: STREAM on PATH as `stream`, built with -fopenmp for the same elements and iterations".into(),
            ],
        }
    }

    fn originals(&self) -> &'static [Original] {
        &[Original::STREAM]
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        match originals::wanted(params, self.originals())? {
            Some(original) => originals::stream::Prepared::new(original, &plan).map(drop),
            None => Ok(()),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        plan.note_small_arrays(trial);
        if let Some(original) = originals::wanted(params, self.originals())? {
            return originals::stream::Prepared::new(original, &plan)?.measure(params, trial);
        }
        warm_up(params, || team::run(&plan).map(drop))?;
        plan.report(&team::run(&plan)?, trial)
    }
}

/// What follows the name of a kernel in the names of its metrics; the first is judged.
const SUFFIXES: [&str; 3] = ["", "-average", "-worst"];

fn metrics(test: &str) -> Vec<Metric> {
    let help = [
        "10^6 bytes per second in the best round; with strict semantics over the mean time of the rounds",
        "10^6 bytes per second over the mean time of the rounds",
        "10^6 bytes per second in the slowest round",
    ];
    let metric = |kernel: Kernel, suffix: &str, help: &str| {
        let name = format!("{}{suffix}", kernel.metric());
        let metric = Metric::new(&name, "MB/s", Direction::Higher, "Bandwidth, MB/s", help)
            .by(Statistic::Hmean)
            .titled(&format!("{test}{suffix}"))
            .as_row(kernel.row());
        if suffix.is_empty() { metric } else { metric.secondary() }
    };
    let of_all = |(suffix, help)| Kernel::ALL.map(|kernel| metric(kernel, suffix, help));
    SUFFIXES.into_iter().zip(help).flat_map(of_all).collect()
}

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Threads of the team.
    pub threads: usize,
    /// Elements of each array.
    pub elements: usize,
    /// Rounds of the four loops.
    pub iterations: usize,
    /// How often a waiting thread looks before it sleeps, where every thread can have a CPU.
    pub spin: u64,
    /// The CPUs that threads are bound to in turn; `None` leaves it to the scheduler.
    pub pinned_to: Option<Vec<u32>>,
    /// Whether stores go past the caches.
    pub non_temporal: bool,
    /// CPUs that the trial may use.
    cpus: usize,
    kernels: &'static Kernels,
    semantics: Semantics,
    /// The rounds that the arrays are checked for: `iterations`, except in tests that break the work.
    expected_iterations: usize,
}

impl Plan {
    /// Reads the parameters and makes sure of threads and memory.
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        let threads = trial.count()?;
        let elements = params.count("elements")?;
        room_for(threads, 0, 0)?;
        let what = format!("three arrays of elements={elements}");
        memory_for(elements.saturating_mul(24), &what, "fewer elements")?;
        let non_temporal = params.flag("non-temporal")?;
        let iterations = params.count("iterations")? as usize;
        Ok(Plan {
            threads: threads as usize,
            elements: elements as usize,
            iterations,
            spin: params.count("spin")?,
            pinned_to: params.flag("pin")?.then(|| trial.cpus().to_vec()),
            non_temporal,
            cpus: trial.cpus().len(),
            kernels: kernels(non_temporal)?,
            semantics: semantics(params)?,
            expected_iterations: iterations,
        })
    }

    /// STREAM's rule: each array must be at least four times as large as all caches.
    fn note_small_arrays(&self, trial: &mut Trial) {
        let Some(cache_bytes) = machine::last_level_cache_bytes(&Root::real(), trial.cpus()) else { return };
        let wanted = cache_bytes.saturating_mul(4).div_ceil(8);
        if (self.elements as u64) < wanted {
            trial.note(format!(
                "arrays too small for STREAM's rule of four times the caches: {} MiB of last-level cache need \
                 elements={wanted} or more, and there are {}",
                cache_bytes >> 20,
                self.elements
            ));
        }
    }

    /// As libgomp has it: short where the awaited thread may wait for a CPU itself.
    fn turns(&self) -> u64 {
        if self.threads > self.cpus { self.spin.min(100) } else { self.spin }
    }

    /// Binds the calling thread, the `index`-th, to its CPU where that is asked for.
    fn place(&self, index: usize) -> Result<(), Failure> {
        self.pinned_to.as_ref().map_or(Ok(()), |cpus| own_cpu(cpus, index))
    }

    fn report(&self, iterations: &[Iteration], trial: &mut Trial) -> Result<(), Failure> {
        for (place, kernel) in Kernel::ALL.into_iter().enumerate() {
            let spans = iterations.iter().skip(1).filter_map(|iteration| iteration.get(place));
            let times_s = spans
                .map(|(start_ns, end_ns)| Ok(elapsed_ns(*start_ns, *end_ns)? as f64 / 1e9))
                .collect::<Result<Vec<f64>, Failure>>()?;
            let best_s = times_s.iter().copied().fold(f64::INFINITY, f64::min);
            let worst_s = times_s.iter().copied().fold(0.0, f64::max);
            let mean_s = times_s.iter().sum::<f64>() / times_s.len() as f64;
            let judged_s = if self.semantics == Semantics::Strict { mean_s } else { best_s };
            self.leave(kernel, [judged_s, mean_s, worst_s].map(|time_s| self.rate(kernel, time_s)), trial)?;
        }
        Ok(())
    }

    /// The rate of a kernel that took `time_s`, in MB/s.
    pub fn rate(&self, kernel: Kernel, time_s: f64) -> f64 {
        (kernel.bytes_per_element() * self.elements) as f64 / 1e6 / time_s
    }

    /// Leaves the three rates of a kernel: the judged one, that of the mean time and that of the slowest round.
    pub fn leave(&self, kernel: Kernel, rates: [f64; 3], trial: &mut Trial) -> Result<(), Failure> {
        for (suffix, rate) in SUFFIXES.into_iter().zip(rates) {
            trial.sample(&format!("{}{suffix}", kernel.metric()), rate)?;
        }
        Ok(())
    }
}

#[cfg(target_arch = "x86_64")]
fn kernels(non_temporal: bool) -> Result<&'static Kernels, Failure> {
    Ok(if non_temporal { &kernels::PAST_CACHES } else { &kernels::THROUGH_CACHES })
}

#[cfg(not(target_arch = "x86_64"))]
fn kernels(non_temporal: bool) -> Result<&'static Kernels, Failure> {
    match non_temporal {
        true => Err(Failure::Refused("only x86-64 has the stores for non-temporal=on; leave it out".into())),
        false => Ok(&kernels::THROUGH_CACHES),
    }
}

#[cfg(test)]
mod tests;
