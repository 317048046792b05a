//! The agent's side of one trial: start its process, watch it, end it, and say what became of it.

use crate::environment;
use crate::lines::{Lines, wait_readable};
use crate::program::Program;
use crate::requests::Requests;
use crate::trial::{self, Order, Report};
use crate::wire::{Done, TrialRequest};
use crate::{TOKEN_VARIABLE, TRIAL_ARGUMENT};
use experiment::{Failure, Outcome};
use machine::modules::ModulesBefore;
use machine::{KernelLog, Root, Snapshot, TrialCgroup};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the agent sleeps at most before it looks at its flags. A signal ends the sleep, unless it comes just before;
/// each look takes a CPU from the trial that is measured, so they are few.
const GLANCE: Duration = Duration::from_secs(1);
/// How long it listens on after the process has gone, for what is still in the pipes.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How much of a trial's standard error is kept.
const KEPT_OF_STDERR: usize = 4096;

/// How watching a trial ended.
pub(crate) enum Ended {
    /// The trial is over.
    Done(Box<Done>),
    /// The coordinator or a signal told the agent to leave; the trial has been ended.
    ToldToLeave,
}

/// A trial that runs.
pub(crate) struct Trial {
    token: String,
    child: Child,
    pidfd: OwnedFd,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    report: Lines,
    complaints: Vec<u8>,
    cgroup: Option<TrialCgroup>,
    before: Snapshot,
    kernel_log: KernelLog,
    clocksource: Option<String>,
    modules: ModulesBefore,
    /// That a module which the work loaded stays loaded.
    stays: Option<String>,
    started_at: Instant,
    deadline: Instant,
}

impl Trial {
    /// Starts the process. If that fails, the trial is over with the reason.
    pub(crate) fn start(request: &TrialRequest, program: &Program) -> Result<Trial, Box<Done>> {
        let root = Root::real();
        let clocksource = machine::settled_clocksource(&root);
        let started_at = Instant::now();
        let kernel_log = KernelLog::mark();
        let before = Snapshot::take(&root);
        // Where there can be none, the process group and the token have to do.
        let cgroup = TrialCgroup::create(&root).ok();
        let command = program.command();
        Trial::spawn(request, command, started_at, kernel_log, before, clocksource, cgroup).map_err(|error| {
            let why = format!("the trial's process could not be started: {error}");
            let elapsed_ns = started_at.elapsed().as_nanos() as u64;
            Box::new(Done { elapsed_ns, ..Done::missing(Failure::Spawn, why) })
        })
    }

    fn spawn(
        request: &TrialRequest,
        mut command: Command,
        started_at: Instant,
        kernel_log: KernelLog,
        before: Snapshot,
        clocksource: Option<String>,
        cgroup: Option<TrialCgroup>,
    ) -> io::Result<Trial> {
        command.envs(environment::of(&request.knobs));
        // After the knobs, none of which may take away the mark.
        command
            .arg(TRIAL_ARGUMENT)
            .env(TOKEN_VARIABLE, &request.token)
            // Where the stack starts depends on the size of the environment, and with it what shares cache lines.
            .env("KDUEL_PADDING", "x".repeat(request.padding_bytes))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let modules = ModulesBefore::now(trial::modules(&request.work).into_iter().map(|need| need.name));
        let mut child = command.spawn()?;
        let order = Order {
            agent: rustix::process::getpid().as_raw_nonzero().get(),
            cgroup: cgroup.as_ref().map(|cgroup| cgroup.path().to_path_buf()),
            request: request.clone(),
        };
        let handed_over = hand_over(&mut child, &order);
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        match (handed_over, pidfd) {
            (Ok(()), Ok(pidfd)) => Ok(Trial {
                token: request.token.clone(),
                child,
                pidfd,
                stdout,
                stderr,
                report: Lines::default(),
                complaints: Vec::new(),
                cgroup,
                before,
                kernel_log,
                clocksource,
                modules,
                stays: None,
                started_at,
                deadline: started_at + Duration::from_secs_f64(request.deadline_s),
            }),
            (Err(error), _) | (_, Err(error)) => {
                // It is our child and not yet waited for, so the pid is still its own.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// The process id of the trial, and of its process group.
    pub(crate) fn pid(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_nonzero().get()
    }

    /// Watches until the process has gone, passes its deadline, or the agent must leave.
    pub(crate) fn watch(mut self, requests: &mut Requests, leave: &AtomicBool) -> io::Result<Ended> {
        let mut line = None;
        let mut hung = false;
        loop {
            if leave.load(Ordering::SeqCst) {
                self.end_all();
                return Ok(Ended::ToldToLeave);
            }
            if Instant::now() >= self.deadline {
                hung = true;
                break;
            }
            let mut watched = vec![self.pidfd.as_fd()];
            watched.extend(requests.stream());
            watched.extend(self.stdout.as_ref().map(AsFd::as_fd));
            watched.extend(self.stderr.as_ref().map(AsFd::as_fd));
            let ready = wait_readable(&watched, self.deadline.min(Instant::now() + GLANCE))?;
            if requests.stream().is_some() && ready[1] && requests.interrupts()? {
                self.end_all();
                return Ok(Ended::ToldToLeave);
            }
            self.listen(&mut line)?;
            if ready[0] {
                let heard_out = Instant::now() + LAST_WORDS;
                while (self.stdout.is_some() || self.stderr.is_some()) && Instant::now() < heard_out {
                    let mut watched = Vec::new();
                    watched.extend(self.stdout.as_ref().map(AsFd::as_fd));
                    watched.extend(self.stderr.as_ref().map(AsFd::as_fd));
                    let more = wait_readable(&watched, Instant::now())?;
                    if !more.contains(&true) {
                        break;
                    }
                    self.listen(&mut line)?;
                }
                break;
            }
        }
        Ok(Ended::Done(Box::new(self.conclude(line, hung)?)))
    }

    /// Takes what the trial has said, without waiting.
    fn listen(&mut self, line: &mut Option<Vec<u8>>) -> io::Result<()> {
        if let Some(stdout) = &self.stdout
            && wait_readable(&[stdout.as_fd()], Instant::now())?[0]
            && !matches!(self.report.fill(stdout.as_fd()), Ok(true))
        {
            // It has ended, or is longer than any report: then the trial loses its reader, and not the agent its life.
            self.stdout = None;
        }
        if line.is_none() {
            *line = self.report.next();
        }
        if let Some(stderr) = &self.stderr
            && wait_readable(&[stderr.as_fd()], Instant::now())?[0]
        {
            let mut chunk = [0; 4096];
            match rustix::io::read(stderr, &mut chunk) {
                Ok(0) => self.stderr = None,
                Ok(read) => {
                    self.complaints.extend_from_slice(&chunk[..read]);
                    let surplus = self.complaints.len().saturating_sub(KEPT_OF_STDERR);
                    self.complaints.drain(..surplus);
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Ends every process of the trial and waits for them.
    fn end_all(&mut self) -> Option<ExitStatus> {
        // ESRCH: the group is empty already.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let caught = match &self.cgroup {
            Some(cgroup) => cgroup.kill_all().is_ok(),
            None => false,
        };
        let status = self.child.wait().ok();
        let gone = caught && machine::reap_orphans();
        if !gone && machine::has_children() {
            // Somebody has left the process group and the cgroup, and so has come to us, the subreaper.
            machine::kill_strays(TOKEN_VARIABLE, &self.token);
            machine::reap_orphans();
        }
        // A trial that was killed could not remove them itself.
        machine::remove_leftovers();
        self.stays = self.modules.remove().err().map(|error| error.to_string());
        status
    }

    fn conclude(mut self, line: Option<Vec<u8>>, hung: bool) -> io::Result<Done> {
        let root = Root::real();
        let status = self.end_all();
        let (mut usage, surprises) = self.before.usage_since(&root);
        if let Some(cgroup) = self.cgroup.take() {
            cgroup.account(&mut usage);
            // If it cannot go now, the next one that is made removes it.
            let _ = cgroup.remove();
        }
        let elapsed = self.started_at.elapsed();
        let kernel_log = self.kernel_log.since();
        let report = line.and_then(|line| serde_json::from_slice::<Report>(&line).ok());
        let mut outcome = match (hung, report, status) {
            (true, ..) => missing(
                Failure::Hang,
                format!(
                    "killed after {} s, the longest that a trial may take; --deadline sets it",
                    (self.deadline - self.started_at).as_secs_f64()
                ),
            ),
            (false, Some(report), Some(status)) if status.success() => {
                usage.max_rss_bytes = report.usage.max_rss_bytes;
                usage.migrations = report.usage.migrations;
                usage.work_ns = report.usage.work_ns;
                usage.work_cpu_ns = report.usage.work_cpu_ns;
                report.outcome
            }
            (false, _, status) => self.died(status),
        };
        if let Outcome::Missing { failure: failure @ Failure::Signal, why } = &mut outcome
            && machine::oom_killed_since(&kernel_log, self.pid())
        {
            *failure = Failure::OutOfMemory;
            why.push_str("; meanwhile the kernel's out-of-memory killer was at work");
        }
        if let (Outcome::Missing { why, .. }, Some(stays)) = (&mut outcome, &self.stays)
            && !why.contains(stays)
        {
            why.push_str(&format!("; {stays}"));
        }
        if matches!(outcome, Outcome::Done { .. }) {
            if usage.throttled_ns.is_some_and(|ns| ns > 0) {
                outcome =
                    missing(Failure::Disturbed, "a CPU quota of its cgroup stopped it (cpu.max)".into());
            } else if machine::clocksource(&root) != self.clocksource {
                outcome = missing(Failure::Disturbed, "the kernel changed its clock source meanwhile".into());
            } else if let Outcome::Done { notes, .. } = &mut outcome {
                notes.extend(surprises);
            }
        }
        Ok(Done { outcome, usage, kernel_log, elapsed_ns: elapsed.as_nanos() as u64 })
    }

    fn died(&self, status: Option<ExitStatus>) -> Outcome {
        let complaints = String::from_utf8_lossy(&self.complaints);
        let last_words = match complaints.trim() {
            "" => String::new(),
            text => format!("; it said: {}", text.lines().last().unwrap_or_default()),
        };
        match (status.and_then(|status| status.signal()), status.and_then(|status| status.code())) {
            (Some(signal), _) => {
                missing(Failure::Signal, format!("killed by signal {}{last_words}", signal_name(signal)))
            }
            (None, Some(code)) => {
                missing(Failure::Exit, format!("left with status {code} and no result{last_words}"))
            }
            (None, None) => missing(Failure::Exit, format!("its end was not seen{last_words}")),
        }
    }
}

fn hand_over(child: &mut Child, order: &Order) -> io::Result<()> {
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    let Some(mut stdin) = child.stdin.take() else {
        return Err(io::Error::other("its standard input is missing"));
    };
    match stdin.write_all(&line) {
        // It has died already. Its status and its last words say why better than the pipe does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn missing(failure: Failure, why: String) -> Outcome {
    Outcome::Missing { failure, why }
}

fn signal_name(signal: i32) -> String {
    match signal_hook::low_level::signal_name(signal) {
        Some(name) => format!("{signal} ({name})"),
        None => signal.to_string(),
    }
}
