//! Virtual machines: every boot is a QEMU with the variant's kernel and this very binary as its process 1.

mod carried;
mod command;
mod console;
mod error;
mod guest;
mod initramfs;
mod kvm;
mod line;
mod pin;
mod qemu;
mod settings;

pub use console::{Fault, Tail, Trouble};
pub use error::{GuestError, VmError};
pub use kvm::works as kvm_works;

use crate::capsule::Capsule;
use crate::kernel::{self, INSTALLED, Kernel, KernelError};
use crate::{BootOrder, Booted, Target, TargetError};
use agent::{AgentError, Client, Stop, TOKEN_VARIABLE};
use experiment::{VIRTUAL_NS_PER_INSTRUCTION, Variant};
use guest::{Guest, Plan};
use settings::{Asked, Settings};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How often a boot is tried that dies of the emulator: with QEMU 7.2, about one in sixteen does.
const ATTEMPTS: u32 = 4;

/// What readers must know of machines that booted at the same time.
const OVERLAP: &str = "boots overlap: the machines of a block boot at the same time, and those whose turn has not come stand \
                       idle beside the one that is measured";

/// Virtual machines on this host, one at a time, or those of a block where boots overlap.
#[derive(Debug)]
pub struct Vm {
    consoles: PathBuf,
    token: String,
    stop: Stop,
    /// The kernels that were asked for, by the value of `kernel=`.
    kernels: BTreeMap<String, Kernel>,
    /// What the first boot has found out, for all that follow.
    capsule: Option<Capsule>,
    kvm: Option<Result<(), String>>,
    up: Option<Guest>,
    /// Machines that booted beside one before them, and whose turn has not come.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    order: BootOrder,
    guest: Guest,
    booted: Booted,
}

/// A machine that was started and has not been heard yet.
struct Begun {
    guest: Guest,
    settings: Settings,
    kvm: bool,
    /// What there is to say about how it is run.
    how: Option<String>,
    at: Instant,
}

impl Begun {
    fn come_up(self) -> Result<(Guest, Booted), VmError> {
        let (guest, remarks) = self.guest.come_up(&self.settings)?;
        let remarks = remarks.into_iter().map(|remark| format!("in the virtual machine: {remark}"));
        let booted = Booted {
            ready_s: self.at.elapsed().as_secs_f64(),
            overlapped: false,
            attempts: 1,
            remarks: self.how.into_iter().chain(remarks).collect(),
        };
        Ok((guest, booted))
    }
}

/// What is known of a boot beside which others booted, and which was waited for so long.
fn overlapped(booted: Booted, order: &BootOrder, waited_s: f64) -> Booted {
    let Booted { attempts, mut remarks, .. } = booted;
    if !settings_hold(order, |settings| settings.virtual_time) {
        remarks.push(OVERLAP.into());
    }
    Booted { ready_s: waited_s, overlapped: true, attempts, remarks }
}

fn settings_hold(order: &BootOrder, what: impl Fn(&Settings) -> bool) -> bool {
    Settings::of(&order.spec.vm).is_ok_and(|settings| what(&settings))
}

impl Vm {
    /// Nothing is started yet. `consoles` is the directory for what consoles say, a file for each boot; `token` marks
    /// every QEMU.
    pub fn new(consoles: PathBuf, token: String, stop: Stop) -> Vm {
        let kernels = BTreeMap::new();
        Vm { consoles, token, stop, capsule: None, kernels, kvm: None, up: None, waiting: Vec::new() }
    }

    /// Boots what is ordered, and what is ordered next at the same time if that is asked for.
    fn bring_up(&mut self, order: &BootOrder, next: &[BootOrder]) -> Result<Booted, VmError> {
        self.waiting.retain(|waiting| waiting.order == *order || next.contains(&waiting.order));
        if let Some(place) = self.waiting.iter().position(|waiting| waiting.order == *order) {
            let Waiting { guest, booted, .. } = self.waiting.remove(place);
            self.up = Some(guest);
            return Ok(booted);
        }
        let at = Instant::now();
        let mut others = Vec::new();
        let asked = |order: &BootOrder| settings_hold(order, |settings| settings.overlap);
        for other in next.iter().filter(|other| asked(order) && asked(other)) {
            let waits = self.waiting.iter().any(|waiting| waiting.order == *other);
            // One that cannot be begun, or does not come up, is booted once more when it is ordered, which tells why.
            if !waits && let Ok(begun) = self.begin(other) {
                others.push((other.clone(), begun));
            }
        }
        let alone = others.is_empty();
        let booted = self.try_boot(order)?;
        for (order, begun) in others {
            match begun.come_up() {
                Ok((guest, booted)) => {
                    let booted = overlapped(booted, &order, 0.0);
                    self.waiting.push(Waiting { order, guest, booted });
                }
                Err(VmError::Stopped) => return Err(VmError::Stopped),
                Err(_) => {}
            }
        }
        Ok(if alone { booted } else { overlapped(booted, order, at.elapsed().as_secs_f64()) })
    }

    /// Boots what is ordered, once more if the emulator fails.
    fn try_boot(&mut self, order: &BootOrder) -> Result<Booted, VmError> {
        let mut remarks = Vec::new();
        let mut attempt = 1;
        loop {
            let begun = self.begin(order)?;
            let kvm = begun.kvm;
            match begun.come_up() {
                Ok((guest, mut booted)) => {
                    self.up = Some(guest);
                    booted.attempts = attempt;
                    booted.remarks.extend(remarks);
                    return Ok(booted);
                }
                Err(VmError::Guest(error)) if error.is_of_emulator() && !kvm && attempt < ATTEMPTS => {
                    remarks.push(format!("a boot of {} was tried again: {error}", order.variant));
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Starts a machine, and does not wait for it.
    fn begin(&mut self, order: &BootOrder) -> Result<Begun, VmError> {
        let settings = Settings::of(&order.spec.vm)?;
        let (kvm, how) = self.accelerator(&settings)?;
        let kernel = kernel(&mut self.kernels, order)?;
        let carried = carried::carried(kernel, &order.modules)?;
        let capsule = match self.capsule.take() {
            Some(capsule) => capsule,
            None => Capsule::of_this_program()?,
        };
        let capsule = &*self.capsule.insert(capsule);
        let at = Instant::now();
        let guest = Guest::begin(&Plan {
            settings: &settings,
            kvm,
            kernel,
            capsule,
            carried: &carried,
            append: &order.spec.append,
            script: &order.script,
            console: console(&self.consoles, &order.variant)?,
            token: &self.token,
            stop: &self.stop,
        })?;
        Ok(Begun { guest, settings, kvm, how, at })
    }

    fn end_up(&mut self) {
        if let Some(guest) = self.up.take() {
            guest.end();
        }
    }

    /// Whether to use KVM, and what there is to say about it.
    fn accelerator(&mut self, settings: &Settings) -> Result<(bool, Option<String>), VmError> {
        if settings.virtual_time {
            return Ok((
                false,
                Some(format!(
                    "emulated in virtual time: timings are not the machine's; each instruction takes \
                     {VIRTUAL_NS_PER_INSTRUCTION} ns"
                )),
            ));
        }
        let emulated = "emulated: timings are not the machine's";
        if settings.accelerator == Asked::Tcg {
            return Ok((false, Some(emulated.into())));
        }
        let found = match self.kvm.take() {
            Some(found) => found,
            None => kvm::works(&self.token)?,
        };
        match (&*self.kvm.insert(found), settings.accelerator) {
            (Ok(()), _) => Ok((true, None)),
            (Err(why), Asked::Kvm) => Err(VmError::NoKvm { why: why.clone() }),
            (Err(why), _) => Ok((false, Some(format!("{emulated} (KVM does not work here: {why})")))),
        }
    }
}

/// The kernel that is ordered, read when it is asked for first.
fn kernel<'a>(
    kernels: &'a mut BTreeMap<String, Kernel>,
    order: &BootOrder,
) -> Result<&'a Kernel, KernelError> {
    let given = order.spec.kernel.as_deref().unwrap_or(INSTALLED);
    Ok(match kernels.entry(given.into()) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => place.insert(kernel::open(given)?),
    })
}

/// A file for the next console; those of a run that is resumed stay.
fn console(directory: &Path, variant: &str) -> Result<PathBuf, VmError> {
    let failed = |error| VmError::Io { action: format!("make {}", directory.display()), error };
    fs::create_dir_all(directory).map_err(failed)?;
    let taken = fs::read_dir(directory).map_err(failed)?.flatten().filter_map(|entry| {
        entry.file_name().to_str().and_then(|name| name.split('-').next()?.parse::<u32>().ok())
    });
    let number = taken.max().unwrap_or(0) + 1;
    Ok(directory.join(format!("{number:04}-{variant}.log")))
}

impl Target for Vm {
    fn boots(&self) -> bool {
        true
    }

    fn check(&mut self, order: &BootOrder) -> Result<(), TargetError> {
        Settings::of(&order.spec.vm)?;
        let kernel = kernel(&mut self.kernels, order).map_err(VmError::from)?;
        carried::carried(kernel, &order.modules)?;
        Ok(())
    }

    fn boot(&mut self, order: &BootOrder, next: &[BootOrder]) -> Result<Option<Booted>, TargetError> {
        self.end_up();
        Ok(Some(self.bring_up(order, next)?))
    }

    fn agent(&mut self, _variant: &Variant) -> Result<&mut Client, TargetError> {
        match &mut self.up {
            Some(guest) => Ok(guest.client()),
            None => Err(VmError::Down.into()),
        }
    }

    fn last_words(&mut self) -> Option<String> {
        self.up.as_mut()?.last_words().map(|error| error.to_string())
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.up = None;
        self.waiting.clear();
        machine::kill_strays(TOKEN_VARIABLE, &self.token);
        Ok(())
    }

    fn close(&mut self) -> Result<(), TargetError> {
        self.waiting.clear();
        self.end_up();
        Ok(())
    }
}

impl From<VmError> for TargetError {
    fn from(error: VmError) -> TargetError {
        match error {
            VmError::Stopped => AgentError::Stopped.into(),
            error => TargetError::boot(error),
        }
    }
}
