use crate::boot::{check_vm_name, refuses_vm_value};
use crate::did_you_mean;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// What a knob turns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "scope", content = "name")]
pub enum Scope {
    /// A parameter of the workload.
    Parameter(String),
    /// An environment variable of the trial.
    Env(String),
    /// The CPUs that the trial may use, as a list: `0-3,8`.
    Cpus,
    /// The scheduling policy of the trial: `other`, `batch`, `idle`, `fifo:PRIO`, `rr:PRIO`.
    Policy,
    /// The nice value of the trial.
    Nice,
    /// A sysctl by its dotted name: `kernel.sched_autogroup_enabled`.
    Sysctl(String),
    /// A file under /sys, relative to it.
    Sysfs(String),
    /// A file under the debugfs mount, relative to it.
    Debugfs(String),
    /// Whether libc registers rseq in the trial: `on` or `off`, by a word in `GLIBC_TUNABLES`.
    Rseq,
    /// The kernel to boot: a path, several files of one package joined with `+`, or `installed`.
    Kernel,
    /// Further boot arguments, separated by spaces.
    Append,
    /// Proxy execution, `on` or `off`, by the boot argument `sched_proxy_exec=`.
    Proxy,
    /// A setting of the virtual machine by its name without `vm.`: `cpus`, `memory`, `topology`.
    Vm(String),
}

impl Scope {
    /// Whether only a new boot can turn it.
    pub fn is_of_boot(&self) -> bool {
        matches!(self, Scope::Kernel | Scope::Append | Scope::Proxy | Scope::Vm(_))
    }
}

/// One setting that a variant changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knob {
    /// What it turns.
    #[serde(flatten)]
    pub scope: Scope,
    /// The value that it is turned to.
    pub value: String,
}

/// What is wrong with a knob.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KnobError {
    /// A prefix that no knob has.
    #[error("no knob is called `{key}`; {hint}")]
    Unknown {
        /// The key that was given.
        key: String,
        /// The nearest, or all of them.
        hint: String,
    },
    /// A prefix with nothing behind it, or a path that leaves its tree.
    #[error("`{key}` is no usable knob: {why}")]
    Name {
        /// The key that was given.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// A value that the knob does not take.
    #[error("knob `{key}` cannot be `{value}`: it takes {wanted}")]
    Value {
        /// The knob.
        key: String,
        /// The value that was given.
        value: String,
        /// What it takes.
        wanted: String,
    },
}

impl Knob {
    /// Every form that is not a workload parameter, for help and hints.
    pub const FORMS: [&'static str; 12] = [
        "cpus",
        "policy",
        "nice",
        "rseq",
        "env.NAME",
        "sysctl.NAME",
        "sysfs.PATH",
        "debugfs.PATH",
        "kernel",
        "append",
        "proxy",
        "vm.NAME",
    ];

    /// Reads `key=value`. A key without a dot that is no knob of the machine is a workload parameter; whether the
    /// workload has it is for its description to say.
    ///
    /// # Errors
    /// When the key or the value cannot be meant.
    pub fn parse(key: &str, value: &str) -> Result<Knob, KnobError> {
        let scope = match key.split_once('.') {
            None => match key {
                "cpus" => Scope::Cpus,
                "policy" => Scope::Policy,
                "nice" => Scope::Nice,
                "rseq" => Scope::Rseq,
                "kernel" => Scope::Kernel,
                "append" => Scope::Append,
                "proxy" => Scope::Proxy,
                _ => Scope::Parameter(key.to_string()),
            },
            Some((prefix, name)) => {
                if name.is_empty() {
                    return Err(KnobError::Name {
                        key: key.into(),
                        why: "nothing stands after its dot".into(),
                    });
                }
                let path = || {
                    let path = name.trim_start_matches('/');
                    if path.split('/').any(|part| part == ".." || part.is_empty()) {
                        return Err(KnobError::Name {
                            key: key.into(),
                            why: "its path must stay inside its tree".into(),
                        });
                    }
                    Ok(path.to_string())
                };
                match prefix {
                    "env" => Scope::Env(name.to_string()),
                    "sysctl" => {
                        path()?;
                        Scope::Sysctl(name.to_string())
                    }
                    "sysfs" => Scope::Sysfs(path()?),
                    "debugfs" => Scope::Debugfs(path()?),
                    "vm" => {
                        check_vm_name(key, name)?;
                        Scope::Vm(name.to_string())
                    }
                    _ => {
                        let prefixes = ["env", "sysctl", "sysfs", "debugfs", "vm"];
                        return Err(KnobError::Unknown {
                            key: key.into(),
                            hint: did_you_mean(prefix, prefixes),
                        });
                    }
                }
            }
        };
        let knob = Knob { scope, value: value.to_string() };
        knob.check()?;
        Ok(knob)
    }

    /// The key that users type.
    pub fn key(&self) -> String {
        match &self.scope {
            Scope::Parameter(name) => name.clone(),
            Scope::Env(name) => format!("env.{name}"),
            Scope::Cpus => "cpus".into(),
            Scope::Policy => "policy".into(),
            Scope::Nice => "nice".into(),
            Scope::Sysctl(name) => format!("sysctl.{name}"),
            Scope::Sysfs(path) => format!("sysfs.{path}"),
            Scope::Debugfs(path) => format!("debugfs.{path}"),
            Scope::Rseq => "rseq".into(),
            Scope::Kernel => "kernel".into(),
            Scope::Append => "append".into(),
            Scope::Proxy => "proxy".into(),
            Scope::Vm(name) => format!("vm.{name}"),
        }
    }

    /// Whether it changes the machine for everybody, and so has to be put back.
    pub fn changes_machine(&self) -> bool {
        matches!(self.scope, Scope::Sysctl(_) | Scope::Sysfs(_) | Scope::Debugfs(_))
    }

    fn check(&self) -> Result<(), KnobError> {
        let wrong = |wanted: &str| {
            Err(KnobError::Value { key: self.key(), value: self.value.clone(), wanted: wanted.into() })
        };
        match &self.scope {
            Scope::Nice => match self.value.parse::<i32>() {
                Ok(-20..=19) => Ok(()),
                _ => wrong("a whole number from -20 to 19"),
            },
            Scope::Policy => {
                let real_time = |priority: &str| matches!(priority.parse::<u32>(), Ok(1..=99));
                match self.value.split_once(':') {
                    None if matches!(self.value.as_str(), "other" | "batch" | "idle") => Ok(()),
                    Some(("fifo" | "rr", priority)) if real_time(priority) => Ok(()),
                    _ => wrong("`other`, `batch`, `idle`, `fifo:PRIO` or `rr:PRIO` with PRIO from 1 to 99"),
                }
            }
            Scope::Cpus if !is_cpu_list(&self.value) => wrong("a list of CPUs such as `0-3,8`"),
            Scope::Rseq | Scope::Proxy if !matches!(self.value.as_str(), "on" | "off") => {
                wrong("`on` or `off`")
            }
            Scope::Kernel if !is_printable(&self.value) => wrong("a path, or `installed`"),
            Scope::Append if !is_printable(&self.value) => wrong("boot arguments, separated by spaces"),
            Scope::Vm(name) => match refuses_vm_value(name, &self.value) {
                Some(wanted) => wrong(wanted),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// Whether a text is a list of CPUs such as `0-3,8`.
pub(crate) fn is_cpu_list(text: &str) -> bool {
    text.split(',').all(|item| match item.split_once('-') {
        None => item.parse::<u32>().is_ok(),
        Some((first, last)) => match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) => first <= last,
            _ => false,
        },
    })
}

/// Whether a text says something and would break no line.
fn is_printable(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(char::is_control)
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key(), self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_a_round_trip() {
        for (key, value) in [
            ("lock", "mcs"),
            ("cpus", "0-3,8"),
            ("policy", "fifo:50"),
            ("nice", "-5"),
            ("env.GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
            ("sysctl.kernel.sched_autogroup_enabled", "0"),
            ("sysfs.kernel/mm/transparent_hugepage/enabled", "never"),
            ("debugfs.sched/base_slice_ns", "3000000"),
            ("rseq", "off"),
            ("kernel", "linux-binary.deb+linux-base.deb"),
            ("append", "preempt=full isolcpus=1,2"),
            ("proxy", "on"),
            ("vm.topology", "1,2,2"),
        ] {
            let knob = Knob::parse(key, value).unwrap();
            assert_eq!(knob.to_string(), format!("{key}={value}"));
            let json = serde_json::to_string(&knob).unwrap();
            assert_eq!(serde_json::from_str::<Knob>(&json).unwrap(), knob, "{json}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_hint() {
        assert!(Knob::parse("sysctrl.kernel.x", "1").unwrap_err().to_string().contains("`sysctl`"));
        assert!(Knob::parse("sysfs.../etc/passwd", "1").is_err());
        assert!(Knob::parse("nice", "40").unwrap_err().to_string().contains("-20"));
        assert!(Knob::parse("cpus", "3-1").is_err());
        assert!(Knob::parse("policy", "fifo").is_err());
        assert!(Knob::parse("proxy", "yes").unwrap_err().to_string().contains("`on` or `off`"));
        assert!(Knob::parse("rseq", "").is_err());
        assert!(Knob::parse("kernel", " ").unwrap_err().to_string().contains("`installed`"));
        assert!(Knob::parse("append", "quiet\ninit=/bin/sh").is_err());
        assert!(Knob::parse("vmm.cpus", "4").unwrap_err().to_string().contains("`vm`"));
    }
}
