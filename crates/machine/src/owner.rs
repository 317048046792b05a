//! Who wrote an undo journal, in words that a later process can check.

use crate::{ReadError, Root};
use serde::{Deserialize, Serialize};

/// A process, as it can be told apart from every other on any machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The machine: a home directory may be shared by many.
    pub machine: String,
    /// The boot.
    pub boot: String,
    /// The process id.
    pub pid: u32,
    /// The start of the process in clock ticks after the boot, since ids are used again.
    pub start_ticks: u64,
}

impl Owner {
    /// This process.
    pub fn this(root: &Root) -> Result<Owner, ReadError> {
        let pid = std::process::id();
        // A machine id may have been cloned with a disk image, and a name may be given twice.
        let id = root.text("etc/machine-id").unwrap_or_default();
        Ok(Owner {
            machine: format!("{} {id}", root.text("proc/sys/kernel/hostname")?),
            boot: root.text("proc/sys/kernel/random/boot_id")?,
            pid,
            start_ticks: start_ticks(root, pid)?,
        })
    }

    /// Whether the other lives on the same machine in the same boot.
    pub fn same_boot(&self, other: &Owner) -> bool {
        self.machine == other.machine && self.boot == other.boot
    }

    /// Whether it still runs. Meaningful only on the machine and in the boot of the owner.
    pub fn runs(&self, root: &Root) -> bool {
        start_ticks(root, self.pid).is_ok_and(|start| start == self.start_ticks)
    }
}

/// The processes that can be seen.
pub fn all_pids(root: &Root) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(root.path("proc")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether there is a process with this id.
pub fn exists(root: &Root, pid: u32) -> bool {
    root.path(format!("proc/{pid}")).exists()
}

/// Whether a process can still make a system call. One that is dead or dying has no memory any more, even before its
/// number is free.
pub fn can_act(root: &Root, pid: u32) -> bool {
    let memory = root.text(format!("proc/{pid}/statm"));
    memory.is_ok_and(|text| text.split_whitespace().next() != Some("0"))
}

/// The name of this machine, with hyphens in place of what is neither a letter nor a digit.
pub fn machine_name(root: &Root) -> String {
    let name = root.text("proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// The name of the namespace in which this process has its id.
pub fn pid_namespace() -> Option<String> {
    let name = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(name.to_str()?.chars().filter(char::is_ascii_digit).collect())
}

/// When a process started. An error also stands for a process that is dead and only waits for its parent.
fn start_ticks(root: &Root, pid: u32) -> Result<u64, ReadError> {
    let inside = format!("proc/{pid}/stat");
    let stat = root.text(&inside)?;
    // The name stands in parentheses and may hold anything, parentheses included.
    let fields: Option<Vec<&str>> = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect());
    match fields.as_deref() {
        Some([state, ..]) if matches!(*state, "Z" | "X") => None,
        // The start is field 22; the state behind the name is field 3.
        Some(fields) => fields.get(19).and_then(|field| field.parse().ok()),
        None => None,
    }
    .ok_or_else(|| root.form(&inside, "the state of a living process", &stat))
}
