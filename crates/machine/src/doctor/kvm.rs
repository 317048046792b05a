//! Whether virtual machines run at the speed of this machine.

use super::Finding;
use crate::Root;
use experiment::Known;
use std::io;

const ABILITY: &str = "KVM";
const DEVICE: &str = "dev/kvm";
const EMULATED: &str =
    "Without it kernels boot under emulation: verdicts about paths hold, times are not the machine's.";

/// What the device says, and what came of booting a guest, where that was tried.
pub(super) fn finding(root: &Root, guest: Option<&Known<String>>) -> Finding {
    match guest {
        Some(Ok(seen)) => Finding::ok(ABILITY, seen),
        // The device shows where to look; that the guest did not come up is what counts.
        Some(Err(why)) => match device(root) {
            Device::Opens => Finding::no(ABILITY, format!("/dev/kvm opens, but no guest comes up: {why}"))
                .advice(format!("Run where the hypervisor passes on virtualization. {EMULATED}")),
            device => closed(root, &device),
        },
        None => match device(root) {
            Device::Opens if root.is_real() => {
                Finding::unknown(ABILITY, "/dev/kvm opens; not tried: no guest was booted")
            }
            Device::Opens => Finding::of_a_tree(ABILITY),
            device => closed(root, &device),
        },
    }
}

enum Device {
    Opens,
    Absent,
    Refused(io::Error),
}

fn device(root: &Root) -> Device {
    let path = root.path(DEVICE);
    // In a tree the node is a plain file, or a device of another machine: that it is there is all it says.
    let opened = match root.is_real() {
        true => std::fs::File::options().read(true).write(true).open(path).map(drop),
        false => path.symlink_metadata().map(drop),
    };
    match opened {
        Ok(()) => Device::Opens,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Device::Absent,
        Err(error) => Device::Refused(error),
    }
}

fn closed(root: &Root, device: &Device) -> Finding {
    match device {
        Device::Refused(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Finding::no(ABILITY, "/dev/kvm is there, and this user may not open it")
                .command("usermod -aG kvm $USER   # then log in again")
        }
        Device::Refused(error) => {
            Finding::no(ABILITY, format!("/dev/kvm is there and does not open: {error}")).advice(EMULATED)
        }
        Device::Opens | Device::Absent => {
            let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
            let has = |flag: &str| cpuinfo.split_whitespace().any(|word| word == flag);
            let absent = |more: &str| Finding::no(ABILITY, format!("there is no /dev/kvm{more}"));
            match (has("vmx"), has("svm")) {
                (true, _) => absent("; the CPU has VMX").command("modprobe kvm_intel"),
                (_, true) => absent("; the CPU has SVM").command("modprobe kvm_amd"),
                _ => absent(", and the CPU shows no virtualization").advice(format!(
                    "Turn it on in the firmware, or in a guest have the host pass it on (nested). {EMULATED}"
                )),
            }
        }
    }
}
