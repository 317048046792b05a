use super::*;
use crate::alone::{alone, leaving_nothing, limit_tasks};
use crate::originals::on_path;
use crate::processes::Children;
use experiment::Outcome;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn plan(users: u64, set: &[(&str, &str)]) -> Result<(Params, Trial, Plan), Failure> {
    let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let params = JobMix.describe().params(&set)?;
    let trial = Trial::new(Point::from(users), vec![0], 1);
    let plan = Plan::new(&params, &trial)?;
    Ok((params, trial, plan))
}

type Figures = BTreeMap<String, f64>;

/// The only sample of each metric, and the counters.
fn run(users: u64, set: &[(&str, &str)]) -> Result<(Figures, Figures), Failure> {
    let (params, mut trial, _) = plan(users, set)?;
    JobMix.run(&params, &mut trial)?;
    match trial.into_outcome() {
        Outcome::Done { samples, counters, .. } => {
            Ok((samples.into_iter().map(|(name, values)| (name, values[0])).collect(), counters))
        }
        missing => panic!("{missing:?}"),
    }
}

/// Objects of dead processes of trials.
fn ownerless() -> usize {
    let of = |table: &str| {
        let table = fs::read_to_string(table).unwrap_or_default();
        let keys = table.lines().filter_map(|line| line.split_whitespace().next()?.parse::<u32>().ok());
        let makers = keys.filter(|key| key >> 24 == 0x6b).map(|key| key & 0xff_ffff);
        makers.filter(|maker| !Path::new(&format!("/proc/{maker}")).exists()).count()
    };
    of("/proc/sysvipc/shm") + of("/proc/sysvipc/sem")
}

fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn users_do_their_jobs_with_both_semantics_and_leave_nothing() {
    alone("jobmix::tests::users_do_their_jobs_with_both_semantics_and_leave_nothing", || {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().to_str().unwrap();
        for semantics in ["original", "strict"] {
            for sub_test in ["shared_memory", "disk_cp"] {
                let set = [
                    ("sub-test", sub_test),
                    ("semantics", semantics),
                    ("directory", directory),
                    ("pool-kib", "20"),
                ];
                let (samples, counters) = leaving_nothing(|| run(5, &set)).unwrap();
                assert_eq!(counters["jobs_per_user"], 100.0);
                let (all, each) = (samples["throughput"], samples["throughput-per-user"]);
                assert!((all - 5.0 * each).abs() < 1e-6 * all, "{all} {each}");
                assert!((each * counters["time_s"] - 6000.0).abs() < 1e-3);
                assert!((samples["jti"] + samples["spread"] - 100.0).abs() < 1e-9);
                assert_eq!(entries(place.path()), 0);
            }
        }
    });
}

#[test]
fn every_sub_test_does_its_work_and_leaves_nothing() {
    alone("jobmix::tests::every_sub_test_does_its_work_and_leaves_nothing", || {
        let place = tempfile::tempdir().unwrap();
        for test in sub_tests::ALL {
            if let Some(absent) = test.programs.iter().find(|program| on_path(program).is_none()) {
                println!("skipped: {} needs {absent}", test.name);
                continue;
            }
            let mut user = User {
                index: 3,
                directory: place.path().into(),
                file_kib: 8,
                sync: false,
                random: Random::new(1, 0),
            };
            // In a process with one thread, as that of a user: signals find the right one.
            let mut process = Children::default();
            let job = || {
                let done = leaving_nothing(|| (test.run)(&mut user));
                done.as_ref().inspect_err(|failure| println!("{}: {failure}", test.name)).is_err().into()
            };
            process.fork(job).unwrap();
            assert_eq!(process.wait_all(), Ok(()), "{}", test.name);
            assert_eq!(entries(place.path()), 0, "{}", test.name);
        }
        assert_eq!(ownerless(), 0);
    });
}

#[test]
fn the_size_of_files_and_the_jobs_are_as_the_semantics_say() {
    let sized = |semantics| plan(4, &[("mix", "shared"), ("semantics", semantics)]).unwrap().2;
    assert_eq!((sized("original").file_kib, sized("original").mix.jobs()), (10 + 1024 / 4, 97));
    assert_eq!((sized("strict").file_kib, sized("strict").mix.jobs()), (10, 100));
}

#[test]
fn a_job_that_was_not_done_is_found() {
    alone("jobmix::tests::a_job_that_was_not_done_is_found", || {
        let (_, _, plan) = plan(3, &[("sub-test", "mul_int")]).unwrap();
        let plan = Plan { expected_jobs: 101, ..plan };
        let error = leaving_nothing(|| plan.run()).unwrap_err();
        assert!(matches!(error, Failure::Invariant(_)));
        assert!(error.to_string().ends_with("user 0 did 100 jobs, of 101"), "{error}");
    });
}

#[test]
fn a_sub_test_that_fails_is_named_and_ends_all_users() {
    alone("jobmix::tests::a_sub_test_that_fails_is_named_and_ends_all_users", || {
        let (_, _, plan) = plan(3, &[("sub-test", "exec_test")]).unwrap();
        without_programs();
        let error = leaving_nothing(|| plan.run()).unwrap_err();
        assert_eq!(error.to_string(), "exec_test: `true` is not on PATH");
    });
}

fn without_programs() {
    // SAFETY: This process does nothing else, so no thread reads the environment meanwhile.
    unsafe { env::set_var("PATH", "/does/not/exist") };
}

#[test]
fn what_cannot_work_is_told_before_the_first_user() {
    alone("jobmix::tests::what_cannot_work_is_told_before_the_first_user", || {
        let told = |users, set: &[(&str, &str)]| leaving_nothing(|| run(users, set)).unwrap_err().to_string();
        assert!(told(0, &[]).contains("users from 1 to"), "{}", told(0, &[]));
        let many = told(1_000_000, &[]);
        assert!(many.contains("kernel.shmmni is"), "{many}");
        let many = told(1_000_000, &[("sub-test", "mul_int")]);
        assert!(many.contains("kernel.threads-max is") || many.contains("pids.max is"), "{many}");
        let nowhere = ("directory", "/does/not/exist");
        for files in [("mix", "fserver"), ("sub-test", "creat_clo"), ("sub-test", "shell_rtns_3")] {
            let absent = told(2, &[files, nowhere]);
            assert!(absent.contains("cannot make a directory in /does/not/exist"), "{absent}");
        }
        // Where there are no files, it does not matter.
        for set in [[("mix", "short"), nowhere], [("sub-test", "mul_int"), nowhere]] {
            let (params, trial, plan) = plan(1, &set).unwrap();
            assert!(plan.scratch().unwrap().is_none());
            JobMix.check(&params, &trial).unwrap();
        }
        let full = told(1000, &[("sub-test", "disk_wrt"), ("file-kib", "1_000_000_000")]);
        assert!(full.contains("KiB free, and the files of 1000 users may need"), "{full}");
        assert!(told(1, &[("sub-test", "disk_write")]).contains("no sub-test is called"));
        without_programs();
        let absent = told(1, &[("mix", "shared")]);
        assert!(absent.contains("is not on PATH, and this mix starts it"), "{absent}");
        assert!(told(1, &[("sub-test", "disk_rd"), ("sync", "on")]).starts_with("`sync` is not on PATH"));
    });
}

#[test]
fn p8_a_disk_that_gets_full_is_told() {
    alone("jobmix::tests::p8_a_disk_that_gets_full_is_told", || {
        let place = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(place.path())
            .status()
            .is_ok_and(|status| status.success());
        if !mounted {
            println!("skipped: mounting a file system of 64 KiB needs root");
            return;
        }
        let set =
            [("sub-test", "disk_wrt"), ("directory", place.path().to_str().unwrap()), ("file-kib", "100")];
        let (_, _, plan) = plan(1, &set).unwrap();
        let (before, during) = (plan.room(plan.scratch().unwrap().as_ref()), leaving_nothing(|| plan.run()));
        let left = entries(place.path());
        Command::new("umount").arg(place.path()).status().unwrap();
        assert!(before.unwrap_err().to_string().contains("64 KiB free"));
        let error = during.unwrap_err().to_string();
        assert!(error.contains("disk_wrt: cannot write") && error.contains("No space left"), "{error}");
        assert_eq!(left, 0);
    });
}

#[test]
fn m15_users_that_cannot_be_forked_leave_nothing() {
    alone("jobmix::tests::m15_users_that_cannot_be_forked_leave_nothing", || {
        let place = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(place.path(), Some(54_321), None).unwrap_or_default();
        if !limit_tasks(8) {
            return;
        }
        let (_, _, plan) = plan(20, &[("directory", place.path().to_str().unwrap())]).unwrap();
        let result = leaving_nothing(|| plan.run());
        assert!(matches!(result, Err(Failure::Spawn { count: 20, .. })), "{result:?}");
        assert_eq!(entries(place.path()), 0);
    });
}

#[test]
fn p2_what_a_trial_leaves_that_is_killed_in_its_middle_is_removed_by_others() {
    alone("jobmix::tests::p2_what_a_trial_leaves_that_is_killed_in_its_middle_is_removed_by_others", || {
        let place = tempfile::tempdir().unwrap();
        let directory = ("directory", place.path().to_str().unwrap());
        let made_by = |pids: &[String]| {
            let table = fs::read_to_string("/proc/sysvipc/sem").unwrap();
            let keys: Vec<u32> =
                table.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
            let key = |pid: &String| machine::system_v_key(pid.parse().unwrap()) as u32;
            pids.iter().filter(|pid| keys.contains(&key(pid))).count()
        };
        // Most users are in the middle of a job.
        let users = users_of_a_killed_trial(200, &[("jobs", "1_000_000")], |users| made_by(users) >= 20);
        machine::remove_leftovers();
        assert_eq!(made_by(&users), 0);
        users_of_a_killed_trial(5, &[("sub-test", "disk_cp"), ("jobs", "1_000_000"), directory], |users| {
            users.len() == 5 && entries(place.path()) == 1
        });
        assert_eq!(entries(place.path()), 1);
        // The next trial removes the files.
        leaving_nothing(|| run(1, &[("sub-test", "disk_cp"), ("jobs", "1"), directory])).unwrap();
        assert_eq!(entries(place.path()), 0);
    });
}

/// Starts a trial, kills it when `is_ready` says so of its users, and returns these when they have gone.
fn users_of_a_killed_trial(
    count: u64,
    set: &[(&str, &str)],
    is_ready: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    let (_, _, plan) = plan(count, set).unwrap();
    let mut trial = Children::default();
    trial.fork(|| u8::from(plan.run().is_err())).unwrap();
    let pid = fs::read_to_string("/proc/thread-self/children").unwrap();
    let pid: i32 = pid.trim().parse().unwrap();
    let users = || {
        let users = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        users.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    while !is_ready(&users()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let users = users();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    assert!(trial.wait_all().is_err());
    let lives =
        |user: &String| fs::read_to_string(format!("/proc/{user}/cmdline")).is_ok_and(|c| !c.is_empty());
    while users.iter().any(lives) {
        std::thread::sleep(Duration::from_millis(5));
    }
    users
}
