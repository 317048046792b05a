//! What a journal is worth after a crash, a full disk, and hands that meddled with it.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{header, trial};
use experiment::{Outcome, Record};
use journal::{Home, JOURNAL_FILE, JournalError, check_space};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A run of a header and six trials, and the bytes of its journal.
fn sample(home: &Home) -> Vec<u8> {
    let mut journal = home.create("sample", &header("sample")).unwrap();
    for block in 1..=3 {
        journal.append(&trial(block, "base", &[1.5, 2.25e-9, 1.0 / 3.0])).unwrap();
        journal.append(&trial(block, "other", &[f64::from(block)])).unwrap();
    }
    journal.sync().unwrap();
    fs::read(journal.directory().join(JOURNAL_FILE)).unwrap()
}

/// The lengths at which the lines of `bytes` end.
fn line_ends(bytes: &[u8]) -> Vec<usize> {
    (1..=bytes.len()).filter(|end| bytes[end - 1] == b'\n').collect()
}

#[test]
fn p8_every_truncation_reads_as_the_records_that_were_whole() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let bytes = sample(&home);
    let ends = line_ends(&bytes);
    let whole = home.read("sample").unwrap();
    assert_eq!((whole.records.len(), whole.notices.len()), (6, 0));

    let file = home.runs().join("sample").join(JOURNAL_FILE);
    for length in 0..bytes.len() {
        fs::write(&file, &bytes[..length]).unwrap();
        let kept = ends.iter().filter(|end| **end <= length).count();
        match home.read("sample") {
            Ok(run) => {
                assert_eq!(run.records, whole.records[..kept - 1], "cut at {length}");
                let torn = length - ends[kept - 1];
                let notices = match torn {
                    0 => Vec::new(),
                    _ => vec![format!("the last record was torn and has been dropped ({torn} bytes)")],
                };
                assert_eq!(run.notices, notices);
            }
            Err(JournalError::NoHeader { .. }) => assert_eq!(kept, 0, "cut at {length}"),
            Err(error) => panic!("cut at {length}: {error}"),
        }
    }
}

#[test]
fn p8_a_run_goes_on_behind_its_last_whole_record() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let bytes = sample(&home);
    let file = home.runs().join("sample").join(JOURNAL_FILE);
    let more = trial(9, "base", &[9.0]);
    for length in (line_ends(&bytes)[0]..bytes.len()).step_by(41) {
        fs::write(&file, &bytes[..length]).unwrap();
        let before = home.read("sample").unwrap();
        // A process that another test starts has the lock, too, until it is another program.
        let mut journal = loop {
            match home.open("sample") {
                Err(JournalError::Busy { .. }) => std::thread::yield_now(),
                opened => break opened.unwrap(),
            }
        };
        journal.append(&more).unwrap();
        drop(journal);
        let after = home.read("sample").unwrap();
        assert_eq!(after.notices, Vec::<String>::new());
        assert_eq!(after.records[..before.records.len()], before.records);
        assert_eq!(after.records.last(), Some(&more));
        let said = after.records.iter().any(|record| matches!(record, Record::Notice { .. }));
        assert_eq!(said, !before.notices.is_empty(), "cut at {length}");
    }
}

#[test]
fn p8_no_changed_byte_becomes_another_number() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let bytes = sample(&home);
    let whole = home.read("sample").unwrap();
    let ends = line_ends(&bytes);
    let file = home.runs().join("sample").join(JOURNAL_FILE);
    for at in ends[1]..ends[2] {
        for other in [b'7', b' ', b'\n', b'}', 0] {
            let mut changed = bytes.clone();
            changed[at] = other;
            fs::write(&file, &changed).unwrap();
            match home.read("sample") {
                Ok(run) => assert_eq!(run, whole, "byte {at}"),
                Err(JournalError::Damaged { line, .. }) => {
                    assert!(line == 3 || line == 4, "byte {at}: {line}")
                }
                Err(error) => panic!("byte {at}: {error}"),
            }
        }
    }
}

#[test]
fn a_missing_line_is_an_error_that_names_the_place() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let bytes = sample(&home);
    let ends = line_ends(&bytes);
    let file = home.runs().join("sample").join(JOURNAL_FILE);
    fs::write(&file, [&bytes[..ends[1]], &bytes[ends[2]..]].concat()).unwrap();
    let error = home.read("sample").unwrap_err().to_string();
    assert!(error.contains(JOURNAL_FILE) && error.contains("line 3: it has the number 4"), "{error}");
    assert!(home.open("sample").is_err(), "nothing may be appended to a damaged journal");
}

#[test]
fn a_record_of_another_version_is_no_torn_tail() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    sample(&home);
    let file = home.runs().join("sample").join(JOURNAL_FILE);
    let mut bytes = fs::read(&file).unwrap();
    let body = r#"{"kind":"horoscope"}"#;
    let crc = crc32fast::hash(body.as_bytes());
    bytes.extend(format!("{{\"crc\":\"{crc:08x}\",\"seq\":8,\"record\":{body}}}\n").bytes());
    fs::write(&file, &bytes).unwrap();
    let error = home.read("sample").unwrap_err();
    assert!(matches!(error, JournalError::Foreign { line: 8, .. }), "{error}");
    assert!(error.to_string().contains("horoscope"), "{error}");
    assert!(home.open("sample").is_err());
    assert_eq!(fs::read(&file).unwrap(), bytes, "what is not understood must not be cut off");
}

#[test]
fn a_trial_that_stands_twice_counts_once() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let mut journal = home.create("twice", &header("twice")).unwrap();
    for samples in [[1.0], [2.0]] {
        journal.append(&trial(1, "base", &samples)).unwrap();
    }
    let run = journal.read().unwrap();
    assert_eq!(run.records, [trial(1, "base", &[1.0])]);
    assert_eq!(
        run.notices,
        ["trials that stand in the journal again do not count: 1, such as work 1 base block 1"]
    );
}

#[test]
fn s8_minus_one_and_all_finite_numbers_survive_a_round_trip() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let mut journal = home.create("legal", &header("legal")).unwrap();
    let values = [-1.0, 0.0, -0.0, 1.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::MIN, 0.1 + 0.2, 1e23];
    journal.append(&trial(1, "base", &values)).unwrap();
    let run = home.read("legal").unwrap();
    assert_eq!(run.header, header("legal"));
    let Record::Trial(trial) = &run.records[0] else { panic!("a trial was written") };
    let Outcome::Done { samples, .. } = &trial.outcome else { panic!("it was done") };
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
    assert_eq!(bits(&samples["time"]), bits(&values));
}

#[test]
fn s11_nan_and_infinity_are_refused_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path());
    let mut journal = home.create("finite", &header("finite")).unwrap();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = journal.append(&trial(1, "base", &[1.0, bad])).unwrap_err();
        assert!(error.to_string().contains("`time` of work 1 base"), "{error}");
    }
    journal.append(&trial(1, "base", &[1.0])).unwrap();
    assert_eq!(home.read("finite").unwrap().records, [trial(1, "base", &[1.0])]);
    let mut bad = header("bad");
    bad.experiment.margin_pct = f64::NAN;
    assert!(matches!(home.create("bad", &bad), Err(JournalError::NotFinite { .. })));
    assert_eq!(home.list().unwrap().len(), 1, "a run that could not begin leaves nothing");
}

/// Runs the test `name` of this file again as a child of `script`, in which "$@" is the command.
fn again_under(script: &str, name: &str, home: &Path) -> std::process::Output {
    let test = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(test)
        .args(["--exact", name, "--nocapture"])
        .env("JOURNAL_TEST_HOME", home)
        .output()
        .unwrap()
}

/// Appends until there is no more room, gives the error, and shows that the journal goes on once there is room.
fn fill(home: &Home, make_room: impl Fn()) -> JournalError {
    let mut journal = home.create("full", &header("full")).unwrap();
    let ballast = trial(0, "base", &[1.0 / 3.0; 100]);
    let mut written = 0;
    let error = loop {
        match journal.append(&ballast).and_then(|()| journal.sync()) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    let file = journal.directory().join(JOURNAL_FILE);
    assert!(written > 0);
    assert!(fs::read(&file).unwrap().ends_with(b"\n"), "the file must end with a whole record");
    assert_eq!(home.read("full").unwrap().notices.len(), 1, "only the notice on trials that stand twice");
    make_room();
    let short = Record::Notice { text: "short".into() };
    journal.append(&short).unwrap();
    assert_eq!(home.read("full").unwrap().records.last(), Some(&short));
    error
}

#[test]
fn p8_a_write_that_stops_half_way_leaves_whole_records() {
    if let Some(home) = std::env::var_os("JOURNAL_TEST_HOME") {
        // The limit stands, but a short record still fits.
        let error = fill(&Home::at(home), || ());
        assert!(error.to_string().contains("append to"), "{error}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let name = "p8_a_write_that_stops_half_way_leaves_whole_records";
    let output = again_under("trap '' XFSZ; ulimit -f 32; exec \"$@\"", name, directory.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn p8_a_full_disk_has_an_error_of_its_own() {
    if let Some(home) = std::env::var_os("JOURNAL_TEST_HOME") {
        let hog = Path::new(&home).join("hog");
        fs::write(&hog, vec![0; 16 << 10]).unwrap();
        let error = fill(&Home::at(&home), || fs::remove_file(&hog).unwrap());
        assert!(matches!(error, JournalError::DiskFull { .. }), "{error}");
        let short = check_space(Path::new(&home), 1 << 20);
        assert!(matches!(short, Err(JournalError::LittleSpace { .. })));
        assert!(check_space(Path::new(&home), 1024).is_ok());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=64k none \"$JOURNAL_TEST_HOME\"";
    let trial = Command::new("unshare")
        .args(["-Urm", "sh", "-c", mount])
        .env("JOURNAL_TEST_HOME", directory.path())
        .output();
    if !trial.is_ok_and(|output| output.status.success()) {
        println!("skipped: no file system can be mounted in a user namespace here");
        return;
    }
    let script = format!("exec unshare -Urm sh -c '{mount} && exec \"$@\"' sh \"$@\"");
    let output = again_under(&script, "p8_a_full_disk_has_an_error_of_its_own", directory.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
