//! The CPUs, the policy and the nice value of a thread.

use crate::knobs::Why;
use crate::{CpuSet, cpus};
use experiment::{Knob, Scope};
use rustix::process::{Resource, getrlimit};
use std::io;
use thiserror::Error;

/// A policy or nice value that cannot be had.
#[derive(Debug, Error)]
pub enum SchedulingError {
    /// The text is none.
    #[error("`{0}` is no policy; it is `other`, `batch`, `idle`, `fifo:PRIO` or `rr:PRIO`")]
    Policy(String),
    /// The text is none.
    #[error("`{0}` is no nice value; it is a whole number from -20 to 19")]
    Nice(String),
    /// The user may not have it.
    #[error(
        "this needs root, CAP_SYS_NICE or a higher limit ({limit}, ulimit {option}); the limit is {value}"
    )]
    Forbidden {
        /// The resource limit that would allow it.
        limit: &'static str,
        /// The option of the shell's ulimit for it.
        option: &'static str,
        /// Its value now.
        value: String,
    },
    /// The user may have it, and the control group may not.
    #[error("the control group of this process has no real-time share; its cpu.rt_runtime_us is 0")]
    NoShare,
    /// The kernel refused it for another reason.
    #[error("{call} failed: {source}")]
    Kernel {
        /// The system call.
        call: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The kernel took it, and yet says something else.
    #[error("the kernel took it and now says {found}")]
    Differs {
        /// What it says.
        found: String,
    },
}

/// What would allow it without root.
struct Limit {
    resource: Resource,
    name: &'static str,
    option: &'static str,
}

const PRIORITY_LIMIT: Limit = Limit { resource: Resource::Rtprio, name: "RLIMIT_RTPRIO", option: "-r" };
const NICE_LIMIT: Limit = Limit { resource: Resource::Nice, name: "RLIMIT_NICE", option: "-e" };

/// Applies a knob of the process to the calling thread and verifies it; leaves other knobs alone.
pub fn apply(knob: &Knob) -> Result<(), Why> {
    match knob.scope {
        Scope::Cpus => cpus::pin_thread(&knob.value.parse::<CpuSet>()?)?,
        Scope::Policy => set_policy(&knob.value)?,
        Scope::Nice => set_nice(&knob.value)?,
        _ => {}
    }
    Ok(())
}

fn set_policy(text: &str) -> Result<(), SchedulingError> {
    let (policy, priority) = match text.split_once(':') {
        None => (text, Some(0)),
        Some((policy, priority)) => (policy, priority.parse::<i32>().ok()),
    };
    let policy = match policy {
        "other" => Some(libc::SCHED_OTHER),
        "batch" => Some(libc::SCHED_BATCH),
        "idle" => Some(libc::SCHED_IDLE),
        "fifo" => Some(libc::SCHED_FIFO),
        "rr" => Some(libc::SCHED_RR),
        _ => None,
    };
    let (Some(policy), Some(priority)) = (policy, priority) else {
        return Err(SchedulingError::Policy(text.into()));
    };
    let call = "sched_setscheduler";
    // The kernel's struct sched_param is this one int; libc's may be larger.
    // SAFETY: the kernel reads one int from the address of a live one. 0 is the calling thread.
    let status = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if status < 0 {
        return Err(refusal(call, io::Error::last_os_error(), PRIORITY_LIMIT));
    }
    let mut found_priority: i32 = 0;
    // SAFETY: takes no pointer; 0 is the calling thread.
    let found = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    // SAFETY: the kernel writes one int to the address of a live one.
    let status = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut found_priority) };
    if found < 0 || status < 0 {
        return Err(SchedulingError::Kernel {
            call: "sched_getscheduler",
            source: io::Error::last_os_error(),
        });
    }
    if (found, found_priority) != (policy.into(), priority) {
        return Err(SchedulingError::Differs { found: format!("policy {found}, priority {found_priority}") });
    }
    Ok(())
}

fn set_nice(text: &str) -> Result<(), SchedulingError> {
    let nice = match text.parse::<i32>() {
        Ok(nice @ -20..=19) => nice,
        _ => return Err(SchedulingError::Nice(text.into())),
    };
    // On Linux this is a value of each thread, whatever the name says.
    if let Err(error) = rustix::process::setpriority_process(None, nice) {
        return Err(refusal("setpriority", error.into(), NICE_LIMIT));
    }
    match rustix::process::getpriority_process(None) {
        Ok(found) if found == nice => Ok(()),
        Ok(found) => Err(SchedulingError::Differs { found: format!("nice {found}") }),
        Err(error) => Err(SchedulingError::Kernel { call: "getpriority", source: error.into() }),
    }
}

fn refusal(call: &'static str, source: io::Error, limit: Limit) -> SchedulingError {
    if !matches!(source.raw_os_error(), Some(libc::EPERM | libc::EACCES)) {
        return SchedulingError::Kernel { call, source };
    }
    if rustix::process::geteuid().is_root() && limit.name == PRIORITY_LIMIT.name {
        return SchedulingError::NoShare;
    }
    let value = getrlimit(limit.resource).current.map_or("unlimited".to_string(), |value| value.to_string());
    SchedulingError::Forbidden { limit: limit.name, option: limit.option, value }
}
