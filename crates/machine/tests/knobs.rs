//! Knobs and their undo journal on synthetic trees, and on the real machine where that is allowed.
#![cfg(test)]

use experiment::Knob;
use machine::{Root, Undo, knobs, undo};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn knob(key: &str, value: &str) -> Knob {
    Knob::parse(key, value).unwrap()
}

/// Makes a file of a synthetic tree.
fn plant(top: &Path, inside: &str, text: &str) {
    let path = top.join(inside);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn see(top: &Path, inside: &str) -> String {
    fs::read_to_string(top.join(inside)).unwrap().trim_end().to_string()
}

#[test]
fn knobs_are_turned_verified_and_put_back_in_reverse() {
    let tree = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    plant(tree.path(), "proc/sys/kernel/sched_autogroup_enabled", "1\n");
    plant(tree.path(), "proc/sys/kernel/printk", "4\t4\t1\t7\n");
    plant(tree.path(), "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    let root = Root::at(tree.path());
    let wanted = [
        knob("sysctl.kernel.sched_autogroup_enabled", "0"),
        knob("sysctl.kernel.printk", "3 4 1 7"),
        knob("sysfs.kernel/mm/transparent_hugepage/enabled", "never"),
        knob("sysctl.kernel.sched_autogroup_enabled", "2"),
        knob("lock", "mcs"),
        knob("env.A", "b"),
    ];
    let mut undo = Undo::new(home.path().join("undo")).unwrap();
    knobs::apply(&root, &wanted, &mut undo).unwrap();
    assert_eq!(see(tree.path(), "proc/sys/kernel/sched_autogroup_enabled"), "2");
    assert_eq!(see(tree.path(), "proc/sys/kernel/printk"), "3 4 1 7");
    assert_eq!(see(tree.path(), "sys/kernel/mm/transparent_hugepage/enabled"), "never");
    assert!(knobs::verify(&root, &wanted[0]).unwrap_err().to_string().contains("says `2`"));
    assert!(knobs::verify(&root, &wanted[4]).is_ok());

    let recovery = undo.restore();
    assert!(recovery.failed.is_empty());
    let values: Vec<&str> = recovery.restored.iter().map(|restored| restored.value.as_str()).collect();
    assert_eq!(values, ["madvise", "4 4 1 7", "1"]);
    assert_eq!(see(tree.path(), "proc/sys/kernel/sched_autogroup_enabled"), "1");
    assert_eq!(see(tree.path(), "sys/kernel/mm/transparent_hugepage/enabled"), "madvise");
    let left: Vec<_> =
        fs::read_dir(home.path().join("undo")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"], "the journal is gone when all is put back");
}

#[test]
fn the_next_variant_finds_nothing_of_the_one_before() {
    let tree = tempfile::tempdir().unwrap();
    plant(tree.path(), "proc/sys/vm/stat_interval", "1\n");
    plant(tree.path(), "proc/sys/vm/swappiness", "60\n");
    let root = Root::at(tree.path());
    let mut undo = Undo::new(tree.path().join("undo")).unwrap();
    let look = || (see(tree.path(), "proc/sys/vm/stat_interval"), see(tree.path(), "proc/sys/vm/swappiness"));
    let says = |interval: &str, swappiness: &str| (interval.to_string(), swappiness.to_string());

    knobs::turn_to(&root, &[knob("sysctl.vm.stat_interval", "7")], &mut undo).unwrap();
    assert_eq!(look(), says("7", "60"));
    knobs::turn_to(&root, &[knob("sysctl.vm.swappiness", "10")], &mut undo).unwrap();
    assert_eq!(look(), says("1", "10"));
    // The same again only verifies, and so notices what somebody else has done.
    plant(tree.path(), "proc/sys/vm/swappiness", "33\n");
    let error = knobs::turn_to(&root, &[knob("sysctl.vm.swappiness", "10")], &mut undo).unwrap_err();
    assert!(error.to_string().contains("says `33`"), "{error}");
    assert_eq!(look(), says("1", "60"), "after an error everything is back");
    knobs::turn_to(&root, &[knob("sysctl.vm.stat_interval", "7")], &mut undo).unwrap();
    knobs::turn_to(&root, &[], &mut undo).unwrap();
    assert_eq!(look(), says("1", "60"));
    // What was turned last goes back first, in whatever order it was turned before.
    let both = [knob("sysctl.vm.swappiness", "10"), knob("sysctl.vm.stat_interval", "7")];
    knobs::turn_to(&root, &both, &mut undo).unwrap();
    let order: Vec<String> = undo.restore().restored.into_iter().map(|setting| setting.value).collect();
    assert_eq!(order, ["1", "60"]);
}

#[test]
fn a_sysctl_may_name_a_part_with_a_dot() {
    let tree = tempfile::tempdir().unwrap();
    plant(tree.path(), "proc/sys/net/ipv4/conf/eth0.1/rp_filter", "2\n");
    let root = Root::at(tree.path());
    for name in ["sysctl.net.ipv4.conf.eth0/1.rp_filter", "sysctl.net/ipv4/conf/eth0.1/rp_filter"] {
        assert_eq!(knobs::read(&root, &knob(name, "1")).unwrap().as_deref(), Some("2"), "{name}");
    }
}

#[test]
fn a_dropped_undo_puts_back() {
    let tree = tempfile::tempdir().unwrap();
    plant(tree.path(), "proc/sys/vm/stat_interval", "1\n");
    let mut undo = Undo::new(tree.path().join("undo")).unwrap();
    knobs::apply(&Root::at(tree.path()), &[knob("sysctl.vm.stat_interval", "5")], &mut undo).unwrap();
    assert_eq!(see(tree.path(), "proc/sys/vm/stat_interval"), "5");
    drop(undo);
    assert_eq!(see(tree.path(), "proc/sys/vm/stat_interval"), "1");
}

#[test]
fn debugfs_is_found_where_it_is_mounted_and_features_are_turned_one_by_one() {
    let tree = tempfile::tempdir().unwrap();
    let root = Root::at(tree.path());
    let feature = knob("debugfs.sched/features", "NO_PLACE_LAG");
    let problems = knobs::check(&root, std::slice::from_ref(&feature));
    assert!(problems[0].to_string().contains("mount -t debugfs none /sys/kernel/debug"), "{}", problems[0]);

    plant(
        tree.path(),
        "proc/self/mountinfo",
        "36 23 0:7 / /debug\\040here rw shared:9 - debugfs debugfs rw\n",
    );
    plant(tree.path(), "debug here/sched/features", "PLACE_LAG NO_NEXT_BUDDY\n");
    assert!(knobs::check(&root, std::slice::from_ref(&feature)).is_empty());
    assert!(knobs::verify(&root, &feature).is_err());
    assert!(knobs::verify(&root, &knob("debugfs.sched/features", "NO_NEXT_BUDDY PLACE_LAG")).is_ok());
    let unknown = knobs::check(&root, &[knob("debugfs.sched/features", "NO_SUCH")]);
    assert!(unknown[0].to_string().contains("no scheduler feature SUCH; it has PLACE_LAG"), "{}", unknown[0]);
}

#[test]
fn what_cannot_be_turned_is_said_before_the_first_trial() {
    let tree = tempfile::tempdir().unwrap();
    plant(tree.path(), "sys/devices/system/cpu/present", "0-3\n");
    plant(tree.path(), "sys/devices/system/cpu/online", "0-1,3\n");
    plant(tree.path(), "proc/sys/vm/stat_interval", "1\n");
    let asked = [
        knob("sysctl.kernel.nothing_like_it", "1"),
        knob("cpus", "1-2,9"),
        knob("sysctl.vm.stat_interval", "2"),
        knob("lock", "mcs"),
    ];
    let problems: Vec<String> =
        knobs::check(&Root::at(tree.path()), &asked).iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("proc/sys/kernel/nothing_like_it does not exist"), "{}", problems[0]);
    assert!(problems[1].contains("CPU 9 does not exist"), "{}", problems[1]);
    assert!(problems[1].contains("CPU 2 is offline"), "{}", problems[1]);
}

#[test]
fn two_runs_do_not_turn_the_same_setting_under_each_other() {
    let tree = tempfile::tempdir().unwrap();
    plant(tree.path(), "proc/sys/vm/stat_interval", "1\n");
    let root = Root::at(tree.path());
    let mut child = turn_in_a_child(tree.path());
    let mut undo = Undo::new(tree.path().join("undo")).unwrap();
    let error = knobs::apply(&root, &[knob("sysctl.vm.stat_interval", "9")], &mut undo).unwrap_err();
    assert!(error.to_string().contains(&format!("process {}", child.id())), "{error}");
    assert_eq!(see(tree.path(), "proc/sys/vm/stat_interval"), "7");
    // A live owner is left alone.
    assert_eq!(undo::recover(&tree.path().join("undo")).unwrap(), undo::Recovery::default());

    child.kill().unwrap();
    child.wait().unwrap();
    knobs::apply(&root, &[knob("sysctl.vm.stat_interval", "9")], &mut undo).unwrap();
    undo.restore();
    assert_eq!(
        see(tree.path(), "proc/sys/vm/stat_interval"),
        "1",
        "the old value is that of before both runs"
    );
}

#[test]
fn m12_settings_are_put_back_after_sigkill() {
    let tree = tempfile::tempdir().unwrap();
    plant(tree.path(), "proc/sys/vm/stat_interval", "1\n");
    let mut child = turn_in_a_child(tree.path());
    assert_eq!(see(tree.path(), "proc/sys/vm/stat_interval"), "7");
    child.kill().unwrap();
    child.wait().unwrap();
    // A line that was torn by the kill is passed over.
    let journal = fs::read_dir(tree.path().join("undo"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "undo"))
        .unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(&journal)
        .unwrap()
        .write_all(b"00c0ffee {\"was\":{\"pa")
        .unwrap();

    // Several recoveries at once: the setting is put back, and by one of them only.
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let recoveries: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| undo::recover(&tree.path().join("undo")).unwrap().restored.len()))
            .collect();
        recoveries.into_iter().map(|recovery| recovery.join().unwrap()).collect()
    });
    assert_eq!(counts.iter().sum::<usize>(), 1, "{counts:?}");
    assert_eq!(see(tree.path(), "proc/sys/vm/stat_interval"), "1");
    assert!(!journal.exists());
}

#[test]
fn m12_settings_are_put_back_whenever_the_kill_comes() {
    let tree = tempfile::tempdir().unwrap();
    let look = || SETTINGS.map(|(_, inside, _)| see(tree.path(), inside));
    for (_, inside, value) in SETTINGS {
        plant(tree.path(), inside, value);
    }
    let before = look();
    let mut recovered = 0;
    for round in 0..30 {
        let mut child = start_child(tree.path(), "child_that_turns_for_ever");
        std::thread::sleep(Duration::from_micros(700 * round % 5000));
        child.kill().unwrap();
        child.wait().unwrap();
        let recovery = undo::recover(&tree.path().join("undo")).unwrap();
        assert!(recovery.failed.is_empty(), "{recovery:?}");
        recovered += recovery.restored.len();
        assert_eq!(look(), before, "after round {round}");
    }
    assert!(recovered > 0, "not one kill met a turned knob");
}

/// Knob, file and value before.
const SETTINGS: [(&str, &str, &str); 3] = [
    ("sysctl.vm.stat_interval", "proc/sys/vm/stat_interval", "1"),
    ("sysctl.vm.swappiness", "proc/sys/vm/swappiness", "60"),
    ("sysfs.kernel/mm/transparent_hugepage/enabled", "sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
];

#[test]
#[ignore = "started by another test"]
fn child_that_turns_for_ever() {
    let Some(tree) = std::env::var_os("KDUEL_TEST_TREE") else { return };
    let mut settled = 0;
    // Ends by the signal that it is there for, and by itself if that never comes.
    while settled < 100_000 {
        let mut undo = Undo::new(Path::new(&tree).join("undo")).unwrap();
        for (first, second) in [(0, 1), (1, 2), (2, 0)] {
            let wanted = [knob(SETTINGS[first].0, "7"), knob(SETTINGS[second].0, "8")];
            knobs::turn_to(&Root::at(&tree), &wanted, &mut undo).unwrap();
            if settled == 0 {
                println!("turned");
            }
            settled += 1;
        }
    }
}

/// Runs this test program again as a process that turns a knob and then hangs.
fn turn_in_a_child(tree: &Path) -> std::process::Child {
    start_child(tree, "child_that_turns_and_hangs")
}

/// Runs one test of this program again as a process and waits until it says that it has turned something.
fn start_child(tree: &Path, test: &str) -> std::process::Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("KDUEL_TEST_TREE", tree)
        .stdout(Stdio::piped())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let said =
        BufReader::new(child.stdout.as_mut().unwrap()).lines().any(|line| line.unwrap().contains("turned"));
    assert!(said, "the child did not turn the knob");
    child
}

#[test]
#[ignore = "started by other tests"]
fn child_that_turns_and_hangs() {
    let Some(tree) = std::env::var_os("KDUEL_TEST_TREE") else { return };
    let mut undo = Undo::new(Path::new(&tree).join("undo")).unwrap();
    knobs::apply(&Root::at(&tree), &[knob("sysctl.vm.stat_interval", "7")], &mut undo).unwrap();
    println!("turned");
    // Ends only by a signal, or when the test that started it is gone.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

#[test]
fn missing_permission_is_said_before_the_first_trial() {
    use rustix::process::{Resource, getrlimit};
    let problems: Vec<String> = std::thread::spawn(|| {
        // SAFETY: takes no pointer. Made without libc, it concerns this thread alone. It fails only where there is
        // nothing to give up.
        unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        let asked = [
            knob("sysctl.vm.stat_interval", "2"),
            knob("policy", "fifo:50"),
            knob("nice", "-5"),
            knob("policy", "batch"),
        ];
        knobs::check(&Root::real(), &asked).iter().map(ToString::to_string).collect()
    })
    .join()
    .unwrap();
    if getrlimit(Resource::Rtprio).current != Some(0) || getrlimit(Resource::Nice).current != Some(0) {
        return println!("skipped: this user may raise priorities (RLIMIT_RTPRIO, RLIMIT_NICE)");
    }
    assert_eq!(problems.len(), 3, "{problems:?}");
    let says = |index: usize, parts: [&str; 2]| {
        assert!(parts.iter().all(|part| problems[index].contains(part)), "{}", problems[index]);
    };
    says(0, ["knob `sysctl.vm.stat_interval=2`", "/proc/sys/vm/stat_interval needs root"]);
    says(1, ["knob `policy=fifo:50`", "RLIMIT_RTPRIO, ulimit -r"]);
    says(2, ["knob `nice=-5`", "RLIMIT_NICE, ulimit -e"]);
}

#[test]
fn a_real_sysctl_is_turned_and_put_back() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: turning a sysctl needs root");
        return;
    }
    let root = Root::real();
    let interval = knob("sysctl.vm.stat_interval", "2");
    let problems = knobs::check(&root, std::slice::from_ref(&interval));
    if let Some(problem) = problems.first() {
        println!("skipped: {problem}");
        return;
    }
    let before = knobs::read(&root, &interval).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut undo = Undo::new(home.path()).unwrap();
    knobs::apply(&root, std::slice::from_ref(&interval), &mut undo).unwrap();
    assert_eq!(knobs::read(&root, &interval).unwrap().as_deref(), Some("2"));
    assert_eq!(undo.restore().restored.len(), 1);
    assert_eq!(knobs::read(&root, &interval).unwrap(), before);

    let refused = knobs::rehearse(&root, &[knob("sysctl.vm.stat_interval", "not-a-number")], &mut undo);
    assert!(refused[0].to_string().contains("the kernel refused the value"), "{}", refused[0]);
    assert_eq!(knobs::read(&root, &interval).unwrap(), before);
}
