//! One life of a virtual machine.

use super::VmError;
use super::command::Machine;
use super::console::{Console, Fault, Trouble};
use super::error::GuestError;
use super::initramfs::Initramfs;
use super::line::line_to;
use super::pin::pin;
use super::qemu::{MemoryFile, Qemu};
use super::settings::Settings;
use crate::capsule::Capsule;
use crate::kernel::{Kernel, Module};
use agent::{AgentError, Client, InitOrder, Line, ORDER_PATH, Request, SCRIPT_PATH, Stop, build_id, script};
use machine::modules::CARRIED_MODULES;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How often a machine that has not spoken yet is looked at.
const GLANCE: Duration = Duration::from_millis(500);
/// How long a machine has to end after it was told to, or after its kernel has given up.
const LAST_BREATH: Duration = Duration::from_secs(5);
/// How much longer an emulated machine may take for an answer, and one whose instructions are counted.
const SLOWNESS_EMULATED: u32 = 4;
const SLOWNESS_COUNTED: u32 = 20;

/// What a machine is made of.
pub(super) struct Plan<'a> {
    pub(super) settings: &'a Settings,
    pub(super) kvm: bool,
    pub(super) kernel: &'a Kernel,
    pub(super) capsule: &'a Capsule,
    /// The modules that the work in it loads itself.
    pub(super) carried: &'a [Module],
    /// The last boot arguments.
    pub(super) append: &'a [String],
    /// What the agent will be asked, where it has to know beforehand.
    pub(super) script: &'a [Request],
    /// The file for what the console says.
    pub(super) console: PathBuf,
    pub(super) token: &'a str,
    pub(super) stop: &'a Stop,
}

/// A machine that runs, or has.
#[derive(Debug)]
pub(super) struct Guest {
    client: Client,
    qemu: Qemu,
    console: Console,
    emulated: bool,
    memory: Memory,
    /// What QEMU reads, and may write.
    _files: [MemoryFile; 3],
}

/// What a machine has of memory, and what its kernel and first file system take at least, in MiB.
#[derive(Debug, Clone, Copy)]
struct Memory {
    given_mib: u64,
    needed_mib: u64,
}

impl Guest {
    /// Waits for the first word of a machine that was begun with these settings, and for its answer to the greeting. Gives
    /// also its remarks.
    pub(super) fn come_up(mut self, settings: &Settings) -> Result<(Guest, Vec<String>), VmError> {
        let remarks = self.wait_for_first_word(settings.timeout)?;
        if let Some(cpus) = &settings.pin
            && let Err(why) = pin(self.qemu.pid(), cpus)
            // In virtual time all may be done by now.
            && self.qemu.wait(Duration::ZERO).is_none()
        {
            return Err(VmError::Setting { name: "pin", value: cpus.to_string(), why });
        }
        match self.client.hello() {
            Ok(()) => Ok((self, remarks)),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Starts a machine, and does not wait for it.
    pub(super) fn begin(plan: &Plan<'_>) -> Result<Guest, VmError> {
        let settings = plan.settings;
        let (line, archive) = initramfs(plan)?;
        let kernel = MemoryFile::new("kernel", &plan.kernel.image)?;
        let initramfs = MemoryFile::new("initramfs", &archive)?;
        let answers = MemoryFile::new("answers", &[])?;
        let log = File::options().create(true).append(true).open(&plan.console).map_err(|error| {
            VmError::Io { action: format!("make the console log {}", plan.console.display()), error }
        })?;
        let machine = Machine {
            settings,
            kvm: plan.kvm,
            line,
            console: &plan.console,
            answers: settings.virtual_time.then(|| answers.path()),
            kernel: &kernel.path(),
            initramfs: &initramfs.path(),
            append: plan.append,
        };
        let pipes = |error| VmError::Io { action: "connect to QEMU".into(), error };
        let start = |input| Qemu::start(&machine.arguments(), input, &log, plan.token);
        let (qemu, client) = if settings.virtual_time {
            let qemu = start(Stdio::null())?;
            let (written, ended) = (File::open(answers.path()).map_err(pipes)?, qemu.ended().map_err(pipes)?);
            let client = Client::scripted(plan.script, written, ended, plan.stop.clone());
            (qemu, client.slowed(SLOWNESS_COUNTED))
        } else {
            let (ours, theirs) = UnixStream::pair().map_err(pipes)?;
            let qemu = start(Stdio::from(OwnedFd::from(theirs)))?;
            let to = ours.try_clone().map_err(pipes)?;
            let client = Client::over(to.into(), ours.into(), plan.stop.clone());
            (qemu, client.slowed(if plan.kvm { 1 } else { SLOWNESS_EMULATED }))
        };
        Ok(Guest {
            client,
            qemu,
            console: Console::at(plan.console.clone()),
            emulated: !plan.kvm,
            memory: Memory {
                given_mib: settings.memory_mib,
                needed_mib: needed_mib(&plan.kernel.image, archive.len()),
            },
            _files: [kernel, initramfs, answers],
        })
    }

    fn wait_for_first_word(&mut self, patience: Duration) -> Result<Vec<String>, VmError> {
        let began = Instant::now();
        let mut hopeless_at = None;
        loop {
            let now = Instant::now();
            match self.client.first_word(now + GLANCE.min(patience)) {
                Ok(Some(remarks)) => return Ok(remarks),
                Ok(None) => {}
                Err(error) => return Err(self.failed(error)),
            }
            if self.console.is_hopeless() {
                hopeless_at = hopeless_at.or(Some(now));
            }
            // A kernel that gave up and is still there was told not to restart, or cannot.
            if hopeless_at.is_some_and(|at| at.elapsed() > LAST_BREATH) {
                return Err(self.grief(None));
            }
            if began.elapsed() >= patience {
                return Err(self.grief(Some(patience)));
            }
        }
    }

    /// The agent, which has been greeted.
    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// What became of a machine whose agent failed, where it is the machine that did.
    pub(super) fn last_words(&mut self) -> Option<VmError> {
        let ended = self.qemu.wait(LAST_BREATH).is_some();
        (ended || self.console.trouble().is_some()).then(|| self.grief(None))
    }

    /// Lets the agent put everything back and the machine go down; if it does not, it is switched off.
    pub(super) fn end(mut self) {
        self.client.shutdown();
        self.qemu.wait(LAST_BREATH);
    }

    /// What to make of an error of the agent's line: mostly its machine has died.
    fn failed(&mut self, error: AgentError) -> VmError {
        match error {
            AgentError::Stopped => VmError::Stopped,
            AgentError::Died { .. } | AgentError::Stream(_) => self.grief(None),
            error => self.last_words().unwrap_or(VmError::Agent(error)),
        }
    }

    /// Why a machine is no good any more, as far as its console and QEMU tell; `silent` if it said nothing for so long.
    fn grief(&mut self, silent: Option<Duration>) -> VmError {
        let patience = if silent.is_some() { Duration::ZERO } else { LAST_BREATH };
        let status = self.qemu.wait(patience);
        let mut trouble = match (self.console.trouble(), silent, status) {
            (Some(trouble), ..) => trouble,
            (None, Some(waited), _) => Trouble::never_spoke(waited),
            (None, None, Some(status)) => match self.console.qemu_said() {
                Some(said) if !status.success() => {
                    return VmError::Qemu { status: status.to_string(), said };
                }
                _ => Trouble { fault: Fault::Ended, detail: format!("QEMU: {status}") },
            },
            (None, None, None) => Trouble { fault: Fault::Ended, detail: String::new() },
        };
        if trouble.fault == Fault::JumpLabel && !self.emulated {
            trouble.fault = Fault::Oops;
        }
        let Memory { given_mib, needed_mib } = self.memory;
        if given_mib < needed_mib {
            let detail =
                format!("it has {given_mib} MiB, and to start its kernel and kduel take {needed_mib} MiB");
            trouble = Trouble { fault: Fault::OutOfMemory, detail };
        }
        let log = self.console.path().to_path_buf();
        VmError::Guest(Box::new(GuestError { trouble, log, tail: self.console.tail() }))
    }
}

/// The first file system, and the line that process 1 finds in it.
fn initramfs(plan: &Plan<'_>) -> Result<(Line, Vec<u8>), VmError> {
    let (line, modules) = line_to(plan.kernel, plan.settings)?;
    let make = || -> io::Result<Vec<u8>> {
        let mut initramfs = Initramfs::of(plan.capsule)?;
        if let (Some(release), Some(config)) = (&plan.kernel.release, &plan.kernel.config) {
            // Where readers of facts look when the kernel does not say itself how it was built.
            initramfs.file(
                &Path::new("/boot").join(format!("config-{release}")),
                0o644,
                config.as_bytes(),
            )?;
        }
        let path_of = |module: &Module| Path::new(CARRIED_MODULES).join(format!("{}.ko", module.name));
        let all: BTreeMap<PathBuf, &Module> =
            modules.iter().chain(plan.carried).map(|module| (path_of(module), module)).collect();
        for (path, module) in all {
            initramfs.file(&path, 0o644, &module.bytes)?;
        }
        let scripted = plan.settings.virtual_time;
        let order = InitOrder {
            build: build_id().into(),
            line,
            modules: modules.iter().map(path_of).collect(),
            scripted,
        };
        initramfs.file(Path::new(ORDER_PATH), 0o644, &serde_json::to_vec(&order)?)?;
        if scripted {
            let mut lines = Vec::new();
            for request in script(plan.script) {
                serde_json::to_writer(&mut lines, &request)?;
                lines.push(b'\n');
            }
            initramfs.file(Path::new(SCRIPT_PATH), 0o644, &lines)?;
        }
        initramfs.finish()
    };
    let made = make().map_err(|error| VmError::Io { action: "make an initramfs".into(), error })?;
    Ok((line, made))
}

/// What a kernel takes to unpack itself, by its boot header, and its initramfs, which stays until it is unpacked.
fn needed_mib(image: &[u8], initramfs_bytes: usize) -> u64 {
    const KERNEL_BYTES: std::ops::Range<usize> = 0x260..0x264;
    let field = image.get(KERNEL_BYTES).and_then(|field| field.try_into().ok());
    (u64::from(field.map_or(0, u32::from_le_bytes)) + 2 * initramfs_bytes as u64) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_takes_is_in_its_header() {
        let mut image = vec![0; 0x264];
        image[0x260..].copy_from_slice(&(40_u32 << 20).to_le_bytes());
        assert_eq!(needed_mib(&image, 10 << 20), 60);
        assert_eq!(needed_mib(&image[..10], 10 << 20), 20);
    }
}
