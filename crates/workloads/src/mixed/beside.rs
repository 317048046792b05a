//! The two processes of a trial: one that is load, and one that is measured.

use super::part::Part;
use crate::complaint::Complaint;
use crate::descendants::end_all_children;
use crate::processes::{ending, fork};
use crate::shared_memory::SharedValue;
use crate::{Failure, Trial};
use experiment::Outcome;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, kill_process_group, pidfd_open,
    set_child_subreaper, setpgid, waitpid,
};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is done over and over.
pub struct Load {
    /// The workload.
    pub part: Part,
    /// How long it runs before the measured part starts.
    pub lead: Duration,
    /// How long it has to come to the end of a round when it is asked to stop.
    pub patience: Duration,
}

/// What the load's process shares with the trial's.
#[derive(Default)]
struct Told {
    stop: AtomicBool,
    rounds: AtomicU64,
    /// The sum over the rounds of the mean of its first metric, as the bits of an f64.
    sum_bits: AtomicU64,
    complaint: Complaint,
}

/// A load that runs, or none. Every process that was started is gone when this is dropped.
pub struct Beside {
    running: Option<Running>,
}

struct Running {
    load: Load,
    process: Process,
    told: SharedValue<Told>,
}

impl Beside {
    /// Starts the load, if there is one, and gives it its lead.
    ///
    /// # Errors
    /// When it cannot be started, or ends by itself.
    pub fn start(load: Option<Load>, trial: &Trial) -> Result<Beside, Failure> {
        // Processes that outlive their parents come to this one, which can then end them.
        set_child_subreaper(Some(getpid())).map_err(|error| Failure::Refused(error.to_string()))?;
        let Some(load) = load else { return Ok(Beside { running: None }) };
        let told = SharedValue::new(Told::default)
            .map_err(|error| Failure::Refused(format!("no memory to share with the load: {error}")))?;
        let seed = trial.seed();
        let process = Process::start(|| repeat(&load.part, seed, &told)).map_err(|error| spawn(1, &error))?;
        let lead = load.lead;
        // From here on an error ends all that was started.
        let beside = Beside { running: Some(Running { process, told, load }) };
        if let Some(running) = &beside.running
            && wait_for([Some(&running.process), None], Some(lead))?[0]
        {
            return Err(running.ended_early());
        }
        Ok(beside)
    }

    /// Runs the measured part to its end, in a process of its own, and returns what it yielded.
    ///
    /// # Errors
    /// When its process cannot be started or says nothing, and when the load ends before it.
    pub fn measure(&self, part: &Part, trial: &Trial) -> Result<Outcome, Failure> {
        let refused = |error: io::Error| Failure::Refused(error.to_string());
        let mut words: File =
            memfd_create("kduel", MemfdFlags::CLOEXEC).map_err(|error| refused(error.into()))?.into();
        let seed = trial.seed();
        let mut process =
            Process::start(|| say(&mut words, part.run(seed))).map_err(|error| spawn(2, &error))?;
        let load = self.running.as_ref().map(|running| &running.process);
        loop {
            let [load_ended, ended] = wait_for([load, Some(&process)], None)?;
            if load_ended && let Some(running) = &self.running {
                return Err(running.ended_early());
            }
            if ended {
                break;
            }
        }
        let how = process.reap();
        let mut text = Vec::new();
        words.seek(SeekFrom::Start(0)).and_then(|_| words.read_to_end(&mut text)).map_err(refused)?;
        serde_json::from_slice(&text).map_err(|_| {
            let how = how.unwrap_or_else(|| "ended".into());
            Failure::Invariant(format!("its process {how} and left no result")).of(&part.title)
        })
    }

    /// Asks the load to stop, and leaves in `trial` what it did.
    ///
    /// # Errors
    /// When it has failed.
    pub fn end(mut self, trial: &mut Trial) -> Result<(), Failure> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let patience = running.load.patience;
        running.told.stop.store(true, Ordering::Release);
        let [ended, _] = wait_for([Some(&running.process), None], Some(patience))?;
        let how = if ended { running.process.reap() } else { None };
        let told = &running.told;
        if let Some(failure) = told.complaint.read() {
            return Err(failure.of(&running.load.part.title));
        }
        if let Some(how) = how {
            return Err(Failure::Invariant(format!("its process {how}")).of(&running.load.part.title));
        }
        let (name, rounds) = (&running.load.part.description.name, told.rounds.load(Ordering::Acquire));
        if !ended {
            trial.note(format!(
                "the load, {name}, did not come to the end of its round within {} s and was killed; give it shorter rounds, \
                 or raise `patience`",
                patience.as_secs_f64()
            ));
        }
        trial.counter("load rounds", rounds as f64);
        if let Some(metric) = running.load.part.description.metrics.first()
            && rounds > 0
        {
            let sum = f64::from_bits(told.sum_bits.load(Ordering::Acquire));
            trial.counter(&format!("load {}", metric.name), sum / rounds as f64);
        }
        trial.evidence("load", true, format!("{name} ran all the while and ended {rounds} rounds"));
        Ok(())
    }
}

impl Running {
    /// Why the load ended although nobody had asked it to.
    fn ended_early(&self) -> Failure {
        let said = self.told.complaint.read();
        let failure = said.unwrap_or_else(|| Failure::Invariant("it ended before the measured part".into()));
        failure.of(&self.load.part.title)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.running = None;
        end_all_children();
    }
}

/// What the load's process does: round after round, until it is asked to stop. Returns its status.
fn repeat(part: &Part, seed: u64, told: &Told) -> u8 {
    let (mut rounds, mut sum) = (0, 0.0);
    while !told.stop.load(Ordering::Acquire) {
        match part.run(seed.wrapping_add(rounds)) {
            Ok(trial) => {
                rounds += 1;
                sum += first_metric(part, trial);
                told.sum_bits.store(f64::to_bits(sum), Ordering::Release);
                told.rounds.store(rounds, Ordering::Release);
            }
            Err(failure) => {
                told.complaint.write(&failure);
                return 1;
            }
        }
    }
    0
}

/// The mean of the first metric of the part; 0 where the round yielded none.
fn first_metric(part: &Part, trial: Trial) -> f64 {
    let (Some(metric), Outcome::Done { samples, .. }) =
        (part.description.metrics.first(), trial.into_outcome())
    else {
        return 0.0;
    };
    let values = samples.get(&metric.name).map(Vec::as_slice).unwrap_or_default();
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Leaves what came of the measured part, as JSON. Returns the status of its process.
fn say(words: &mut File, result: Result<Trial, Failure>) -> u8 {
    let outcome = match result {
        Ok(trial) => trial.into_outcome(),
        Err(failure) => Outcome::Missing { failure: failure.kind(), why: failure.to_string() },
    };
    let written =
        serde_json::to_vec(&outcome).map_err(io::Error::from).and_then(|text| words.write_all(&text));
    u8::from(written.is_err())
}

fn spawn(nth: usize, error: &io::Error) -> Failure {
    Failure::Spawn { nth, count: 2, why: error.to_string() }
}

/// Waits until one of these processes has ended, for `patience` at the longest. Says of each whether it has.
fn wait_for(processes: [Option<&Process>; 2], patience: Option<Duration>) -> Result<[bool; 2], Failure> {
    let deadline = patience.map(|patience| Instant::now() + patience);
    let mut waited: Vec<PollFd> = processes
        .iter()
        .flatten()
        .filter_map(|process| process.pidfd.as_ref())
        .map(|pidfd| PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN))
        .collect();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut waited, timeout.as_ref()) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(Failure::Refused(format!("waiting for the parts failed: {error}"))),
        }
    }
    let mut ended = waited.iter().map(|process| !process.revents().is_empty());
    Ok(processes.map(|process| process.is_some() && ended.next().unwrap_or(false)))
}

/// A child in a process group of its own. The group is killed and the child reaped when this is dropped.
struct Process {
    pid: Pid,
    /// `None` only while it is made.
    pidfd: Option<OwnedFd>,
    reaped: bool,
}

impl Process {
    fn start(body: impl FnOnce() -> u8) -> io::Result<Process> {
        let pid = fork(|| {
            // Whether it can have one or not: what it starts ends with it in any case.
            let _ = setpgid(None, None);
            body()
        })?;
        // Twice, since nobody knows who comes first; the later one does no harm.
        let _ = setpgid(Some(pid), Some(pid));
        let pidfd = pidfd_open(pid, PidfdFlags::empty());
        let mut process = Process { pid, pidfd: None, reaped: false };
        process.pidfd = Some(pidfd?);
        Ok(process)
    }

    /// Waits for its end. Returns how it ended, as a clause, unless it left with status 0.
    fn reap(&mut self) -> Option<String> {
        loop {
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                Ok(Some((_, status))) => {
                    self.reaped = true;
                    return ending(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(None) | Err(_) => return Some("could not be waited for".into()),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = kill_process_group(self.pid, Signal::KILL);
            // Should it have no group of its own.
            let _ = kill_process(self.pid, Signal::KILL);
            self.reap();
        }
    }
}
