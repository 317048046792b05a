//! tbench: clients and servers that exchange the messages of a file server's load over TCP, without any file.

mod connection;
mod deck;
mod figures;
pub mod loadfile;
mod operation;
mod order;
mod phases;
mod work;

use crate::shared::{room_for, with_shared};
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point};
pub use operation::Operation;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use work::Plan;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct Tbench;

impl Workload for Tbench {
    fn describe(&self) -> Description {
        Description {
            name: "tbench".into(),
            summary: "throughput of clients that exchange a file server's messages with their servers over TCP".into(),
            about: "Each client is a process with one connection over the loopback device to a server process of its \
                    own. It replays a load of 458,344 operations again and again: for each it sends a request of the \
                    size that the operation has, and takes in an answer. Servers answer at once; no file is touched. \
                    So client and server wake each other in turn, and what is measured is the scheduler and TCP.\n\n\
                    The throughput counts the bytes that are read from and written to files, and nothing else that \
                    is sent. The built-in load is made by the figures of the original's: as many operations of each \
                    kind, the same totals and percentiles of sizes, and the same structure of the order, which the \
                    trial's seed decides on. `loadfile` replays a file instead.\n\n\
                    With original semantics all clients begin at the first operation, and the warm-up lasts for a fifth \
                    of `runtime` at least, in whole seconds as the original counts them: below 5 s there is none. With strict semantics clients begin at places spread evenly over the \
                    load, so that a short run sees all of it, and the warm-up is `warmup` alone. In both the measured \
                    time does not begin before every client has moved bytes."
                .into(),
            source: "tbench of dbench 4.00. Operations are taken from memory: the original reads the text of its \
                     loadfile and calls kill() to see whether its parent lives, for each operation."
                .into(),
            axis: Axis {
                name: "clients".into(),
                heading: "Clients".into(),
                suffix: String::new(),
                points: [1, 2, 4, 8].map(Point::from).to_vec(),
                range: Some((1, 10_000)),
            },
            parameters: with_shared(
                vec![
                    Parameter::decimal("runtime", 10.0, 0.01, 86_400.0, "seconds that are measured"),
                    Parameter::text(
                        "loadfile",
                        "",
                        "a load in the form of dbench's client.txt, to replay instead of the built-in one",
                    ),
                    Parameter::integer(
                        "port",
                        0,
                        0,
                        65_535,
                        "TCP port of 127.0.0.1 on which the servers listen; 0 for any that is free",
                    ),
                ],
                self.originals(),
            ),
            metrics: metrics(),
            requirements: vec![
                "two processes for each client".into(),
                "the loopback device".into(),
                "dbench for `via`, and port 7003".into(),
            ],
        }
    }

    fn originals(&self) -> &'static [Original] {
        &[Original::TBENCH]
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        room_for(0, 2 * trial.count()?, 8)?;
        operations(params, trial.seed())?;
        match originals::wanted(params, self.originals())? {
            Some(_) => originals::tbench::check(params),
            None => listen(params).map(drop),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        room_for(0, 2 * trial.count()?, 8)?;
        let load = operations(params, trial.seed())?;
        if originals::wanted(params, self.originals())?.is_some() {
            return originals::tbench::run(params, &load, trial);
        }
        let plan = Plan::new(params, &load, trial)?;
        plan.run(&listen(params)?, trial)
    }
}

fn metrics() -> Vec<Metric> {
    let latency = |name: &str, which: &str, help: &str| {
        Metric::new(name, "us", Direction::Lower, &format!("{which} latency in us"), help).secondary()
    };
    vec![
        Metric::new(
            "throughput",
            "MB/s",
            Direction::Higher,
            "throughput",
            "bytes of files read and written by all clients, in millions per second",
        ),
        Metric::new(
            "rate",
            "ops/s",
            Direction::Higher,
            "operations per second",
            "operations of all clients per second",
        )
        .secondary(),
        latency("latency", "mean", "mean time of an operation, from its request to the end of its answer"),
        latency("max-latency", "maximum", "the longest that an operation took"),
        Metric::new(
            "fairness",
            "",
            Direction::Higher,
            "fairness (Jain)",
            "Jain's index of the operations of each client: 1 if all did as many, 1/n if one of n did all",
        )
        .secondary(),
    ]
}

/// The load that `params` ask for.
fn operations(params: &Params, seed: u64) -> Result<Vec<Operation>, Failure> {
    match params.text("loadfile")? {
        "" => Ok(deck::shuffled(seed)),
        path => loadfile::read(path),
    }
}

/// Takes the port of the servers.
fn listen(params: &Params) -> Result<TcpListener, Failure> {
    let port = params.count("port")? as u16;
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        Failure::Refused(match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("port {port} of 127.0.0.1 is in use; name another, or port=0 for any that is free")
            }
            _ => format!("servers cannot listen on port {port} of 127.0.0.1: {error}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing, limit_tasks};
    use crate::originals::on_path;
    use experiment::Outcome;
    use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
    use std::collections::BTreeMap;
    use std::fs;

    type Samples = BTreeMap<String, Vec<f64>>;

    fn run(clients: u64, set: &[(&str, &str)]) -> Result<Samples, Failure> {
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = Tbench.describe().params(&set)?;
        let mut trial = Trial::new(Point::from(clients), vec![0], 1);
        Tbench.check(&params, &trial)?;
        Tbench.run(&params, &mut trial)?;
        match trial.into_outcome() {
            Outcome::Done { samples, .. } => Ok(samples),
            missing => panic!("{missing:?}"),
        }
    }

    /// Eight operations, of which the first and the last send nothing.
    const SMALL: &str = "Deltree \"\\clients\\client1\" NT_STATUS_OK\n\
        NTCreateX \"\\clients\\client1\\a\" 0x40 0x2 1 NT_STATUS_OK\n\
        WriteX 1 0 65536 65536 NT_STATUS_OK\n\
        ReadX 1 0 61440 61440 NT_STATUS_OK\n\
        FIND_FIRST \"\\clients\\client1\\*\" 260 1366 11 NT_STATUS_OK\n\
        Close 1 NT_STATUS_OK\n\
        Unlink \"\\clients\\client1\\a\" 0x6 NT_STATUS_OK\n\
        Deltree \"\\clients\\client1\" NT_STATUS_OK\n";

    fn small_load() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), SMALL).unwrap();
        file
    }

    #[test]
    fn all_metrics_come_of_either_load_and_semantics_and_nothing_is_left() {
        alone("tbench::tests::all_metrics_come_of_either_load_and_semantics_and_nothing_is_left", || {
            let file = small_load();
            for loadfile in [file.path().to_str().unwrap(), ""] {
                for semantics in ["original", "strict"] {
                    let set = [("loadfile", loadfile), ("semantics", semantics), ("runtime", "0.05")];
                    let samples = leaving_nothing(|| run(3, &set).unwrap());
                    for metric in Tbench.describe().metrics {
                        assert!(samples[&metric.name][0] > 0.0, "{} of {semantics} {loadfile}", metric.name);
                    }
                    if !loadfile.is_empty() {
                        let payload_per_operation = samples["throughput"][0] * 1e6 / samples["rate"][0];
                        let expected = (65_536.0 + 61_440.0) / 8.0;
                        assert!(
                            (payload_per_operation / expected - 1.0).abs() < 0.5,
                            "{payload_per_operation}"
                        );
                    }
                }
            }
        });
    }

    #[test]
    fn a_killed_process_fails_the_trial_and_takes_the_others_with_it() {
        alone("tbench::tests::a_killed_process_fails_the_trial_and_takes_the_others_with_it", || {
            let file = small_load();
            let set = [("loadfile", file.path().to_str().unwrap()), ("runtime", "600")];
            let list = format!("/proc/self/task/{}/children", rustix::thread::gettid());
            // The first two are servers, the last two clients.
            for victim in [0, 3] {
                let error = leaving_nothing(|| {
                    std::thread::scope(|scope| {
                        scope.spawn(|| {
                            let children = || fs::read_to_string(&list).unwrap();
                            while children().split_whitespace().count() < 4 {
                                std::thread::yield_now();
                            }
                            std::thread::sleep(std::time::Duration::from_millis(50));
                            let pid = children().split_whitespace().nth(victim).unwrap().parse().unwrap();
                            kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
                        });
                        run(2, &set).unwrap_err()
                    })
                });
                assert!(matches!(error, Failure::Invariant(_)), "{error}");
            }
        });
    }

    #[test]
    fn what_cannot_be_is_refused_and_leaves_nothing() {
        alone("tbench::tests::what_cannot_be_is_refused_and_leaves_nothing", || {
            let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = holder.local_addr().unwrap().port().to_string();
            let refused = |clients, set: &[(&str, &str)]| {
                leaving_nothing(|| match run(clients, set) {
                    Err(Failure::Refused(why)) => why,
                    Err(Failure::Param(why)) => why.to_string(),
                    other => panic!("{set:?}: {other:?}"),
                })
            };
            for clients in [0, 1_000_000] {
                assert!(refused(clients, &[]).contains("from 1 to 10000"));
            }
            assert!(refused(1, &[("port", &port)]).contains(&format!("port {port} of 127.0.0.1 is in use")));
            assert!(refused(1, &[("loadfile", "/nowhere")]).contains("the loadfile /nowhere cannot be read"));
            assert!(refused(1, &[("via", "dbench"), ("semantics", "strict")]).contains("original semantics"));
            assert!(refused(1, &[("via", "dbench"), ("port", "80")]).contains("no port but 7003"));
            for runtime in ["1", "2.5"] {
                assert!(
                    refused(1, &[("via", "dbench"), ("runtime", runtime)]).contains("whole seconds, from 2")
                );
            }
            assert!(
                refused(1, &[("via", "dbench"), ("warmup", "3")]).contains("a fifth of `runtime`, here 2 s")
            );
        });
    }

    #[test]
    fn m15_a_process_that_cannot_start_ends_the_others() {
        alone("tbench::tests::m15_a_process_that_cannot_start_ends_the_others", || {
            if limit_tasks(8) {
                let error = leaving_nothing(|| run(4, &[])).unwrap_err();
                // Others may be the same user at this time.
                assert!(matches!(error, Failure::Spawn { nth: 1..=8, count: 8, .. }), "{error}");
            }
        });
    }

    #[test]
    fn m15_too_few_open_files_are_named_before_anything_starts() {
        alone("tbench::tests::m15_too_few_open_files_are_named_before_anything_starts", || {
            setrlimit(Resource::Nofile, Rlimit { current: Some(8), maximum: Some(8) }).unwrap();
            let error = leaving_nothing(|| run(4, &[])).unwrap_err().to_string();
            assert!(error.contains("RLIMIT_NOFILE is 8"), "{error}");
        });
    }

    #[test]
    fn the_original_replays_the_built_in_load_and_leaves_nothing() {
        alone("tbench::tests::the_original_replays_the_built_in_load_and_leaves_nothing", || {
            if on_path("tbench").is_none() {
                println!("skipped: dbench is not installed");
                return;
            }
            let samples = leaving_nothing(|| run(2, &[("via", "dbench"), ("runtime", "2")]).unwrap());
            for metric in ["throughput", "rate", "latency", "max-latency"] {
                assert!(samples[metric][0] > 0.0, "{samples:?}");
            }
            // The load has 5428 bytes for each operation. The two figures are not of quite the same time.
            let payload_per_operation = samples["throughput"][0] * 1e6 / samples["rate"][0];
            assert!((543.0..54_280.0).contains(&payload_per_operation), "{payload_per_operation}");
        });
    }
}
