//! netperf: clients and servers that exchange requests and responses, or send bytes one way, over the loopback interface.

mod client;
mod figures;
mod latencies;
mod plan;
mod server;
mod steps;
mod tally;
mod tick;
mod window;
mod wire;

use crate::shared::{Semantics, memory_for, room_for, with_shared};
use crate::shared_memory::{Shared, SharedValue};
use crate::{Failure, Original, Trial, Workload, originals, process_crew};
use client::Client;
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point, counted};
pub use figures::Figures;
use latencies::Latencies;
pub use plan::{Plan, Test};
use server::Server;
use stats::Histogram;
use std::collections::BTreeMap;
use tally::{ClientTally, Place, ServerTally};
use window::Window;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct Netperf;

impl Workload for Netperf {
    fn describe(&self) -> Description {
        self.describe_for(&BTreeMap::new())
    }

    fn describe_for(&self, set: &BTreeMap<String, String>) -> Description {
        let test = Test::of(set.get("test").map(String::as_str).unwrap_or_default());
        Description {
            name: "netperf".into(),
            summary: "rate at which clients do transactions with their servers, or send to them, over the loopback \
                      interface"
                .into(),
            about: "Every client is a process, and has a server process to itself. All start behind one gate, each \
                    client with its connection made. For `runtime` seconds it does one of five things, by `test`:\n\n\
                    tcp_rr sends a request of `request` bytes and waits for the response of `response` bytes, again \
                    and again over one connection. udp_rr does the same with datagrams. tcp_crr makes a connection \
                    for each request. tcp_stream sends messages of `message` bytes over one connection, and the \
                    server receives up to `receive` bytes at a time. udp_stream sends datagrams of `message` bytes.\n\n\
                    Transactions are counted by the clients and bytes by the servers, and both must agree. With \
                    original semantics a client whose datagram is lost in udp_rr waits for the rest of the run. With \
                    strict semantics datagrams are numbered, and one that goes unanswered for 0.2 to 0.4 s is sent \
                    again. The number of losses is a counter in both."
                .into(),
            source: "netperf 2.7 with -r 100,100, as the proxy-execution report runs it; its own default is -r 1,1. \
                     Clients start together and not one after the other."
                .into(),
            axis: Axis {
                name: "clients".into(),
                heading: "Clients".into(),
                suffix: "-clients".into(),
                points: [1, 2, 4, 8].map(Point::from).to_vec(),
                range: Some((1, 10_000)),
            },
            parameters: with_shared(own_parameters(), self.originals()),
            metrics: metrics(test),
            requirements: vec![
                "two processes and an open file per client".into(),
                "the loopback interface".into(),
                "netperf and netserver, or iperf3, for `via`".into(),
            ],
        }
    }

    fn originals(&self) -> &'static [Original] {
        &[Original::NETPERF, Original::IPERF3]
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        originals::check(params, self.originals())?;
        let plan = Plan::new(params, trial)?;
        match originals::wanted(params, self.originals())? {
            Some(Original::IPERF3) => originals::iperf3::arguments(&plan, plan.free_port()?).map(drop),
            Some(_) => {
                originals::netperf::find()?;
                originals::netperf::arguments(&plan, plan.free_port()?).map(drop)
            }
            None => {
                plan.make_room()?;
                // What it opens it closes again.
                wire::endpoints(&plan).map(drop)
            }
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        match originals::wanted(params, self.originals())? {
            Some(Original::IPERF3) => originals::iperf3::measure(&plan, trial)?.leave(trial),
            Some(_) => originals::netperf::measure(&plan, trial)?.leave(trial),
            None => plan.run(trial),
        }
    }
}

fn own_parameters() -> Vec<Parameter> {
    let most = i64::from(u32::MAX >> 2);
    vec![
        Parameter::choice("test", &Test::WORDS, "what a client and its server do together"),
        Parameter::decimal("runtime", 10.0, 0.001, 86_400.0, "seconds for which each client works"),
        Parameter::integer("request", 100, 1, most, "bytes of a request"),
        Parameter::integer("response", 100, 1, most, "bytes of a response"),
        Parameter::integer(
            "message",
            16_384,
            1,
            most,
            "bytes that the sender of a stream hands over at once",
        ),
        Parameter::integer(
            "receive",
            131_072,
            1,
            most,
            "bytes that the receiver of tcp_stream asks for at once",
        ),
        Parameter::integer("buffer", 0, 0, most, "bytes of each socket buffer; 0 leaves them to the kernel"),
        Parameter::flag("nodelay", false, "send small TCP segments at once (TCP_NODELAY)"),
        Parameter::integer(
            "port",
            0,
            0,
            65_535,
            "port of the first server, the next has the next; 0 leaves them to the kernel",
        ),
    ]
}

fn metrics(test: Test) -> Vec<Metric> {
    let (unit, units_line) = match test.is_stream() {
        true => ("10^6bits/s", "Throughput, 10^6bits/s"),
        false => ("Trans/s", "Throughput"),
    };
    let higher = |name: &str, unit: &str, units_line: &str, help: &str| {
        Metric::new(name, unit, Direction::Higher, units_line, help)
    };
    let lower = |name: &str, unit: &str, units_line: &str, help: &str| {
        Metric::new(name, unit, Direction::Lower, units_line, help).secondary()
    };
    let throughput = higher(
        "throughput",
        unit,
        units_line,
        "of one client, as a mean over the clients; bytes are the receiver's",
    );
    let mut metrics = vec![
        // The block of the usual test has the name that it has in mails.
        match test {
            Test::TcpRr => throughput,
            _ => throughput.titled(&format!("netperf-{}", test.word())),
        },
        higher(
            "sum",
            unit,
            "Throughput of all clients",
            "of all clients in the window in which all were at work",
        )
        .secondary(),
        lower(
            "spread",
            "%",
            "spread of the clients in %",
            "standard deviation of the clients over their mean",
        ),
    ];
    let latency = |name: &str, help: &str| lower(name, "us", "latency in us", help);
    if test.is_stream() {
        metrics.push(
            higher(
                "sent",
                unit,
                "Throughput of the sender, 10^6bits/s",
                "of one client, as the sender counts it",
            )
            .secondary(),
        );
    } else {
        metrics.extend([
            latency("latency-min", "of the fastest transaction of any client"),
            latency("latency-mean", "of a transaction"),
            latency("latency-p50", "that half of all transactions did not exceed"),
            latency("latency-p90", "that 90 % of all transactions did not exceed"),
            latency("latency-p99", "that 99 % of all transactions did not exceed"),
            latency("latency-max", "of the slowest transaction of any client"),
        ]);
    }
    if test == Test::UdpStream {
        metrics.push(lower("lost", "%", "datagrams lost in %", "part of the datagrams that did not arrive"));
    }
    metrics
}

impl Plan {
    /// Makes sure that the processes, their files and their messages fit into every limit.
    fn make_room(&self) -> Result<(), Failure> {
        let clients = self.clients as u64;
        room_for(0, 2 * clients, clients + 8)?;
        let bytes = match self.test {
            Test::TcpRr | Test::UdpRr | Test::TcpCrr => 2 * (self.request + self.response),
            Test::TcpStream => self.message + self.receive,
            Test::UdpStream => 2 * self.message,
        };
        memory_for(clients * bytes as u64, "the messages of all clients", "shorter ones or fewer clients")
    }

    /// Does the work and leaves its samples in `trial`.
    fn run(&self, trial: &mut Trial) -> Result<(), Failure> {
        self.make_room()?;
        let (pairs, latencies) = self.work()?;
        figures::check(self, &pairs)?;
        let figures = figures::figures(self, &pairs, &latencies)?;
        if figures.sum.is_none() {
            trial.note("the first client had stopped before the last one started, so there is no `sum`; raise runtime");
        }
        figures.leave(trial)?;
        if !self.test.is_stream() {
            trial.histogram("latency", &latencies)?;
        }
        self.tell_losses(&pairs, trial);
        Ok(())
    }

    /// Lets clients and servers work, and returns what each pair did and how long all transactions took.
    fn work(&self) -> Result<(Vec<(ClientTally, ServerTally)>, Histogram), Failure> {
        let memory = |error| Failure::Refused(format!("no memory to share with the processes: {error}"));
        let places = Shared::<Place>::new(self.clients).map_err(memory)?;
        let window = SharedValue::new(Window::default).map_err(memory)?;
        let latencies = Latencies::new()?;
        let endpoints = wire::endpoints(self)?;
        process_crew::run(
            2 * self.clients,
            |index, gate| {
                let own = index % self.clients;
                let (Some(place), Some(endpoint)) = (places.get(own), endpoints.get(own)) else {
                    return Err(Failure::Invariant(format!("there is no place for process {index}")));
                };
                match index < self.clients {
                    true => Server { plan: self, endpoint, window: &window, place }.run(gate),
                    false => {
                        let (server, latencies) = (endpoint.address, &latencies);
                        Client { plan: self, server, window: &window, place, latencies, index: own }.run(gate)
                    }
                }
            },
            |gate| {
                gate.open();
                Ok(())
            },
        )?;
        Ok((
            places.iter().map(|place| (place.client(), place.server())).collect(),
            latencies.merged(self.clients)?,
        ))
    }

    /// Says how many datagrams were lost, and what that did to the figures.
    fn tell_losses(&self, pairs: &[(ClientTally, ServerTally)], trial: &mut Trial) {
        if !self.test.is_udp() {
            return;
        }
        let total = |part: fn(&ClientTally) -> u64| pairs.iter().map(|(client, _)| part(client)).sum::<u64>();
        let lost = total(|client| client.lost);
        if self.test == Test::UdpRr {
            trial.counter("lost datagrams", lost as f64);
            trial.counter("late answers", total(|client| client.stale) as f64);
        }
        trial.counter("datagrams refused by the kernel", total(|client| client.refused) as f64);
        if lost > 0 && self.semantics == Semantics::Original {
            trial.note(format!(
                "{} lost a datagram and waited for the rest of the run, as netperf does; semantics=strict sends it \
                 again",
                counted(lost, "client")
            ));
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub use tests::plan_of;
