//! What `vm.` knobs ask of a virtual machine.

use super::VmError;
use experiment::counted;
use machine::CpuSet;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

/// A machine with more CPUs of its own accord would have none left over on most hosts, and emulates them slowly.
const CPUS_UNASKED: usize = 16;
const MEMORY_MIB: u64 = 1024;
const TIMEOUT: Duration = Duration::from_secs(120);

/// The kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Board {
    /// A PC with PCI Express.
    Q35,
    /// The least that a kernel boots on.
    Microvm,
}

/// Who runs the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// KVM where it works, else QEMU itself.
    Auto,
    Kvm,
    Tcg,
}

/// All settings, with defaults for those that were not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) cpus: u32,
    /// Sockets, cores in each, threads in each.
    pub(super) topology: Option<[u32; 3]>,
    pub(super) memory_mib: u64,
    pub(super) numa_nodes: Option<u32>,
    pub(super) board: Board,
    pub(super) accelerator: Asked,
    /// Whether the clock counts instructions.
    pub(super) virtual_time: bool,
    /// The CPUs of the host for the threads of the CPUs of the machine, one after the other.
    pub(super) pin: Option<CpuSet>,
    /// Whether the machines of a block boot at the same time.
    pub(super) overlap: bool,
    /// How long a boot may take.
    pub(super) timeout: Duration,
}

impl Settings {
    /// Reads the settings by their names without `vm.`.
    pub(super) fn of(given: &BTreeMap<String, String>) -> Result<Settings, VmError> {
        let virtual_time = match given.get("clock").map(String::as_str) {
            None | Some("host") => false,
            Some("virtual") => true,
            Some(value) => return Err(wrong("clock", value, "it is `host` or `virtual`")),
        };
        let topology = given.get("topology").map(|value| topology(value)).transpose()?;
        let in_topology =
            topology.map(|[sockets, cores, threads]| sockets.saturating_mul(cores).saturating_mul(threads));
        let unasked = if virtual_time { 1 } else { host_cpus() };
        let cpus = number(given, "cpus")?.or(in_topology).unwrap_or(unasked);
        if let Some(count) = in_topology.filter(|count| *count != cpus) {
            let value = given.get("topology").map_or("", String::as_str);
            return Err(wrong(
                "topology",
                value,
                &format!("it makes {}, and vm.cpus asks for {cpus}", counted(count, "CPU")),
            ));
        }
        let settings = Settings {
            cpus,
            topology,
            memory_mib: number(given, "memory")?.unwrap_or(MEMORY_MIB),
            numa_nodes: number(given, "numa")?,
            board: match given.get("machine").map(String::as_str) {
                None | Some("q35") => Board::Q35,
                Some("microvm") => Board::Microvm,
                Some(value) => return Err(wrong("machine", value, "it is `q35` or `microvm`")),
            },
            accelerator: match given.get("accel").map(String::as_str) {
                None | Some("auto") => Asked::Auto,
                Some("kvm") => Asked::Kvm,
                Some("tcg") => Asked::Tcg,
                Some(value) => return Err(wrong("accel", value, "it is `auto`, `kvm` or `tcg`")),
            },
            virtual_time,
            pin: given.get("pin").map(|list| pin(list)).transpose()?,
            overlap: match given.get("overlap").map(String::as_str) {
                None | Some("off") => false,
                Some("on") => true,
                Some(value) => return Err(wrong("overlap", value, "it is `on` or `off`")),
            },
            timeout: number(given, "timeout")?.map_or(TIMEOUT, Duration::from_secs),
        };
        settings.together()
    }

    /// What is each fine and cannot be together.
    fn together(self) -> Result<Settings, VmError> {
        if self.virtual_time && self.accelerator == Asked::Kvm {
            return Err(wrong(
                "accel",
                "kvm",
                "with vm.clock=virtual instructions are counted, which only emulation does",
            ));
        }
        if self.board == Board::Microvm && self.virtual_time {
            return Err(wrong(
                "machine",
                "microvm",
                "vm.clock=virtual needs two serial lines, which only q35 has",
            ));
        }
        if let Some(nodes) = self.numa_nodes {
            if self.board == Board::Microvm {
                return Err(wrong("numa", &nodes.to_string(), "vm.machine=microvm has one node"));
            }
            if nodes > self.cpus || u64::from(nodes) > self.memory_mib {
                let why = format!("each node needs a CPU and memory; there are {} CPUs", self.cpus);
                return Err(wrong("numa", &nodes.to_string(), &why));
            }
        }
        Ok(self)
    }
}

fn wrong(name: &'static str, value: &str, why: &str) -> VmError {
    VmError::Setting { name, value: value.into(), why: why.into() }
}

fn number<T: FromStr>(given: &BTreeMap<String, String>, name: &'static str) -> Result<Option<T>, VmError> {
    let Some(value) = given.get(name) else { return Ok(None) };
    value.parse().map(Some).map_err(|_| wrong(name, value, "it is a whole number"))
}

fn topology(value: &str) -> Result<[u32; 3], VmError> {
    let counts: Option<Vec<u32>> =
        value.split(',').map(|count| count.parse().ok().filter(|count| *count > 0)).collect();
    counts
        .and_then(|counts| counts.try_into().ok())
        .ok_or_else(|| wrong("topology", value, "it is SOCKETS,CORES,THREADS"))
}

fn pin(list: &str) -> Result<CpuSet, VmError> {
    match list.parse::<CpuSet>() {
        Ok(cpus) if !cpus.is_empty() => Ok(cpus),
        Ok(_) => Err(wrong("pin", list, "it names no CPU")),
        Err(error) => Err(wrong("pin", list, &error.to_string())),
    }
}

/// As many CPUs as this process may use, within reason.
fn host_cpus() -> u32 {
    machine::cpus::allowed().map_or(1, |cpus| cpus.len().clamp(1, CPUS_UNASKED) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Result<Settings, String> {
        let given = given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Settings::of(&given).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_given_has_a_default() {
        let plain = settings(&[]).unwrap();
        assert_eq!(plain.cpus, host_cpus());
        assert_eq!((plain.memory_mib, plain.board, plain.virtual_time), (1024, Board::Q35, false));
        assert_eq!(settings(&[("topology", "2,3,2")]).unwrap().cpus, 12);
        assert_eq!(
            settings(&[("clock", "virtual")]).unwrap().cpus,
            1,
            "CPUs that take turns only slow it down"
        );
        assert_eq!(settings(&[("pin", "0-3,8")]).unwrap().pin.unwrap().len(), 5);
    }

    #[test]
    fn what_cannot_be_together_is_named() {
        for (given, wanted) in [
            (&[("cpus", "4"), ("topology", "1,2,1")] as &[_], "makes 2 CPUs, and vm.cpus asks for 4"),
            (&[("clock", "virtual"), ("accel", "kvm")], "only emulation"),
            (&[("clock", "virtual"), ("machine", "microvm")], "q35"),
            (&[("numa", "3"), ("cpus", "2")], "2 CPUs"),
            (&[("numa", "2"), ("machine", "microvm")], "one node"),
            (&[("pin", "x")], "vm.pin=x"),
            (&[("memory", "1G")], "vm.memory=1G"),
        ] {
            let error = settings(given).unwrap_err();
            assert!(error.contains(wanted), "{given:?}: {error}");
        }
    }
}
