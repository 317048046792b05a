//! Whether KVM works here, found out by starting a machine with it: on some hosts the device is there and no guest gets
//! past its first instructions.

use super::VmError;
use super::console::Console;
use super::qemu::{MemoryFile, PROGRAM, Qemu};
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

/// How long the few instructions may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the code writes to the device that ends QEMU, and the status that QEMU makes of it.
const SUCCESS: i32 = (0x2a << 1) | 1;
const ROM_BYTES: usize = 64 << 10;
/// Where the code lies in the read-only memory, which ends at 4 GiB.
const CODE_AT: usize = 0xff00;
/// Where a processor begins.
const RESET_AT: usize = 0xfff0;

/// From the reset to 64-bit mode with paging, as every kernel goes; then it reads the TSC and leaves.
#[rustfmt::skip]
const CODE: &[u8] = &[
    // 16-bit code at 0xffffff00.
    0xfa,                                           // cli
    0x2e, 0x66, 0x0f, 0x01, 0x16, 0x98, 0xff,       // lgdt cs:[0xff98], the pointer at the end
    0x0f, 0x20, 0xc0, 0x0c, 0x01, 0x0f, 0x22, 0xc0, // cr0 |= 1, protected mode
    0x66, 0xea, 0x18, 0xff, 0xff, 0xff, 0x08, 0x00, // jump to 0x08:0xffffff18
    // 32-bit code.
    0x66, 0xb8, 0x10, 0x00, 0x8e, 0xd8,             // ds = 0x10
    // Page tables at 0x1000 that map the last 2 MiB below 4 GiB to themselves.
    0xc7, 0x05, 0x00, 0x10, 0, 0, 0x03, 0x20, 0, 0, // [0x1000] = 0x2003
    0xc7, 0x05, 0x18, 0x20, 0, 0, 0x03, 0x30, 0, 0, // [0x2018] = 0x3003
    0xc7, 0x05, 0xf8, 0x3f, 0, 0, 0x83, 0, 0xe0, 0xff, // [0x3ff8] = 0xffe00083
    0xb8, 0x00, 0x10, 0, 0, 0x0f, 0x22, 0xd8,       // cr3 = 0x1000
    0x0f, 0x20, 0xe0, 0x0c, 0x20, 0x0f, 0x22, 0xe0, // cr4 |= physical address extension
    0xb9, 0x80, 0, 0, 0xc0, 0x0f, 0x32,             // read the extended feature register
    0x80, 0xcc, 0x01, 0x0f, 0x30,                   // switch long mode on in it
    0x0f, 0x20, 0xc0, 0x0d, 0, 0, 0, 0x80, 0x0f, 0x22, 0xc0, // cr0 |= paging
    0xea, 0x6a, 0xff, 0xff, 0xff, 0x18, 0x00,       // jump to 0x18:0xffffff6a
    // 64-bit code.
    0x0f, 0x31,                                     // rdtsc
    0xb0, 0x2a, 0xe6, 0xf4,                         // out 0xf4, 0x2a: leave
    0xf4, 0xeb, 0xfd,                               // should that fail, halt for ever
    0x0f, 0x1f, 0x44, 0, 0,
    // Segments: none, 32-bit code, 32-bit data, 64-bit code. All are marked as accessed, since a processor cannot mark
    // them in read-only memory.
    0, 0, 0, 0, 0, 0, 0, 0,
    0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0,
    0xff, 0xff, 0, 0, 0, 0x93, 0xcf, 0,
    0xff, 0xff, 0, 0, 0, 0x9b, 0xaf, 0,
    0x1f, 0x00, 0x78, 0xff, 0xff, 0xff,             // the pointer to them
];

/// Starts a machine with `accelerator` and sees whether it gets into 64-bit mode. The inner error says what became of it.
fn gets_started(accelerator: &str, token: &str) -> Result<Result<(), String>, VmError> {
    let mut rom = vec![0; ROM_BYTES];
    rom[CODE_AT..CODE_AT + CODE.len()].copy_from_slice(CODE);
    // A near jump from the reset vector back to the code.
    rom[RESET_AT..RESET_AT + 3].copy_from_slice(&[0xe9, 0x0d, 0xff]);
    let rom = MemoryFile::new("probe of KVM", &rom)?;
    let log = MemoryFile::new("log of the probe", &[])?;
    let failed = |error| VmError::Io { action: "open the log of the probe of KVM".into(), error };
    let log_file = File::options().append(true).open(log.path()).map_err(failed)?;
    let cpu = if accelerator == "kvm" { "host" } else { "max" };
    let mut arguments = Vec::new();
    for words in [
        "-nodefaults -no-user-config -display none -no-reboot -M q35 -m 16M",
        "-device isa-debug-exit,iobase=0xf4,iosize=4",
        &format!("-accel {accelerator} -cpu {cpu}"),
    ] {
        arguments.extend(words.split(' ').map(Into::into));
    }
    arguments.extend(["-bios".into(), rom.path().into()]);
    let mut qemu = Qemu::start(&arguments, Stdio::null(), &log_file, token)?;
    let ended = qemu.wait(PATIENCE);
    let said = Console::at(log.path()).last_line().unwrap_or_default();
    let words = match said.trim_start_matches(PROGRAM).trim_start_matches(": ") {
        "" => String::new(),
        said => format!(", {said}"),
    };
    Ok(match ended {
        Some(status) if status.code() == Some(SUCCESS) => Ok(()),
        Some(status) => Err(format!("QEMU ended with {status}{words}")),
        None => {
            Err(format!("a first machine did not get into 64-bit mode in {} s{words}", PATIENCE.as_secs()))
        }
    })
}

/// Whether KVM runs a machine here, by starting one; `token` marks its QEMU. The inner error says why not.
///
/// # Errors
/// When it cannot be tried: there is no QEMU, or it cannot be started.
pub fn works(token: &str) -> Result<Result<(), String>, VmError> {
    // A shorter word for what is most often the reason.
    match File::options().read(true).write(true).open("/dev/kvm") {
        Ok(_) => gets_started("kvm", token),
        Err(error) => Ok(Err(format!("/dev/kvm: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_gets_into_64_bit_mode_where_machines_work() {
        match gets_started("tcg", "no token") {
            Ok(started) => assert_eq!(started, Ok(())),
            Err(error) => println!("skipped: {error}"),
        }
    }

    #[test]
    fn an_accelerator_that_does_not_work_is_told() {
        match gets_started("none-such", "no token") {
            Ok(started) => assert!(started.unwrap_err().contains("none-such")),
            Err(error) => println!("skipped: {error}"),
        }
    }
}
