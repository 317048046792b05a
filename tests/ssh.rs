//! Duels on another machine: an sshd of the test's own stands for it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "sshd.rs"]
mod sshd;
#[path = "support.rs"]
mod support;

use rustix::process::{Pid, Signal, kill_process};
use sshd::{Sshd, image};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{Kduel, SHORT, is_root, reasons, stderr, strays, words};

/// The machine, unless there can be none here.
fn machine(started: Result<Sshd, String>) -> Option<Sshd> {
    started.map_err(|why| println!("skipped: {why}")).ok()
}

fn command(kduel: &Kduel, machine: &Sshd, args: &[&str]) -> Command {
    let mut command = kduel.command(args);
    command.env("KDUEL_SSH", machine.arguments());
    command
}

fn ok(kduel: &Kduel, machine: &Sshd, args: &[&str]) -> Output {
    let output = command(kduel, machine, args).output().unwrap();
    assert!(output.status.success(), "kduel {args:?}: {}\n{}", output.status, stderr(&output));
    output
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a run of fourteen trials that take a moment each; as root it turns a sysctl there, too.
fn start(kduel: &Kduel, machine: &Sshd) -> Child {
    start_with(kduel, &machine.arguments())
}

/// As [`start`], with these arguments for ssh.
fn start_with(kduel: &Kduel, arguments: &str) -> Child {
    let turned = if is_root() { "turned:sysctl.vm.stat_interval=19" } else { "turned:nice=3" };
    let line = "run exec --set settle=0 -V as-is --no-aa --blocks 7 --target ssh:box -V";
    let args = words(line, &[turned, "--set", "command=sleep 0.2"]);
    let mut run = kduel.command(&args);
    run.env("KDUEL_SSH", arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The trials in the journal of the latest run, if it has begun.
fn trials_done(kduel: &Kduel) -> usize {
    let journal = std::fs::read_to_string(kduel.home().join("latest/journal.jsonl"));
    journal.map_or(0, |text| text.matches("\"kind\":\"trial\"").count())
}

fn stat_interval() -> String {
    std::fs::read_to_string(support::STAT_INTERVAL).unwrap_or_default()
}

#[test]
fn a_duel_is_fought_on_another_machine_by_a_copy_that_is_checked() {
    let Some(machine) = machine(Sshd::start()) else { return };
    let kduel = Kduel::new();
    let args = words(SHORT, &["--blocks", "2", "--target", "ssh:box"]);
    let first = ok(&kduel, &machine, &args);
    assert!(stderr(&first).contains("copying kduel"), "{}", stderr(&first));
    // Two points, two variants, the baseline once more.
    assert_eq!(kduel.trials().len(), 2 * 2 * 3);
    assert!(reasons(&kduel.trials()).is_empty(), "{:?}", reasons(&kduel.trials()));
    assert!(kduel.ok(&["show", "latest"]).contains("ssh:box"));

    let second = ok(&kduel, &machine, &args);
    assert!(!stderr(&second).contains("copying"), "it is there already: {}", stderr(&second));

    let capsules: Vec<_> = std::fs::read_dir(machine.cache()).unwrap().flatten().collect();
    assert_eq!(capsules.len(), 1, "{capsules:?}");
    let copy = capsules[0].path().join("kduel");
    let length = copy.metadata().unwrap().len();
    std::fs::File::options().write(true).open(&copy).unwrap().set_len(length / 2).unwrap();
    let third = ok(&kduel, &machine, &args);
    assert!(stderr(&third).contains("damaged"), "{}", stderr(&third));
    assert_eq!(strays(&machine.there()), Vec::<u32>::new());
}

#[test]
fn trials_there_see_the_machines_own_libraries_and_not_the_capsules() {
    let Some(machine) = machine(Sshd::start()) else { return };
    let kduel = Kduel::new();
    let seen = machine.path("seen");
    let look = format!("command=(cat /proc/self/maps; env) > {}", seen.display());
    let line = "run exec --set settle=0 --set shell=on -V a --no-aa --blocks 1 --target ssh:box --set";
    ok(&kduel, &machine, &words(line, &[&look]));
    assert!(reasons(&kduel.trials()).is_empty(), "{:?}", reasons(&kduel.trials()));
    let seen = std::fs::read_to_string(&seen).unwrap();
    assert!(!seen.contains(".cache/kduel"), "{seen}");
    assert!(seen.contains("KDUEL_TRIAL="), "{seen}");
}

#[test]
fn a_connection_that_cannot_be_made_says_why_and_what_to_do() {
    let Some(machine) = machine(Sshd::start()) else { return };
    let kduel = Kduel::new();
    let fails = |target: &str| {
        let args = words(SHORT, &["--blocks", "1", "--target", target]);
        let began = Instant::now();
        let output = command(&kduel, &machine, &args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(began.elapsed() < Duration::from_secs(90), "within its deadline");
        assert!(!kduel.home().join("latest").exists(), "an empty run would only hide the one before it");
        stderr(&output)
    };
    machine.know_as("stranger");
    let error = fails("ssh:box");
    assert!(error.contains("is not the one that is known here"), "{error}");
    std::fs::write(machine.path("known_hosts"), "").unwrap();
    let error = fails("ssh:box");
    assert!(error.contains("is not known here") && error.contains("`ssh box`"), "{error}");
    machine.know_as("host");
    machine.reconfigure("/user\n", "/stranger\n");
    let error = fails("ssh:box");
    assert!(error.contains("does not let this user in") && error.contains("ssh-copy-id"), "{error}");
    machine.reconfigure("/stranger\n", "/user\n");
    machine.reconfigure(&format!("Port {}", machine.port), "Port 1");
    let error = fails("ssh:box");
    assert!(error.contains("refuses connections"), "{error}");
    // A name that no resolver takes is not asked of any.
    machine.reconfigure("HostName 127.0.0.1", "HostName no..host");
    let error = fails("ssh:box");
    assert!(error.contains("no machine is known as box"), "{error}");
    let error = fails("ssh:-oProxyCommand=x");
    assert!(error.contains("ssh:HOST"), "{error}");
}

#[test]
fn a_connection_that_is_cut_costs_a_trial_and_leaves_nothing() {
    let Some(machine) = machine(Sshd::start()) else { return };
    let _alone = support::alone_with_the_sysctl();
    let before = stat_interval();
    let kduel = Kduel::new();
    let run = start(&kduel, &machine);
    wait_until("two trials are done", || trials_done(&kduel) > 1);
    machine.cut();
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("the connection to box was lost"), "{}", stderr(&output));
    let missing = reasons(&kduel.trials());
    assert_eq!(kduel.trials().len(), 14);
    assert!(missing.len() <= 1, "{missing:?}");
    assert!(missing.iter().all(|(failure, why)| failure == "agent" && why.contains("lost")), "{missing:?}");
    assert_eq!(strays(&machine.there()), Vec::<u32>::new());
    assert_eq!(stat_interval(), before);
}

#[test]
fn a_machine_that_falls_silent_is_given_up_and_its_agent_ended() {
    let Some(machine) = machine(Sshd::start()) else { return };
    let _alone = support::alone_with_the_sysctl();
    let before = stat_interval();
    let kduel = Kduel::new();
    let impatient = format!("{} -o ServerAliveInterval=1 -o ServerAliveCountMax=2", machine.arguments());
    let run = start_with(&kduel, &impatient);
    wait_until("two trials are done", || trials_done(&kduel) > 1);
    machine.freeze();
    let output = run.wait_with_output().unwrap();
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("the connection to box was lost") && said.contains("not responding"), "{said}");
    // The agent has not seen its stream end; it is the next connection that ends it.
    assert!(said.contains("which a lost connection had left"), "{said}");
    assert_eq!(kduel.trials().len(), 14);
    assert!(reasons(&kduel.trials()).len() <= 1, "{:?}", reasons(&kduel.trials()));
    assert_eq!(strays(&machine.there()), Vec::<u32>::new());
    assert_eq!(stat_interval(), before);
}

#[test]
fn p1_p2_nothing_is_left_there_by_an_interrupt_nor_by_kill_9() {
    let Some(machine) = machine(Sshd::start()) else { return };
    let _alone = support::alone_with_the_sysctl();
    let before = stat_interval();
    for signal in [Signal::INT, Signal::KILL] {
        let kduel = Kduel::new();
        let run = start(&kduel, &machine);
        wait_until("an agent runs there", || strays(&machine.there()).len() > 1);
        kill_process(Pid::from_raw(run.id() as i32).unwrap(), signal).unwrap();
        let output = run.wait_with_output().unwrap();
        if signal == Signal::INT {
            assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        }
        wait_until("all there have ended", || strays(&machine.there()).is_empty());
        wait_until("and ssh", || strays(kduel.home()).is_empty());
        assert_eq!(stat_interval(), before, "what was turned there is back");
    }
}

#[test]
fn an_agent_that_was_killed_there_is_cleaned_up_behind() {
    let Some(machine) = machine(Sshd::start()) else { return };
    let _alone = support::alone_with_the_sysctl();
    let before = stat_interval();
    let kduel = Kduel::new();
    let run = start(&kduel, &machine);
    let agents = || {
        let is_agent = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == b"agent")
        };
        strays(&machine.there()).into_iter().filter(is_agent).collect::<Vec<u32>>()
    };
    wait_until("a trial is done", || trials_done(&kduel) > 0);
    wait_until("an agent runs there", || !agents().is_empty());
    for pid in agents() {
        let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
    }
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(strays(&machine.there()), Vec::<u32>::new());
    assert_eq!(stat_interval(), before);
}

/// A duel of two kernels, of which the machine has images.
fn kernels(machine: &Sshd) -> Vec<String> {
    let old = machine.there().join("bzImage-old");
    let new = machine.there().join("bzImage-new");
    std::fs::write(&old, image("6.0.0-old", "#1 SMP Debian 6.0.0-1 (2026-01-01)")).unwrap();
    std::fs::write(&new, image("7.0.0-new", "#1 SMP Debian 7.0.0-1 (2026-02-02)")).unwrap();
    let line =
        "run exec --set command=true --set settle=0 --blocks 1 --no-aa --target ssh:box --may-reboot=60";
    let mut args: Vec<String> = line.split_whitespace().map(str::to_string).collect();
    args.extend(["-V".into(), format!("old:kernel=host:{}", old.display())]);
    args.extend(["-V".into(), format!("new:kernel=host:{},append=preempt=full", new.display())]);
    args
}

#[test]
fn kernels_change_by_kexec_are_checked_and_the_machine_returns_to_its_own() {
    let Some(machine) = machine(Sshd::start_rebootable()) else { return };
    let kduel = Kduel::new();
    let args = kernels(&machine);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let refused: Vec<&str> = args.iter().copied().filter(|word| !word.starts_with("--may")).collect();
    let output = command(&kduel, &machine, &refused).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--may-reboot"), "{}", stderr(&output));
    assert_eq!(machine.log(), "", "nobody was asked");
    // Kernels that are not there are all named before the first reboot.
    let absent = ["-V", "here:kernel=/nowhere/bzImage", "-V", "there:kernel=host:/nowhere/bzImage"];
    let output = command(&kduel, &machine, &[&args[..], &absent].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("- here: there is no kernel") && error.contains("- there: "), "{error}");
    assert!(!machine.log().contains("kexec -l"), "{}", machine.log());

    let output = ok(&kduel, &machine, &args);
    assert!(reasons(&kduel.trials()).is_empty(), "{:?}", reasons(&kduel.trials()));
    assert_eq!(kduel.trials().len(), 2);
    let boots: Vec<_> = kduel.records().into_iter().filter(|record| record["kind"] == "boot").collect();
    assert_eq!(boots.len(), 4, "each once before the first block, and once in it");
    for boot in &boots {
        let wanted = if boot["variant"] == "new" { "7.0.0-new" } else { "6.0.0-old" };
        if !boot["facts"].is_null() {
            assert_eq!(boot["facts"]["kernel_release"], wanted, "{boot}");
        }
        assert!(boot["ready_s"].as_f64().unwrap() > 0.0);
    }
    let loaded: Vec<String> =
        machine.log().lines().filter(|line| line.starts_with("kexec -l")).map(str::to_string).collect();
    assert_eq!(loaded.len(), 4, "{loaded:?}");
    let full = loaded.iter().filter(|line| line.contains("preempt=full")).count();
    assert_eq!(full, 2, "{loaded:?}");
    // And home again, by the way that the machine takes by itself.
    assert!(stderr(&output).contains("reboots into its own kernel"), "{}", stderr(&output));
    assert_eq!(machine.log().lines().filter(|line| line.starts_with("reboot")).count(), 1);
    let release = std::fs::read_to_string(machine.path("release")).unwrap();
    assert_eq!(release, std::fs::read_to_string(machine.path("first_release")).unwrap());
    assert!(!machine.cache().join("left").exists());

    // A machine that boots something else than it is told.
    std::fs::write(machine.there().join("lies"), "").unwrap();
    let output = command(&kduel, &machine, &args).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let error = stderr(&output);
    assert!(error.contains("what came up is another kernel: uname -r is"), "{error}");
}
