//! The console of a virtual machine: a file to which its kernel and QEMU write, and what they say there about an end.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// As much of the end is looked at.
const BYTES_READ: u64 = 256 << 10;
/// As many lines of it are shown.
const LINES_SHOWN: usize = 15;

/// The console of one boot.
#[derive(Debug, Clone)]
pub(super) struct Console {
    path: PathBuf,
}

/// What a machine came to grief by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It had too little memory.
    OutOfMemory,
    /// The emulator tripped over code that the kernel patches while other CPUs run it.
    JumpLabel,
    /// The kernel did something that it must not.
    Oops,
    /// A CPU was kept by one task for too long.
    SoftLockup,
    /// A CPU took no interrupts for too long.
    HardLockup,
    /// A CPU kept RCU waiting for too long.
    RcuStall,
    /// A task slept for too long without a chance to be woken.
    HungTask,
    /// The hypervisor could not go on.
    Hypervisor,
    /// kduel could not work as process 1.
    Init,
    /// The kernel gave up for another reason.
    Panic,
    /// It ended without saying why.
    Ended,
    /// It said nothing within its time.
    NeverSpoke,
}

/// A fault with its circumstances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The kind.
    pub fault: Fault,
    /// The line of the console that names it, or another circumstance; may be empty.
    pub detail: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.fault {
            Fault::OutOfMemory => "the virtual machine has too little memory, vm.memory=MIB gives it more",
            Fault::JumpLabel => "the emulated kernel died of a fault of the emulator",
            Fault::Oops => "the kernel oopsed",
            Fault::SoftLockup => "the kernel reported a soft lockup",
            Fault::HardLockup => "the kernel reported a hard lockup",
            Fault::RcuStall => "the kernel reported an RCU stall",
            Fault::HungTask => "the kernel reported a hung task",
            Fault::Hypervisor => "the hypervisor failed",
            Fault::Init => "kduel could not start in the virtual machine",
            Fault::Panic => "the kernel panicked",
            Fault::Ended => "the virtual machine ended without a word",
            Fault::NeverSpoke => "the virtual machine never spoke",
        })?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

/// The end of a console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail(Vec<String>);

impl std::error::Error for Tail {}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the console is empty");
        }
        write!(f, "the console ends with")?;
        self.0.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// What stands on the console when a fault has happened, the telling one before those that only follow from it.
const SIGNS: &[(&str, Fault)] = &[
    ("System is deadlocked on memory", Fault::OutOfMemory),
    ("Out of memory and no killable processes", Fault::OutOfMemory),
    ("Initramfs unpacking failed: write error", Fault::OutOfMemory),
    ("Initramfs unpacking failed: junk", Fault::OutOfMemory),
    ("initrd is too large", Fault::OutOfMemory),
    ("Oops: int3", Fault::JumpLabel),
    ("KVM internal error", Fault::Hypervisor),
    ("KVM: entry failed", Fault::Hypervisor),
    ("error: kvm run failed", Fault::Hypervisor),
    ("watchdog: BUG: soft lockup", Fault::SoftLockup),
    ("hard LOCKUP", Fault::HardLockup),
    ("detected stalls", Fault::RcuStall),
    ("self-detected stall", Fault::RcuStall),
    ("BUG: ", Fault::Oops),
    ("Oops: ", Fault::Oops),
    ("kernel BUG at", Fault::Oops),
    ("general protection fault", Fault::Oops),
    ("blocked for more than", Fault::HungTask),
    (agent::WORDS_OF_INIT, Fault::Init),
    (PANIC, Fault::Panic),
];

/// What a kernel says before the reason for which it gives up.
const PANIC: &str = "Kernel panic - not syncing";

impl Console {
    pub(super) fn at(path: PathBuf) -> Console {
        Console { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The last lines that say something.
    pub(super) fn tail(&self) -> Tail {
        let lines = self.lines();
        Tail(lines[lines.len().saturating_sub(LINES_SHOWN)..].to_vec())
    }

    /// The last line that says something.
    pub(super) fn last_line(&self) -> Option<String> {
        self.lines().pop()
    }

    /// The fault that the console tells of.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        trouble(&self.lines())
    }

    /// Whether the machine is past helping, although it may still be there.
    pub(super) fn is_hopeless(&self) -> bool {
        self.lines().iter().any(|line| {
            SIGNS
                .iter()
                .any(|(sign, fault)| matches!(fault, Fault::Panic | Fault::Hypervisor) && line.contains(sign))
        })
    }

    /// What QEMU said, when it did not get as far as running a kernel.
    pub(super) fn qemu_said(&self) -> Option<String> {
        let lines = self.lines();
        let said: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.split_once(": ").filter(|(who, _)| who.ends_with(super::qemu::PROGRAM)))
            .map(|(_, what)| what)
            .collect();
        (!said.is_empty() && said.len() == lines.len()).then(|| said.join("; "))
    }

    fn lines(&self) -> Vec<String> {
        let text = self.end().unwrap_or_default();
        let lines = text.split(['\n', '\r']).map(plain);
        lines.filter(|line| !line.trim().is_empty()).collect()
    }

    fn end(&self) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(BYTES_READ)))?;
        let mut bytes = Vec::new();
        file.take(BYTES_READ).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn trouble(lines: &[String]) -> Option<Trouble> {
    SIGNS.iter().find_map(|(sign, fault)| {
        let line = lines.iter().find(|line| line.contains(sign))?;
        // What stands before: the time, and who says it.
        let line = line.strip_prefix('[').and_then(|line| Some(line.split_once("] ")?.1)).unwrap_or(line);
        let detail = match fault {
            Fault::Init => line.split(agent::WORDS_OF_INIT).last().unwrap_or(line),
            Fault::Panic => line.trim_start_matches(PANIC).trim_start_matches(": "),
            _ => line,
        };
        Some(Trouble { fault: *fault, detail: detail.trim().into() })
    })
}

impl Trouble {
    /// It has said nothing for so long.
    pub(super) fn never_spoke(waited: Duration) -> Trouble {
        let detail =
            format!("nothing came in {} s; vm.timeout=SECONDS sets how long it may take", waited.as_secs());
        Trouble { fault: Fault::NeverSpoke, detail }
    }
}

/// A line without what moves cursors and sets colours, and cut where it is too long for a message.
fn plain(line: &str) -> String {
    let mut kept = String::new();
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\x1b' {
            // ESC [ parameters letter, or ESC and one more.
            if characters.next() == Some('[') {
                characters.by_ref().find(|character| character.is_ascii_alphabetic());
            }
        } else if !character.is_control() || character == '\t' {
            kept.push(character);
        }
    }
    kept.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Trouble> {
        let lines: Vec<String> = text.lines().map(String::from).collect();
        trouble(&lines)
    }

    #[test]
    fn p5_each_fault_has_its_name() {
        for (text, fault) in [
            ("[ 0.1] Kernel panic - not syncing: VFS: Unable to mount root fs on \"\"", Fault::Panic),
            (
                "[ 9.1] BUG: kernel NULL pointer dereference, address: 0\n[ 9.2] Oops: 0002 [#1]\nKernel panic - not syncing: Fatal exception",
                Fault::Oops,
            ),
            (
                "Oops: int3: 0000 [#1] SMP\nKernel panic - not syncing: Fatal exception in interrupt",
                Fault::JumpLabel,
            ),
            (
                "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [a:77]\nKernel panic - not syncing: softlockup: hung tasks",
                Fault::SoftLockup,
            ),
            ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", Fault::RcuStall),
            ("rcu: INFO: rcu_sched self-detected stall on CPU", Fault::RcuStall),
            ("Watchdog detected hard LOCKUP on cpu 3", Fault::HardLockup),
            ("INFO: task kduel:99 blocked for more than 120 seconds.", Fault::HungTask),
            ("Kernel panic - not syncing: System is deadlocked on memory", Fault::OutOfMemory),
            (
                "Initramfs unpacking failed: write error\nKernel panic - not syncing: No working init found.",
                Fault::OutOfMemory,
            ),
            ("kduel init: there is no virtio port", Fault::Init),
            ("KVM internal error. Suberror: 1", Fault::Hypervisor),
        ] {
            let found = of(text).unwrap();
            assert_eq!(found.fault, fault, "{text}");
            assert!(!found.to_string().contains('\n'), "{found}");
        }
        let detail = |text| of(text).unwrap().detail;
        assert_eq!(detail("kduel init: there is no virtio port"), "there is no virtio port");
        assert_eq!(detail("[    1.2] Kernel panic - not syncing: VFS: no root"), "VFS: no root");
        // A trial that was killed for its memory is its own affair.
        assert_eq!(of("Out of memory: Killed process 71 (kduel)\nreboot: Power down"), None);
    }

    #[test]
    fn the_tail_is_plain_text_of_bounded_size() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("console");
        let mut text = String::from("\x1b[2J\x1b[1;31mred\x1b[0m line\r\n\r\n\u{7}bell\n");
        std::fs::write(&path, &text).unwrap();
        let console = Console::at(path.clone());
        assert_eq!(console.tail().to_string(), "the console ends with\n    red line\n    bell");
        for line in 0..100_000 {
            text.push_str(&format!("line {line}\n"));
        }
        std::fs::write(&path, &text).unwrap();
        let tail = console.tail().to_string();
        assert!(tail.ends_with("line 99999") && tail.lines().count() == LINES_SHOWN + 1, "{tail}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(console.tail().to_string(), "the console is empty");
    }

    #[test]
    fn qemu_is_heard_only_where_nobody_else_spoke() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("console");
        let console = Console::at(path.clone());
        std::fs::write(&path, "qemu-system-x86_64: -smp 0: Invalid CPU topology\n").unwrap();
        assert_eq!(console.qemu_said().unwrap(), "-smp 0: Invalid CPU topology");
        std::fs::write(&path, "qemu-system-x86_64: warning: x\nKernel panic - not syncing: y\n").unwrap();
        assert_eq!(console.qemu_said(), None);
        assert!(console.is_hopeless());
    }
}
