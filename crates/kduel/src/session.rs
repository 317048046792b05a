//! What every run shares, whether it is new, resumed or reproduced: where it lives, how it is stopped, how it ends.

use crate::progress::Progress;
use crate::target::Leave;
use crate::{Outcome, output, report, target};
use agent::Stop;
use anyhow::{Context as _, bail};
use duel::DuelError;
use experiment::{Ending, Experiment, Header, Scope, counted};
use journal::{Home, Journal, Run};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use targets::{TargetError, kernel};

/// Puts back what killed runs of this user have left turned on this machine, and ends what they left running. A
/// failure is said and does not keep the command from its work.
pub fn put_back_what_others_left() {
    let Ok(home) = Home::from_environment() else {
        // Without a home nothing was ever written that could be put back.
        return;
    };
    match machine::recover(&undo_directory(&home)) {
        Ok(recovery) => {
            for setting in recovery.restored {
                output::say(&format!("kduel: a killed run had changed a setting; put back {setting}"));
            }
            for setting in recovery.failed {
                output::say(&format!(
                    "kduel: a killed run had changed a setting; could not put back {setting}"
                ));
            }
        }
        Err(error) => {
            output::say(&format!("kduel: cannot see whether a killed run left something changed: {error}"))
        }
    }
    for process in machine::kill_ownerless(agent::TOKEN_VARIABLE) {
        output::say(&format!("kduel: ended {process}, which a killed run had left"));
    }
    for leftover in machine::remove_leftovers() {
        output::say(&format!("kduel: removed {leftover}, which a killed run had left"));
    }
}

/// The header of a new run.
///
/// # Errors
/// When its variants do not measure the same.
pub fn header(mut experiment: Experiment) -> anyhow::Result<Header> {
    let at_unix_ms = unix_ms();
    let random = random_word();
    let seed = experiment.seed.unwrap_or(random % 1_000_000);
    experiment.seed = Some(seed);
    let descriptions = experiment
        .descriptions(|workload, set| workloads::find(workload).map(|workload| workload.describe_for(set)))?;
    Ok(Header {
        run: format!("{}-{:04x}", jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S"), random >> 48),
        version: env!("CARGO_PKG_VERSION").into(),
        build: agent::build_id().into(),
        at_unix_ms,
        seed,
        experiment,
        descriptions,
        directory: std::env::current_dir().ok().and_then(|path| path.to_str().map(str::to_string)),
        imported: None,
    })
}

/// The experiment of a run as it can be run from any directory: relative names of kernels count from where it was started.
pub fn from_anywhere(header: &Header) -> Experiment {
    let mut experiment = header.experiment.clone();
    let Some(directory) = header.directory.as_deref().map(Path::new) else { return experiment };
    let knobs = experiment.variants.iter_mut().flat_map(|variant| &mut variant.knobs);
    let of_variants = knobs.filter(|knob| knob.scope == Scope::Kernel).map(|knob| &mut knob.value);
    for given in of_variants.chain(experiment.set.get_mut("kernel")) {
        *given = kernel::from_directory(directory, given);
    }
    experiment
}

/// Runs what is left of a run and reports it.
///
/// # Errors
/// When it cannot go on, or every trial is missing. What was done is kept.
pub fn conduct(
    home: &Home,
    journal: &mut Journal,
    run: &Run,
    leave: Leave,
    view: &report::View,
) -> anyhow::Result<Outcome> {
    let stop = Stop::default();
    watch_signals(&stop).context("cannot watch for signals")?;
    let token = machine::new_token(&machine::Root::real()).map_err(|missing| anyhow::anyhow!("{missing}"))?;
    let mut progress = Progress::new(output::watched(), run.header.experiment.blocks);
    let directory = journal.directory().to_path_buf();
    let name = word_for(home, &directory);
    let mut target = match target::open(&run.header, leave, home, &directory, &token, &stop, progress.voice())
    {
        Ok(target) => target,
        Err(error) => {
            discard_if_empty(home, journal, run)?;
            return Err(error);
        }
    };
    let ended = duel::conduct(&run.header, &run.records, journal, &mut *target, &token, &stop, &mut progress);
    progress.finish();
    match ended {
        Ok(Ending::Finished) => {
            let analysis = report::print(home, &directory, view)?;
            if analysis.measured_nothing() {
                bail!(
                    "nothing was measured: {} ended and none yielded anything; the report says why, and `kduel show {name}` \
                     counts the reasons",
                    counted(analysis.trials, "trial")
                );
            }
            output::say(&hint(&run.header.experiment, &name));
            Ok(view.outcome(&analysis))
        }
        Ok(_) => {
            let printed = report::print(home, &directory, view);
            output::say(&format!(
                "kduel: interrupted; what is done is kept. Go on with: kduel resume {name}"
            ));
            printed.map(|_| Outcome::Interrupted)
        }
        // All of these come before the first trial.
        Err(
            error @ (DuelError::Impossible { .. }
            | DuelError::Unbootable { .. }
            | DuelError::Refused { .. }
            | DuelError::Target(TargetError::Ssh(_))),
        ) if run.records.is_empty() => {
            discard_if_empty(home, journal, run)?;
            Err(error.into())
        }
        Err(error) => Err(anyhow::Error::new(error)
            .context(format!("run {name} stopped; what is done is kept, `kduel resume {name}` goes on"))),
    }
}

/// Removes a run that has nothing in it: it would only hide the one before it.
fn discard_if_empty(home: &Home, journal: &Journal, run: &Run) -> anyhow::Result<()> {
    if run.records.is_empty() {
        home.discard(journal)?;
    }
    Ok(())
}

/// The word by which commands take the run in a directory: its name, or the directory where it lies outside the home.
pub fn word_for(home: &Home, directory: &Path) -> String {
    directory.strip_prefix(home.runs()).unwrap_or(directory).display().to_string()
}

/// Where undo journals live: outside the runs, so that a run that is deleted loses none. Root has one place for the
/// whole machine, so that runs with different homes do not turn one setting under each other, and a reboot, which
/// undoes every setting, clears it too. Others can turn few settings, and keep theirs in their home.
pub fn undo_directory(home: &Home) -> PathBuf {
    let of_machine = Path::new("/run");
    match rustix::process::geteuid().is_root() && of_machine.is_dir() {
        true => of_machine.join("kduel/undo"),
        false => home.path().join("undo"),
    }
}

fn watch_signals(stop: &Stop) -> std::io::Result<()> {
    use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
    // The order matters: the first Ctrl-C only sets the flag, the second finds it set and leaves at once. The agent then
    // sees its stream end and cleans up by itself. Other signals may come twice without anybody being impatient: a
    // terminal that closes and its shell both send SIGHUP, and `timeout` sends to the process and to its group.
    signal_hook::flag::register_conditional_shutdown(SIGINT, 130, stop.flag())?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Under nohup a run must outlive its terminal.
        if signal != SIGHUP || !is_ignored(signal) {
            signal_hook::flag::register(signal, stop.flag())?;
        }
    }
    // Whoever ignores SIGCHLD hands that down, and then no parent learns how its child ended. A handler ends it here and,
    // since no handler outlives an exec, in all that is started from here.
    signal_hook::flag::register(SIGCHLD, Arc::default())?;
    Ok(())
}

/// Whether whoever started this process had it ignore a signal.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// What to try next, for somebody who has just seen a report.
fn hint(experiment: &Experiment, run: &str) -> String {
    let next = if experiment.variants.len() < 2 {
        "Next: name a second variant, such as --variant b:nice=10, and kduel compares the two.".to_string()
    } else if experiment.title.as_deref().is_some_and(|title| title.starts_with("Quickstart")) {
        "Next: kduel run hackbench --variant base --variant batch:policy=batch --points 1,2 --until-decided"
            .to_string()
    } else {
        format!("Next: kduel report {run} --format html > report.html, or --style, --intervals.")
    };
    format!("\n{next}\nRun {run} is kept; `kduel list workloads` shows what else can duel.")
}

/// A word that no two runs share.
fn random_word() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(unix_ms());
    hasher.write_u32(std::process::id());
    hasher.finish()
}

pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The run that a user names, or a clear error that says how to see which there are.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn read(home: &Home, run: &str) -> anyhow::Result<Run> {
    home.read(run).with_context(|| format!("run {run} cannot be read"))
}

/// The home of all runs.
///
/// # Errors
/// When there is no place for one.
pub fn home() -> anyhow::Result<Home> {
    Ok(Home::from_environment()?)
}

/// As [`read`], by the directory of the run.
///
/// # Errors
/// When it cannot be read.
pub fn read_at(home: &Home, directory: &Path) -> anyhow::Result<Run> {
    read(home, &directory.to_string_lossy())
}
