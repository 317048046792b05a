//! Another machine over ssh: kduel is copied there once and its agent runs on ssh's streams. Where variants differ in what
//! they boot, the machine is rebooted between them.
//!
//! [`script`] holds what is said there and [`answer`] reads what comes back; [`link`] calls ssh, and [`trouble`] knows what its
//! failures mean; [`host`] copies and starts; [`reboot`] changes the kernel, which [`kernels`] finds.

mod answer;
mod host;
mod kernels;
mod link;
mod parcel;
mod reboot;
mod script;
mod trouble;

pub use host::Say;
pub use script::RUN_VARIABLE;
pub use trouble::{SshError, Trouble};

use crate::capsule::{Capsule, Part};
use crate::{BootOrder, Booted, Target, TargetError};
use agent::{AgentError, CAPSULE_BINARY, Client, Stop};
use answer::Life;
use experiment::{Facts, KernelConfig, Variant};
use host::{Connection, Host, NoAgent};
use link::{FAILURE_OF_SSH, Link};
use parcel::{Parcel, ParcelFile};
use reboot::{Arrival, Reboots, left_behind};
use script::Script;
use std::time::{Duration, Instant};
use trouble::last_words;

/// The time that an agent has to put everything back after it was told to leave, the way of its answer included.
const FAREWELL: Duration = Duration::from_secs(30);
/// The time that ssh has to notice that its stream has ended.
const HANG_UP: Duration = Duration::from_secs(3);
/// How long a connection that was lost is tried again.
const RECONNECTING: Duration = Duration::from_secs(60);
/// Where a kernel shows the configuration that is built into it.
const IN_KERNEL: &str = "/proc/config.gz";
/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(2);

/// What is known of a machine before it is first asked.
#[derive(Debug, Clone)]
pub struct SshOptions {
    /// The machine, as ssh takes it: `host`, `user@host`, a name in its configuration.
    pub host: String,
    /// Further arguments for ssh, before the host.
    pub further: Vec<String>,
    /// The name of the run, by which its lost agents are found on the machine.
    pub run: String,
    /// Whether the variants differ in what they boot.
    pub boots: bool,
    /// How long it may take to come back, if it may be rebooted at all.
    pub may_reboot: Option<Duration>,
}

/// Another machine.
pub struct Ssh {
    host: Host,
    run: String,
    boots: bool,
    reboots: Option<Reboots>,
    stop: Stop,
    capsule: Option<(Parcel, String)>,
    open: Option<Connection>,
    /// The boot that the machine was last seen in.
    life: Option<Life>,
    /// The text of the configuration of the kernel that is up, where it came with one, and what the kernel was given as.
    config: Option<(String, String)>,
    /// Whether an agent has ended without saying that everything is put back.
    lost: bool,
}

impl Ssh {
    /// Nothing is started yet. `say` is told, in sentences, what takes its time and what a user must know.
    pub fn new(options: SshOptions, stop: Stop, say: Say) -> Ssh {
        let link = Link::new(&options.host, &options.further, stop.clone());
        Ssh {
            host: Host::new(link, say),
            run: options.run,
            boots: options.boots,
            reboots: options.may_reboot.map(Reboots::new),
            stop,
            capsule: None,
            open: None,
            life: None,
            config: None,
            lost: false,
        }
    }

    /// Opens an agent. One that was there and is lost may take a while to be found again.
    fn connect(&mut self) -> Result<Connection, NoAgent> {
        let (parcel, loader) = match self.capsule.take() {
            Some(capsule) => capsule,
            None => packed().map_err(NoAgent::Ssh)?,
        };
        let began = Instant::now();
        let connection = loop {
            match self.host.start_agent(&parcel, &loader, &self.run) {
                Err(NoAgent::Ssh(error))
                    if self.life.is_some() && !error.is_final() && began.elapsed() < RECONNECTING =>
                {
                    if let Err(stopped) = self.host.link.pause(PAUSE) {
                        break Err(stopped.into());
                    }
                }
                other => break other,
            }
        };
        self.capsule = Some((parcel, loader));
        let connection = connection?;
        self.recognise(&connection)?;
        Ok(connection)
    }

    /// Looks whether the machine is in the boot that it was in. A reboot into the same kernel only ended an agent.
    fn recognise(&mut self, Connection { life, answer, .. }: &Connection) -> Result<(), SshError> {
        let name = self.host.name();
        match &self.life {
            Some(before) if before.boot != life.boot => {
                if let Some(differs) = before.differs_from(life) {
                    return Err(SshError::Changed { host: name, differs });
                }
                self.host.say(&format!("{name} was rebooted in the middle of the run, into the same kernel"));
            }
            Some(_) => {}
            None => {
                if let Some(left) = answer.left().and_then(|left| left.abandoned_in(life)) {
                    self.host.say(&left_behind(&name, life, &left.first));
                }
            }
        }
        self.life = Some(life.clone());
        Ok(())
    }

    fn boot_and_connect(&mut self, order: &BootOrder) -> Result<Booted, NoAgent> {
        let Some(reboots) = &mut self.reboots else {
            return Err(SshError::NotAllowed { host: self.host.name() }.into());
        };
        self.config = None;
        let Arrival { life, went_at, choice, remarks } = reboots.boot(&mut self.host, &order.spec)?;
        // The new boot is the one to be recognised, whatever came before.
        self.life = Some(life);
        let connection = self.connect()?;
        self.open = Some(connection);
        self.config = choice.config.map(|text| (text, choice.name));
        Ok(Booted { ready_s: went_at.elapsed().as_secs_f64(), overlapped: false, attempts: 1, remarks })
    }

    /// Lets the agent put everything back and leave, if one is open.
    fn dismiss(&mut self) -> Result<(), TargetError> {
        let Some(Connection { mut session, client, .. }) = self.open.take() else { return Ok(()) };
        client.shutdown();
        let status = session.wait(FAREWELL);
        self.lost |= !status.is_some_and(|status| status.success());
        match status.and_then(|status| status.code()) {
            // Whether it has put everything back before its connection broke is for the next one to see.
            None | Some(0 | FAILURE_OF_SSH) => Ok(()),
            Some(_) => {
                let said = last_words(&session.words());
                Err(TargetError::CleanUp(format!(
                    "{}: the agent failed when it left: {said}",
                    self.host.name()
                )))
            }
        }
    }

    /// Makes sure that nothing is left of agents that were lost.
    fn sweep(&mut self) -> Result<(), TargetError> {
        let Some((parcel, loader)) = self.capsule.as_ref().filter(|_| self.lost) else { return Ok(()) };
        let name = self.host.name();
        let swept = self.host.link.unstoppable().ask(
            &Script::sweep(&parcel.name, loader, &self.run),
            Vec::new(),
            FAREWELL,
        );
        let answer = swept.map_err(|error| {
            TargetError::CleanUp(format!(
                "cannot see whether {name} has everything back as it was: {error}; the next run with --target ssh:{name} \
                 looks again"
            ))
        })?;
        let remarks = answer.remarks.join("; ");
        if answer.get("failed").is_some() || remarks.contains("could not put back") {
            let said = if remarks.is_empty() { last_words(&answer.others) } else { remarks };
            return Err(TargetError::CleanUp(format!("{name}: {said}")));
        }
        for remark in &answer.remarks {
            self.host.say(&format!("{name}: {remark}"));
        }
        self.lost = false;
        Ok(())
    }

    fn go_home(&mut self) -> Result<(), TargetError> {
        let Some(reboots) = &mut self.reboots else { return Ok(()) };
        // A machine is not left in a strange kernel because somebody is in a hurry.
        let stoppable = self.host.link.clone();
        self.host.link = stoppable.unstoppable();
        let gone = reboots.go_home(&mut self.host, self.stop.asked());
        self.host.link = stoppable;
        let name = self.host.name();
        gone.map_err(|error| TargetError::CleanUp(format!("{name} is not back in its own kernel: {error}")))
    }
}

impl Target for Ssh {
    fn boots(&self) -> bool {
        self.boots
    }

    fn check(&mut self, order: &BootOrder) -> Result<(), TargetError> {
        let Some(reboots) = self.reboots.as_mut().filter(|_| self.boots) else { return Ok(()) };
        reboots.look(&mut self.host, &order.spec).map_err(|error| match error {
            SshError::Stopped => AgentError::Stopped.into(),
            error @ (SshError::Kernel { .. } | SshError::NoImage { .. }) => TargetError::boot(error),
            error => TargetError::Ssh(error),
        })
    }

    fn boot(&mut self, order: &BootOrder, _next: &[BootOrder]) -> Result<Option<Booted>, TargetError> {
        if !self.boots {
            return Ok(None);
        }
        // The reboot undoes what the agent could not put back.
        if let Err(error) = self.dismiss() {
            self.host.say(&error.to_string());
        }
        match self.boot_and_connect(order) {
            Ok(booted) => Ok(Some(booted)),
            Err(NoAgent::Ssh(SshError::Stopped)) => Err(AgentError::Stopped.into()),
            Err(NoAgent::Ssh(error)) => Err(TargetError::boot(error)),
            Err(NoAgent::Agent(error)) => Err(error.into()),
        }
    }

    fn agent(&mut self, _variant: &Variant) -> Result<&mut Client, TargetError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.connect().map_err(|error| match error {
                NoAgent::Ssh(SshError::Stopped) => AgentError::Stopped.into(),
                NoAgent::Ssh(error) => TargetError::Ssh(error),
                NoAgent::Agent(error) => error.into(),
            })?,
        };
        Ok(&mut self.open.insert(open).client)
    }

    fn complete(&self, facts: &mut Facts) {
        // A kernel that has its configuration in it knows best. What lies there under the name of its release may be that of
        // another build.
        let has_own = facts.config.as_ref().is_some_and(|found| found.from == IN_KERNEL);
        if let (false, Some((text, given_as))) = (has_own, &self.config) {
            facts.take_config(KernelConfig::parse(text), given_as);
        }
    }

    fn last_words(&mut self) -> Option<String> {
        self.open.as_mut()?.session.cause()
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        if let Some(Connection { mut session, client, .. }) = self.open.take() {
            drop(client);
            // It ends itself when its stream does; what it does not come to is ended when the next one starts.
            session.wait(HANG_UP);
            self.lost = true;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), TargetError> {
        let dismissed = self.dismiss();
        let swept = self.sweep();
        // A reboot undoes every setting, but what is told of one that was stuck still holds.
        self.go_home().and(dismissed).and(swept)
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure; the next run on that machine tries again.
        let _ = self.close();
    }
}

/// This very program with its loader and libraries, for one directory, and the name of the loader.
fn packed() -> Result<(Parcel, String), SshError> {
    let Capsule { program, loader, libraries, .. } = Capsule::of_this_program()?;
    let loader = loader.ok_or(SshError::Static)?;
    let file = |Part { path, bytes, .. }: Part| {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        ParcelFile { name, executable: true, bytes }
    };
    let loader = file(loader);
    let name = loader.name.clone();
    let mut files =
        vec![ParcelFile { name: CAPSULE_BINARY.into(), executable: true, bytes: program }, loader];
    files.extend(libraries.into_iter().map(file));
    Ok((Parcel::new(agent::build_id().into(), "kduel", files), name))
}
