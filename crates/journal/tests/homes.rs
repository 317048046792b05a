//! Where runs live, how they are named, and that each has one writer.

mod common;

use common::{header, trial};
use experiment::{Ending, Record, from_toml};
use journal::{EXPERIMENT_FILE, Home, JOURNAL_FILE, JournalError};
use std::fs;
use std::sync::Barrier;
use std::thread;

#[test]
fn a_run_is_found_by_name_prefix_latest_and_directory() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path().join("not/yet"));
    assert!(home.list().unwrap().is_empty());
    assert!(home.read("latest").is_err());
    for run in ["2026-01-01-abc", "2026-01-02-def"] {
        home.create(run, &header(run)).unwrap();
    }
    let read = |run: &str| home.read(run).map(|run| run.header.run);
    assert_eq!(read("2026-01-01-abc").unwrap(), "2026-01-01-abc");
    assert_eq!(read("2026-01-01").unwrap(), "2026-01-01-abc");
    assert_eq!(read("latest").unwrap(), "2026-01-02-def");
    let path = home.runs().join("2026-01-01-abc");
    assert_eq!(read(path.to_str().unwrap()).unwrap(), "2026-01-01-abc");
    match read("2026-01").unwrap_err() {
        JournalError::Ambiguous { names, .. } => assert_eq!(names.len(), 2),
        error => panic!("{error}"),
    }
    let error = read("2026-01-03-abc").unwrap_err();
    assert!(error.to_string().contains("2026-01-01-abc"), "{error}");
    assert!(matches!(read(""), Err(JournalError::Unknown { .. })));
}

#[test]
fn out_puts_a_run_anywhere_and_keeps_its_hands_off_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path().join("home"));
    let out = directory.path().join("out");
    let journal = home.create_at(&out, &header("elsewhere")).unwrap();
    assert_eq!(journal.directory(), out);
    assert_eq!(home.read("latest").unwrap().header.run, "elsewhere");
    assert!(matches!(home.create_at(&out, &header("again")), Err(JournalError::Exists { .. })));
    assert!(home.read(out.to_str().unwrap()).is_ok(), "the refused run must not harm the first");

    let own = directory.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join(EXPERIMENT_FILE), "title = \"mine\"").unwrap();
    assert!(home.create_at(&own, &header("x")).is_err());
    assert_eq!(fs::read_to_string(own.join(EXPERIMENT_FILE)).unwrap(), "title = \"mine\"");
    assert!(!own.join(JOURNAL_FILE).exists());
}

#[test]
fn the_experiment_stands_beside_its_journal() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let mut header = header("beside");
    header.experiment.seed = Some(7);
    let journal = home.create("beside", &header).unwrap();
    let text = fs::read_to_string(journal.directory().join(EXPERIMENT_FILE)).unwrap();
    assert_eq!(from_toml(&text).unwrap(), header.experiment);
}

#[test]
fn a_name_cannot_leave_the_directory_of_runs() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    for name in ["", ".", "..", "../x", "a/b", "latest", ".hidden", "a b", "a\n"] {
        assert!(matches!(home.create(name, &header("x")), Err(JournalError::Name(_))), "{name:?}");
    }
}

#[test]
fn a_listing_tells_how_runs_ended() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    home.create("a", &header("a")).unwrap();
    let mut journal = home.create("b", &header("b")).unwrap();
    for block in 0..100 {
        journal.append(&trial(block, "base", &[1.0; 50])).unwrap();
    }
    let ending = Ending::Interrupted("SIGINT".into());
    journal.append(&Record::End { at_unix_ms: 1, ending: ending.clone() }).unwrap();
    fs::create_dir(home.runs().join("c")).unwrap();
    fs::write(home.runs().join("c").join(JOURNAL_FILE), "nonsense").unwrap();
    fs::create_dir(home.runs().join("no-run")).unwrap();
    let list = home.list().unwrap();
    let names: Vec<&str> = list.iter().map(|info| info.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(list[0].ending, None);
    assert_eq!(list[1].ending, Some(ending));
    assert_eq!(list[1].header.as_ref().unwrap().run, "b");
    assert!(list[2].header.is_err());
}

#[test]
fn a_run_has_one_writer_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let journal = home.create("one", &header("one")).unwrap();
    let error = home.open("one").unwrap_err();
    assert!(matches!(error, JournalError::Busy { .. }), "{error}");
    assert!(home.read("one").is_ok(), "reading needs no lock");
    drop(journal);
    assert!(home.open("one").is_ok());
}

#[test]
fn of_many_who_create_or_open_at_once_one_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let barrier = Barrier::new(8);
    let count = |act: &(dyn Fn() -> bool + Sync)| {
        thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        act()
                    })
                })
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).filter(|won| *won).count()
        })
    };
    // What was won is kept until all have tried.
    let kept = std::sync::Mutex::new(Vec::new());
    let keep = |result: Result<journal::Journal, JournalError>| {
        let won = result.is_ok();
        kept.lock().unwrap().extend(result);
        won
    };
    assert_eq!(count(&|| keep(home.create("race", &header("race")))), 1);
    kept.lock().unwrap().clear();
    assert_eq!(count(&|| keep(home.open("race"))), 1);
    assert!(home.read("race").is_ok());
}

#[test]
fn a_growing_run_reads_at_any_moment() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let mut journal = home.create("grows", &header("grows")).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for block in 1..=2000 {
                journal.append(&trial(block, "base", &[1.0 / f64::from(block); 20])).unwrap();
            }
        });
        let mut before = 0;
        while !writer.is_finished() {
            let run = home.read("grows").unwrap();
            assert!(run.records.len() >= before);
            before = run.records.len();
        }
    });
    let run = home.read("grows").unwrap();
    assert_eq!((run.records.len(), run.notices.len()), (2000, 0));
}
