//! By which device the agent of a machine speaks, and the modules that its kernel needs for it.

use super::VmError;
use super::settings::{Board, Settings};
use crate::kernel::{Kernel, Module};
use agent::Line;
use machine::KernelConfig;

/// A driver: its module, and the option that builds it.
type Driver = (&'static str, &'static str);
const CONSOLE: Driver = ("virtio_console", "CONFIG_VIRTIO_CONSOLE");
const PCI: Driver = ("virtio_pci", "CONFIG_VIRTIO_PCI");
const MMIO: Driver = ("virtio_mmio", "CONFIG_VIRTIO_MMIO");

/// The line to a machine with this kernel. A kernel without virtio has a serial line at least; in virtual time that one is
/// always taken, since on it nothing depends on when QEMU gets round to it.
pub(super) fn line_to(kernel: &Kernel, settings: &Settings) -> Result<(Line, Vec<Module>), VmError> {
    if settings.virtual_time {
        return Ok((Line::Serial, Vec::new()));
    }
    let drivers = [if settings.board == Board::Microvm { MMIO } else { PCI }, CONSOLE];
    let Some(config) = kernel.config.as_deref().map(KernelConfig::parse) else {
        // Then the drivers are mostly built in, and what they are if not, nobody can say.
        let names = drivers.map(|(module, _)| module);
        return Ok((Line::Virtio, kernel.modules.closure(&names).unwrap_or_default()));
    };
    if let Some((_, option)) = drivers.iter().find(|(_, option)| config.get(option).is_none()) {
        return match settings.board {
            Board::Q35 => Ok((Line::Serial, Vec::new())),
            Board::Microvm => Err(VmError::Setting {
                name: "machine",
                value: "microvm".into(),
                why: format!("the kernel {} is built without {option}; take q35", kernel.given_as),
            }),
        };
    }
    let apart = drivers.iter().filter(|(_, option)| !config.has(option));
    let names: Vec<&str> = apart.map(|(module, _)| *module).collect();
    Ok((Line::Virtio, kernel.modules.closure(&names)?))
}
