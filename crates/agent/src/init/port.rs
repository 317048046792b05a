//! The line to the coordinator.

use super::{Line, PORT_NAME};
use rustix::fs::{Mode, OFlags, open as open_file};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the kernel may take to find the device after its driver is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens the line. The error is a sentence that says what the kernel lacks.
pub(super) fn open(line: Line) -> Result<OwnedFd, String> {
    let began = Instant::now();
    loop {
        let device = match line {
            Line::Virtio => virtio_port(),
            Line::Serial => Some(PathBuf::from("/dev/ttyS1")),
        };
        let opened =
            device.map(|device| match open_file(&device, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()) {
                Ok(port) => Ok(port),
                Err(error) => Err(format!("cannot open {}: {error}{}", device.display(), hint())),
            });
        match opened {
            Some(Ok(port)) => return raw(line, port),
            Some(Err(why)) if began.elapsed() > PATIENCE => return Err(why),
            None if began.elapsed() > PATIENCE => {
                return Err(format!(
                    "there is no virtio port `{PORT_NAME}`; the kernel needs CONFIG_VIRTIO_CONSOLE, and CONFIG_VIRTIO_PCI \
                     (for vm.machine=microvm: CONFIG_VIRTIO_MMIO), built in or as modules where kduel finds them"
                ));
            }
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn hint() -> &'static str {
    match Path::new("/dev/null").exists() {
        true => "",
        false => "; the kernel needs CONFIG_DEVTMPFS",
    }
}

/// The device of the port that bears our name.
fn virtio_port() -> Option<PathBuf> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?;
    ports.flatten().find_map(|port| {
        let name = fs::read_to_string(port.path().join("name")).ok()?;
        (name.trim() == PORT_NAME).then(|| Path::new("/dev").join(port.file_name()))
    })
}

/// A serial line must not take what passes for typing.
fn raw(line: Line, port: OwnedFd) -> Result<OwnedFd, String> {
    if line == Line::Serial {
        let set = tcgetattr(&port).and_then(|mut settings| {
            settings.make_raw();
            tcsetattr(&port, OptionalActions::Now, &settings)
        });
        set.map_err(|error| format!("cannot make the serial line a plain one: {error}"))?;
    }
    Ok(port)
}
