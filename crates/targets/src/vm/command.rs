//! What QEMU and the kernel are told.

use super::settings::{Board, Settings};
use agent::{Line, PORT_NAME};
use experiment::VIRTUAL_NS_PER_INSTRUCTION;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A virtual machine, as QEMU is asked for it.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    pub(super) settings: &'a Settings,
    /// Whether KVM runs it, or QEMU itself.
    pub(super) kvm: bool,
    pub(super) line: Line,
    /// The file for what its console says.
    pub(super) console: &'a Path,
    /// The file for what its agent says, where the agent only speaks. Else the line is QEMU's standard input, a socket.
    pub(super) answers: Option<PathBuf>,
    pub(super) kernel: &'a Path,
    pub(super) initramfs: &'a Path,
    /// The last boot arguments.
    pub(super) append: &'a [String],
}

impl Machine<'_> {
    /// The arguments for QEMU.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| all.extend(words.iter().map(OsString::from));
        let Settings { cpus, topology, memory_mib, board, virtual_time, .. } = self.settings;
        // Nothing that QEMU or this user's files would add of their own accord; and a kernel that restarts ends it.
        add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        add(&["-name", "kduel,debug-threads=on"]);
        add(&["-M", if *board == Board::Microvm { "microvm" } else { "q35" }]);
        match (self.kvm, virtual_time) {
            (true, _) => add(&["-accel", "kvm", "-cpu", "host"]),
            (false, false) => add(&["-accel", "tcg,thread=multi", "-cpu", "max"]),
            (false, true) => {
                // The clock goes by instructions, and nothing in the machine is left to chance.
                add(&["-accel", "tcg,thread=single", "-icount", &format!("shift={VIRTUAL_SHIFT},sleep=off")]);
                add(&["-cpu", "max,-rdrand,-rdseed", "-seed", "1", "-rtc", "clock=vm,base=2026-01-01"]);
            }
        }
        let [sockets, cores, threads] = topology.unwrap_or([1, *cpus, 1]);
        add(&["-smp", &format!("cpus={cpus},sockets={sockets},cores={cores},threads={threads}")]);
        add(&["-m", &format!("{memory_mib}M")]);
        for words in self.nodes() {
            add(&[words[0].as_str(), words[1].as_str()]);
        }
        add(&["-chardev", &file("console", self.console), "-serial", "chardev:console"]);
        add(&[
            "-chardev",
            &self.answers.as_deref().map_or("socket,id=agent,fd=0".into(), |path| file("agent", path)),
        ]);
        match (self.line, board) {
            (Line::Serial, _) => add(&["-serial", "chardev:agent"]),
            (Line::Virtio, Board::Q35) => add(&["-device", "virtio-serial-pci"]),
            (Line::Virtio, Board::Microvm) => add(&["-device", "virtio-serial-device"]),
        }
        if self.line == Line::Virtio {
            add(&["-device", &format!("virtserialport,chardev=agent,name={PORT_NAME}")]);
        }
        all.extend(["-kernel".into(), self.kernel.into(), "-initrd".into(), self.initramfs.into()]);
        all.extend(["-append".into(), self.kernel_command_line().into()]);
        all
    }

    /// The nodes of memory, with about as many CPUs each.
    fn nodes(&self) -> Vec<[String; 2]> {
        let Some(nodes) = self.settings.numa_nodes else { return Vec::new() };
        let share = |total: u64, node: u32| total * u64::from(node) / u64::from(nodes);
        let words = (0..nodes).flat_map(|node| {
            let cpus = |node| share(u64::from(self.settings.cpus), node);
            let memory = |node| share(self.settings.memory_mib, node);
            let mib = memory(node + 1) - memory(node);
            let (first, last) = (cpus(node), cpus(node + 1) - 1);
            [
                ["-object".into(), format!("memory-backend-ram,id=node{node},size={mib}M")],
                ["-numa".into(), format!("node,nodeid={node},cpus={first}-{last},memdev=node{node}")],
            ]
        });
        words.collect()
    }

    /// The kernel's arguments; of those that contradict each other it takes the last.
    pub(super) fn kernel_command_line(&self) -> String {
        let mut words: Vec<String> = ["console=ttyS0", "quiet"].map(String::from).to_vec();
        // A kernel in trouble ends at once and says so, for what it would measure from then on is worth nothing.
        let panics = ["panic=-1", "oops=panic", "softlockup_panic=1", "sysctl.kernel.panic_on_rcu_stall=1"];
        words.extend(panics.map(String::from));
        if !self.kvm {
            // Without it the watchdog of clocks doubts an emulated TSC under load, and patches code to live without.
            words.push("tsc=reliable".into());
            // On a busy host an emulated timer comes late, and the kernel would take it for one that is broken.
            words.push("no_timer_check".into());
        }
        if self.settings.virtual_time {
            words.push("nokaslr".into());
            // QEMU's clock ticks once in a nanosecond, which a kernel that measures it gets wrong by some millionths.
            words.push("tsc_early_khz=1000000".into());
        } else if !self.kvm && self.settings.board == Board::Microvm {
            // It has no other clock by which the kernel could find out, and would try for ever.
            words.extend(host_tsc_khz().map(|khz| format!("tsc_early_khz={khz}")));
        }
        words.extend_from_slice(self.append);
        words.join(" ")
    }
}

/// QEMU takes the time of an instruction as a power of two.
const VIRTUAL_SHIFT: u32 = VIRTUAL_NS_PER_INSTRUCTION.ilog2();

/// A character device that appends to a file. QEMU reads a doubled comma as a comma.
fn file(id: &str, path: &Path) -> String {
    format!("file,id={id},append=on,path={}", path.to_string_lossy().replace(',', ",,"))
}

/// The frequency of this machine's time stamp counter, which an emulated one takes over, in kHz.
#[cfg(target_arch = "x86_64")]
fn host_tsc_khz() -> Option<u64> {
    let read = || {
        // SAFETY: the instruction reads a register and has no effect on memory.
        unsafe { std::arch::x86_64::_rdtsc() }
    };
    let (began, first) = (Instant::now(), read());
    std::thread::sleep(Duration::from_millis(50));
    let (ticks, elapsed) = (read().checked_sub(first)?, began.elapsed());
    u64::try_from(u128::from(ticks) * 1_000_000 / elapsed.as_nanos().max(1)).ok()
}

#[cfg(not(target_arch = "x86_64"))]
fn host_tsc_khz() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(knobs: &[(&str, &str)], kvm: bool, see: impl FnOnce(&Machine<'_>) -> T) -> T {
        let given = knobs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let settings = Settings::of(&given).unwrap();
        let virtual_time = settings.virtual_time;
        see(&Machine {
            settings: &settings,
            kvm,
            line: if virtual_time { Line::Serial } else { Line::Virtio },
            console: Path::new("/run,1/console"),
            answers: virtual_time.then(|| "/answers".into()),
            kernel: Path::new("/k"),
            initramfs: Path::new("/i"),
            append: &["panic=0".into()],
        })
    }

    fn words(machine: &Machine<'_>) -> String {
        let words = machine.arguments();
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn emulation_and_virtual_time_are_asked_for_as_tried() {
        let plain = with(&[("cpus", "2")], false, words);
        for part in [
            "-M q35 -accel tcg,thread=multi -cpu max -smp cpus=2,sockets=1,cores=2,threads=1 -m 1024M",
            "path=/run,,1/console",
            "socket,id=agent,fd=0",
            "virtserialport",
            "tsc=reliable",
            "panic=-1",
        ] {
            assert!(plain.contains(part), "{part} in {plain}");
        }
        assert!(plain.ends_with("panic=0"), "what is appended goes last: {plain}");
        let virtual_time = with(&[("clock", "virtual")], false, words);
        for part in [
            "-accel tcg,thread=single -icount shift=1,sleep=off -cpu max,-rdrand,-rdseed -seed 1",
            "-rtc clock=vm,base=2026-01-01",
            "cpus=1,",
            "file,id=agent,append=on,path=/answers -serial chardev:agent",
            "nokaslr tsc_early_khz=1000000",
        ] {
            assert!(virtual_time.contains(part), "{part} in {virtual_time}");
        }
        assert!(!virtual_time.contains("fd=0"), "nothing may enter");
        let kvm = with(&[], true, words);
        assert!(kvm.contains("-accel kvm -cpu host") && !kvm.contains("tsc="), "{kvm}");
    }

    #[test]
    fn nodes_share_cpus_and_memory_without_rest() {
        let all = with(&[("cpus", "5"), ("numa", "2"), ("memory", "1001")], true, words);
        assert!(all.contains("id=node0,size=500M -numa node,nodeid=0,cpus=0-1,memdev=node0"), "{all}");
        assert!(all.contains("id=node1,size=501M -numa node,nodeid=1,cpus=2-4,memdev=node1"), "{all}");
    }

    #[test]
    fn a_microvm_is_told_the_frequency_that_it_cannot_find_out() {
        let line = |kvm| with(&[("machine", "microvm")], kvm, |machine| machine.kernel_command_line());
        assert!(!line(true).contains("tsc_early_khz"));
        if cfg!(target_arch = "x86_64") {
            let khz: u64 = line(false)
                .split("tsc_early_khz=")
                .nth(1)
                .unwrap()
                .split(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap();
            assert!((100_000..20_000_000).contains(&khz), "{khz}");
        }
    }
}
