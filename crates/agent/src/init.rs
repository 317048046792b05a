//! Process 1 of a virtual machine: makes of a bare kernel a place where trials can run, then is the agent.

mod loopback;
mod modules;
mod port;

use crate::serve::{say, serve, serve_script};
use crate::wire::{Event, be_of_build};
pub use machine::ORDER_PATH;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use rustix::system::{RebootCommand, reboot, sethostname};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the binary lies in the machine's first file system; under this name it is process 1.
pub const PROGRAM_PATH: &str = "/init";
/// Where it finds its requests, when they are all given beforehand.
pub const SCRIPT_PATH: &str = "/kduel/script.jsonl";
/// The name of the virtio port between agent and coordinator.
pub const PORT_NAME: &str = "kduel";
/// What stands on the console before the reason why process 1 gave up.
pub const WORDS_OF_INIT: &str = "kduel init: ";

/// The undo journals of the machine, which lasts no longer than they do.
const UNDO: &str = "/run/kduel/undo";

/// File systems that workloads and readers of facts expect, in the order in which one makes room for the next: type,
/// place and options.
const MOUNTS: &[(&str, &str, &str)] = &[
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("devpts", "/dev/pts", ""),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("mqueue", "/dev/mqueue", ""),
    ("tmpfs", "/tmp", "mode=1777"),
    ("tmpfs", "/run", "mode=755"),
    ("cgroup2", "/sys/fs/cgroup", ""),
    ("debugfs", "/sys/kernel/debug", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
];

/// What process 1 is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitOrder {
    /// The build that this is, which is that of the coordinator.
    pub build: String,
    /// The line to the coordinator.
    pub line: Line,
    /// The modules to load, each after those that it needs.
    pub modules: Vec<PathBuf>,
    /// Whether the requests are in [`SCRIPT_PATH`], and nothing comes in by the line.
    pub scripted: bool,
}

/// What kind of device a machine's line to its coordinator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// The virtio port [`PORT_NAME`].
    Virtio,
    /// The second serial line.
    Serial,
}

/// Whether this is process 1 of a virtual machine of kduel.
pub fn is_init() -> bool {
    std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == PROGRAM_PATH)
}

/// What process 1 does until the machine is off. Must be asked for only where [`is_init`].
pub fn init() -> ! {
    if let Err(why) = run() {
        // The console, from which the coordinator learns it.
        let _ = writeln!(io::stderr(), "{WORDS_OF_INIT}{why}");
        let _ = rustix::termios::tcdrain(io::stderr());
    }
    loop {
        // A machine without a power switch restarts instead, which ends it too: it was started so.
        let _ = reboot(RebootCommand::PowerOff);
        let _ = reboot(RebootCommand::Restart);
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn run() -> Result<(), String> {
    let mut remarks = mount_all();
    let order = fs::read(ORDER_PATH).map_err(|error| format!("cannot read {ORDER_PATH}: {error}"))?;
    let order: InitOrder =
        serde_json::from_slice(&order).map_err(|error| format!("cannot understand {ORDER_PATH}: {error}"))?;
    let mut attempt = |what: &str, done: io::Result<()>| {
        remarks.extend(done.err().map(|error| format!("{what}: {error}")));
    };
    attempt("the machine has no name", sethostname(b"kduel").map_err(io::Error::from));
    // What a login gives on most distributions; the kernel's own limit is too low for hackbench.
    let files = Rlimit { current: Some(1024), maximum: Some(512 << 10) };
    attempt("the limit of open files stays low", setrlimit(Resource::Nofile, files).map_err(io::Error::from));
    attempt("there is no loopback network", loopback::raise());
    for module in &order.modules {
        let loaded = modules::load(module).map_err(io::Error::other);
        attempt(&format!("module {} is not loaded", module.display()), loaded);
    }
    be_of_build(order.build);
    let port = port::open(order.line)?;
    dup2_stdin(&port).and_then(|()| dup2_stdout(&port)).map_err(|error| error.to_string())?;
    say(&Event::Up { remarks }).map_err(|error| format!("the line to the coordinator fails: {error}"))?;
    let undo = Path::new(UNDO);
    let served = if order.scripted { serve_script(Path::new(SCRIPT_PATH), undo) } else { serve(undo) };
    served.map_err(|error| error.to_string())
}

/// Mounts all that this kernel has, and says what it has not.
fn mount_all() -> Vec<String> {
    let mut absent = Vec::new();
    let mut remarks = Vec::new();
    for (kind, place, options) in MOUNTS {
        // Where it fails, the mount does too, and says why.
        let _ = fs::create_dir_all(place);
        let options = CString::new(*options).unwrap_or_default();
        match mount(*kind, *place, *kind, MountFlags::empty(), options.as_c_str()) {
            Ok(()) => {}
            Err(Errno::NODEV | Errno::NOENT) => absent.push(*kind),
            Err(error) => remarks.push(format!("{kind} cannot be mounted at {place}: {error}")),
        }
    }
    if !absent.is_empty() {
        remarks.insert(0, format!("this kernel has no {}", absent.join(", ")));
    }
    remarks
}
