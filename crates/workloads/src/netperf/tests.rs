use super::figures::{check, figures};
use super::*;
use crate::alone::{alone, leaving_nothing, limit_tasks};
use experiment::Outcome;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

type Samples = BTreeMap<String, Vec<f64>>;

fn trial(clients: u64) -> Trial {
    Trial::new(Point::from(clients), vec![0], 1)
}

fn params(set: &[(&str, &str)]) -> Result<Params, Failure> {
    let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Ok(Netperf.describe().params(&set)?)
}

/// The plan that these parameters make.
pub fn plan_of(clients: u64, set: &[(&str, &str)]) -> Result<Plan, Failure> {
    Plan::new(&params(set)?, &trial(clients))
}

fn run(clients: u64, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
    let mut trial = trial(clients);
    Netperf.run(&params(set)?, &mut trial)?;
    Ok(trial.into_outcome())
}

fn samples(outcome: Outcome) -> Samples {
    match outcome {
        Outcome::Done { samples, .. } => samples,
        missing => panic!("{missing:?}"),
    }
}

/// The reason why `work` has to fail, which must leave nothing behind.
fn refusal(clients: u64, set: &[(&str, &str)]) -> String {
    let error = leaving_nothing(|| run(clients, set)).unwrap_err();
    assert!(matches!(error, Failure::Refused(_) | Failure::Param(_)), "{error:?}");
    error.to_string()
}

fn small(test: Test, semantics: Semantics) -> Plan {
    Plan {
        test,
        clients: 2,
        runtime: Duration::from_millis(30),
        warmup: Duration::ZERO,
        request: 100,
        response: 100,
        message: 1000,
        receive: 1000,
        buffer: 0,
        nodelay: false,
        port: 0,
        semantics,
        lose_nth: 0,
    }
}

/// Does the work of `plan` and returns what came of it.
fn work(plan: &Plan) -> Result<Outcome, Failure> {
    let mut trial = trial(plan.clients as u64);
    leaving_nothing(|| plan.run(&mut trial))?;
    Ok(trial.into_outcome())
}

#[test]
fn every_test_yields_its_metrics_and_leaves_nothing() {
    alone("netperf::tests::every_test_yields_its_metrics_and_leaves_nothing", || {
        for test in Test::WORDS {
            let set = [("test", test), ("runtime", "0.03"), ("warmup", "0.01"), ("settle", "0")];
            let samples = samples(leaving_nothing(|| run(2, &set).unwrap()));
            let described = Netperf.describe_for(&BTreeMap::from([("test".into(), test.into())])).metrics;
            let mut described: Vec<String> = described.into_iter().map(|metric| metric.name).collect();
            described.sort();
            assert_eq!(samples.keys().cloned().collect::<Vec<String>>(), described, "{test}");
            let of = |metric: &str| samples[metric][0];
            assert!(of("throughput") > 0.0 && of("sum") > 0.0, "{test} {samples:?}");
            if !Test::of(test).is_stream() {
                let in_order =
                    ["latency-min", "latency-p50", "latency-p90", "latency-p99", "latency-max"].map(of);
                assert!(in_order.is_sorted() && in_order[0] > 0.0, "{test} {in_order:?}");
                assert!(in_order[0] <= of("latency-mean") && of("latency-mean") <= in_order[4]);
            }
        }
    });
}

#[test]
fn any_size_goes_over_the_wire_whole() {
    alone("netperf::tests::any_size_goes_over_the_wire_whole", || {
        for (test, request, response) in [
            ("tcp_rr", "1", "300000"),
            ("tcp_rr", "300000", "1"),
            ("tcp_crr", "70000", "1"),
            ("udp_rr", "1", "65507"),
        ] {
            let set = [
                ("test", test),
                ("request", request),
                ("response", response),
                ("runtime", "0.02"),
                ("semantics", "strict"),
                ("nodelay", "on"),
                ("buffer", "70000"),
            ];
            assert!(samples(run(1, &set).unwrap())["throughput"][0] > 0.0, "{test}");
        }
    });
}

#[test]
fn what_a_server_loses_is_found() {
    alone("netperf::tests::what_a_server_loses_is_found", || {
        for test in [Test::TcpRr, Test::TcpCrr, Test::TcpStream] {
            let error = work(&Plan { lose_nth: 5, ..small(test, Semantics::Original) }).unwrap_err();
            assert!(matches!(error, Failure::Invariant(_)));
            assert!(error.to_string().contains("but its server received"), "{error}");
        }
        let outcome = work(&Plan { lose_nth: 2, ..small(Test::UdpStream, Semantics::Original) }).unwrap();
        assert!(samples(outcome)["lost"][0] > 40.0);
    });
}

#[test]
fn a_lost_datagram_stalls_its_client_as_the_originals_do_or_is_sent_again() {
    alone("netperf::tests::a_lost_datagram_stalls_its_client_as_the_originals_do_or_is_sent_again", || {
        let rounds = |semantics| {
            let runtime = Duration::from_millis(900);
            let plan = Plan { runtime, lose_nth: 10, clients: 1, ..small(Test::UdpRr, semantics) };
            match work(&plan).unwrap() {
                Outcome::Done { samples, counters, notes, .. } => {
                    let transactions = (samples["throughput"][0] * 0.9).round();
                    (transactions, counters["lost datagrams"], notes)
                }
                missing => panic!("{missing:?}"),
            }
        };
        // It stops at the first loss, with nine transactions done, and the time runs on.
        let (transactions, lost, notes) = rounds(Semantics::Original);
        assert_eq!((transactions, lost), (9.0, 1.0));
        assert!(notes[0].contains("waited for the rest of the run"), "{notes:?}");
        let (transactions, lost, notes) = rounds(Semantics::Strict);
        assert!(transactions >= 18.0 && lost >= 2.0 && notes.is_empty(), "{transactions} {lost} {notes:?}");
    });
}

#[test]
fn a_port_in_use_is_named_before_anything_starts() {
    alone("netperf::tests::a_port_in_use_is_named_before_anything_starts", || {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        for (test, address) in [("tcp_rr", tcp.local_addr()), ("udp_rr", udp.local_addr())] {
            let port = address.unwrap().port().to_string();
            let set = [("test", test), ("port", port.as_str())];
            let checked = Netperf.check(&params(&set).unwrap(), &trial(1)).unwrap_err().to_string();
            for error in [refusal(1, &set), checked] {
                assert!(error.contains(&format!("port {port} of 127.0.0.1 is in use")), "{error}");
            }
        }
    });
}

#[test]
fn a_fixed_port_serves_one_trial_after_the_other() {
    alone("netperf::tests::a_fixed_port_serves_one_trial_after_the_other", || {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        for _ in 0..3 {
            // Its servers close first, so that their side of the connections stays for a while.
            let set = [("test", "tcp_crr"), ("runtime", "0.01"), ("port", port.as_str())];
            assert!(samples(run(1, &set).unwrap())["throughput"][0] > 0.0);
        }
    });
}

#[test]
fn what_cannot_be_is_refused_and_says_what_could() {
    alone("netperf::tests::what_cannot_be_is_refused_and_says_what_could", || {
        for clients in [0, 10_001] {
            assert!(refusal(clients, &[]).contains("from 1 to 10000"));
            let checked = Netperf.check(&params(&[]).unwrap(), &trial(clients)).unwrap_err().to_string();
            assert!(checked.contains("from 1 to 10000"), "{checked}");
        }
        assert!(refusal(400, &[("response", "1_000_000_000")]).contains("do not fit"));
        let datagram = [("test", "udp_rr"), ("request", "65508")];
        assert!(refusal(1, &datagram).contains("request=65508 is more than a datagram holds"));
        assert!(
            refusal(1, &[("test", "udp_stream"), ("message", "70000")]).contains("take 65507 at the most")
        );
        assert!(refusal(10, &[("port", "65530")]).contains("the ports 65530 to 65539"));
        assert!(refusal(1, &[("buffer", "1000000000")]).contains("net.core.wmem_max"));
        assert!(refusal(1, &[("runtime", "0")]).contains("runtime"));
    });
}

#[test]
fn without_a_loopback_interface_that_is_up_the_error_says_so() {
    alone("netperf::tests::without_a_loopback_interface_that_is_up_the_error_says_so", || {
        // SAFETY: Nothing of this process depends on its network.
        if unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.is_err() {
            println!("skipped: only root can have a network of its own");
            return;
        }
        for test in Test::WORDS {
            let set = [("test", test), ("runtime", "0.01")];
            assert!(refusal(1, &set).contains("`ip link set lo up`"), "{test}");
            let checked = Netperf.check(&params(&set).unwrap(), &trial(1)).unwrap_err().to_string();
            assert!(checked.contains("`ip link set lo up`"), "{test}: {checked}");
        }
    });
}

#[test]
fn m15_too_few_open_files_are_named_before_anything_starts() {
    alone("netperf::tests::m15_too_few_open_files_are_named_before_anything_starts", || {
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) }).unwrap();
        assert!(refusal(100, &[]).contains("RLIMIT_NOFILE is 64"));
    });
}

#[test]
fn m15_a_process_that_cannot_start_ends_the_others() {
    alone("netperf::tests::m15_a_process_that_cannot_start_ends_the_others", || {
        if !limit_tasks(8) {
            return;
        }
        let plan = Plan { clients: 6, ..small(Test::TcpRr, Semantics::Original) };
        let result = leaving_nothing(|| plan.work().unwrap_err());
        assert!(matches!(result, Failure::Spawn { nth: 2..=8, count: 12, .. }), "{result:?}");
    });
}

#[test]
fn a_killed_process_fails_the_trial_and_takes_the_others_with_it() {
    alone("netperf::tests::a_killed_process_fails_the_trial_and_takes_the_others_with_it", || {
        let list = format!("/proc/self/task/{}/children", rustix::thread::gettid());
        for test in [Test::TcpRr, Test::UdpRr, Test::TcpCrr, Test::TcpStream, Test::UdpStream] {
            // Servers come first.
            for victim in [0, 3] {
                let plan = Plan { runtime: Duration::from_secs(600), ..small(test, Semantics::Original) };
                let error = leaving_nothing(|| {
                    std::thread::scope(|scope| {
                        scope.spawn(|| {
                            let children = || fs::read_to_string(&list).unwrap();
                            while children().split_whitespace().count() < 4 {
                                std::thread::yield_now();
                            }
                            let pid = children().split_whitespace().nth(victim).unwrap().parse().unwrap();
                            kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
                        });
                        plan.work().unwrap_err()
                    })
                });
                assert!(matches!(error, Failure::Invariant(_)), "{test:?} {victim}: {error}");
            }
        }
    });
}

#[test]
fn five_hundred_and_twelve_clients_work_at_once() {
    alone("netperf::tests::five_hundred_and_twelve_clients_work_at_once", || {
        let plan = Plan { clients: 512, ..small(Test::TcpRr, Semantics::Original) };
        let (pairs, latencies) = leaving_nothing(|| plan.work().unwrap());
        check(&plan, &pairs).unwrap();
        let done: u64 = pairs.iter().map(|(client, _)| client.done).sum();
        assert_eq!((pairs.len(), latencies.len()), (512, done));
        assert!(pairs.iter().all(|(client, _)| client.done > 0));
    });
}

#[test]
fn an_installed_iperf3_is_run_and_read() {
    if originals::on_path("iperf3").is_none() {
        println!("skipped: iperf3 is not installed");
        return;
    }
    alone("netperf::tests::an_installed_iperf3_is_run_and_read", || {
        for test in ["tcp_stream", "udp_stream"] {
            let set = [
                ("via", "iperf3"),
                ("test", test),
                ("message", "32768"),
                ("receive", "32768"),
                ("runtime", "1"),
            ];
            Netperf.check(&params(&set).unwrap(), &trial(2)).unwrap();
            match leaving_nothing(|| run(2, &set).unwrap()) {
                Outcome::Done { samples, notes, .. } => {
                    assert!(samples["throughput"][0] > 0.0 && samples["sum"][0] > samples["throughput"][0]);
                    assert_eq!(samples.contains_key("lost"), test == "udp_stream");
                    assert!(notes[0].starts_with("measured by iperf 3"), "{notes:?}");
                }
                missing => panic!("{missing:?}"),
            }
        }
    });
}

/// A netserver that listens on the port of its `-p`, and a netperf that prints what the real one prints.
const FAKE_NETSERVER: &str = "#!/usr/bin/env python3\nimport socket, sys, time\n\
    s = socket.create_server(('127.0.0.1', int(sys.argv[sys.argv.index('-p') + 1])))\ntime.sleep(600)\n";
const FAKE_NETPERF: &str = "#!/bin/sh\n[ \"$1\" = -V ] && echo 'Netperf version 2.7.1' && exit\n\
    printf '%s\\n' THROUGHPUT=81234.5 THROUGHPUT_UNITS=Trans/s MIN_LATENCY=9 MEAN_LATENCY=11.95 P50_LATENCY=12 \
    P90_LATENCY=13 P99_LATENCY=20 MAX_LATENCY=900\n";

#[test]
fn netperf_on_path_is_run_for_each_client_beside_one_netserver() {
    if originals::on_path("python3").is_none() {
        println!("skipped: python3, of which the fake netserver is made, is not installed");
        return;
    }
    alone("netperf::tests::netperf_on_path_is_run_for_each_client_beside_one_netserver", || {
        let place = tempfile::tempdir().unwrap();
        let install = |name: &str, script: &str| {
            let path = place.path().join(name);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
        // SAFETY: This process has no other thread.
        unsafe { std::env::set_var("PATH", path) };
        install("netperf", FAKE_NETPERF);
        let set = [("via", "netperf")];
        let missing = refusal(3, &set);
        assert!(missing.contains("netserver is not on PATH"), "{missing}");
        assert_eq!(Netperf.check(&params(&set).unwrap(), &trial(3)).unwrap_err().to_string(), missing);
        install("netserver", FAKE_NETSERVER);
        Netperf.check(&params(&set).unwrap(), &trial(3)).unwrap();
        match leaving_nothing(|| run(3, &set).unwrap()) {
            Outcome::Done { samples, notes, .. } => {
                assert_eq!((samples["throughput"][0], samples["spread"][0]), (81234.5, 0.0));
                assert_eq!((samples["latency-p50"][0], samples["latency-max"][0]), (12.0, 900.0));
                assert_eq!(notes[0], "measured by Netperf version 2.7.1");
            }
            missing => panic!("{missing:?}"),
        }
        install("netserver", "#!/bin/sh\necho unable to start netserver\nexit 1\n");
        let error = leaving_nothing(|| run(1, &set)).unwrap_err().to_string();
        assert!(error.contains("unable to start netserver"), "{error}");
    });
}

/// A client from `start_s` to `stop_s`, with this amount in all and in the window.
fn pair(start_s: u64, stop_s: u64, done: u64, in_window: u64) -> (ClientTally, ServerTally) {
    let (start_ns, stop_ns) = (start_s * 1_000_000_000, stop_s * 1_000_000_000);
    let client =
        ClientTally { start_ns, stop_ns, end_ns: stop_ns, done, in_window, sent: done, ..Default::default() };
    (client, ServerTally { received: done, answered: done, in_window, warm: 0 })
}

#[test]
fn the_sum_is_of_the_common_window_and_the_mean_of_each_clients_own_time() {
    let latencies = Histogram::new();
    let pairs = [pair(10, 20, 1000, 800), pair(12, 22, 2000, 1600)];
    for (test, throughputs, sum) in
        [(Test::TcpRr, [100.0, 200.0], 300.0), (Test::TcpStream, [0.0008, 0.0016], 0.0024)]
    {
        let figures = figures(&small(test, Semantics::Original), &pairs, &latencies).unwrap();
        assert_eq!((figures.throughputs.as_slice(), figures.sum), (throughputs.as_slice(), Some(sum)));
    }
    let apart = [pair(10, 12, 10, 0), pair(12, 14, 10, 0)];
    assert_eq!(figures(&small(Test::TcpRr, Semantics::Original), &apart, &latencies).unwrap().sum, None);
}

#[test]
fn counts_that_differ_fail_the_trial_unless_datagrams_were_lost() {
    let checked = |test, change: fn(&mut ClientTally, &mut ServerTally)| {
        let (mut client, mut server) = pair(0, 1, 100, 90);
        change(&mut client, &mut server);
        check(&small(test, Semantics::Original), &[pair(0, 1, 1, 1), (client, server)])
    };
    for test in [Test::TcpRr, Test::TcpCrr, Test::UdpRr, Test::TcpStream, Test::UdpStream] {
        checked(test, |_, _| {}).unwrap();
        let error = checked(test, |_, server| server.received += 1).unwrap_err().to_string();
        assert!(error.contains("client 1 sent 100") && error.contains("received 101"), "{error}");
    }
    for test in [Test::TcpRr, Test::TcpCrr, Test::UdpRr] {
        checked(test, |_, server| server.answered -= 1).unwrap_err();
        checked(test, |client, _| client.sent += 1).unwrap_err();
    }
    checked(Test::TcpStream, |_, server| server.received -= 1).unwrap_err();
    checked(Test::UdpStream, |_, server| server.received -= 1).unwrap();
    checked(Test::UdpRr, |client, _| (client.sent, client.lost) = (101, 1)).unwrap();
    checked(Test::UdpRr, |client, server| (client.lost, server.answered) = (1, 99)).unwrap_err();
}
