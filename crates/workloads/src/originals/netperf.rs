//! netperf with netserver.

use super::{Original, Program, decimal, unread, whole_seconds};
use crate::crew;
use crate::netperf::{Figures, Plan, Test};
use crate::{Failure, Trial};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// How long netserver may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked of netperf, and the metric that it becomes; by transactions.
const LATENCIES: [(&str, &str); 6] = [
    ("MIN_LATENCY", "latency-min"),
    ("MEAN_LATENCY", "latency-mean"),
    ("P50_LATENCY", "latency-p50"),
    ("P90_LATENCY", "latency-p90"),
    ("P99_LATENCY", "latency-p99"),
    ("MAX_LATENCY", "latency-max"),
];

/// Runs netserver and as many netperf as there are clients at once, and returns what they achieved.
///
/// # Errors
/// When they are not installed, have no counterpart of what `plan` asks for, or print what cannot be read.
pub fn measure(plan: &Plan, trial: &mut Trial) -> Result<Figures, Failure> {
    let (netperf, netserver) = find()?;
    let port = plan.free_port()?;
    if let Ok(version) = netperf.run(&["-V"]) {
        trial.note(format!("measured by {}", version.trim()));
    }
    trial.note("percentiles of netperf's latencies are means over its clients");
    let (address, listening) = (Ipv4Addr::LOCALHOST.to_string(), port.to_string());
    let mut server = netserver.start(&["-D", "-4", "-L", &address, "-p", &listening])?;
    server.wait_until("to listen", PATIENCE, |_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())?;
    if !plan.warmup.is_zero() {
        let runtime = Duration::from_secs_f64(plan.warmup.as_secs_f64().ceil());
        run(&netperf, &Plan { runtime, ..plan.clone() }, port)?;
    }
    figures(plan, &run(&netperf, plan, port)?)
}

/// Both programs.
///
/// # Errors
/// When one is not on PATH.
pub fn find() -> Result<(Program, Program), Failure> {
    Ok((Original::NETPERF.find()?, Program::find("netserver", Original::NETPERF.package)?))
}

/// What each client printed. They are started at once.
fn run(netperf: &Program, plan: &Plan, port: u16) -> Result<Vec<String>, Failure> {
    let arguments = arguments(plan, port)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = |_, gate: &crew::Gate| match gate.wait() {
        true => netperf.run(&arguments),
        false => Ok(String::new()),
    };
    let ((), outputs) = crew::run(plan.clients, client, |gate| gate.open())?;
    outputs.into_iter().collect()
}

/// The command line of a client.
///
/// # Errors
/// When netperf has no counterpart of what `plan` asks for.
pub fn arguments(plan: &Plan, port: u16) -> Result<Vec<String>, Failure> {
    let Plan { request, response, message, receive, buffer, .. } = plan;
    let runtime_s = whole_seconds("netperf", plan.runtime.as_secs_f64())?;
    let name = match plan.test {
        Test::TcpRr => "TCP_RR",
        Test::UdpRr => "UDP_RR",
        Test::TcpCrr => "TCP_CRR",
        Test::TcpStream => "TCP_STREAM",
        Test::UdpStream => "UDP_STREAM",
    };
    let mut line = format!("-4 -H {} -p {port} -t {name} -l {runtime_s} -P 0", Ipv4Addr::LOCALHOST);
    line += match plan.test.is_stream() {
        true => " -f m --",
        false => " --",
    };
    line += &match plan.test {
        Test::TcpRr | Test::UdpRr | Test::TcpCrr => format!(" -r {request},{response}"),
        Test::TcpStream => format!(" -m {message} -M {receive}"),
        Test::UdpStream => format!(" -m {message} -M {message}"),
    };
    if *buffer > 0 {
        line += &format!(" -s {buffer} -S {buffer}");
    }
    if plan.nodelay && !plan.test.is_udp() {
        line += " -D";
    }
    let latencies = LATENCIES.map(|(key, _)| key).join(",");
    let more = if plan.test.is_stream() { "LOCAL_SEND_THROUGHPUT" } else { latencies.as_str() };
    line += &format!(" -k THROUGHPUT,THROUGHPUT_UNITS,{more}");
    Ok(line.split(' ').map(String::from).collect())
}

/// What the clients printed: a line `KEY=value` for each key that was asked for.
fn figures(plan: &Plan, outputs: &[String]) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    let mut latencies = LATENCIES.map(|(_, metric)| (metric, Vec::new()));
    for output in outputs {
        let text = |key: &str| {
            let lines = output.lines().filter_map(|line| line.split_once('='));
            let value = lines.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim()).next();
            value.ok_or_else(|| unread("netperf", key, output))
        };
        let number = |key: &str| {
            let value = text(key)?;
            decimal(value)
                .ok_or_else(|| Failure::Refused(format!("netperf printed {key}={value}, which is no number")))
        };
        let units = text("THROUGHPUT_UNITS")?;
        let wanted = if plan.test.is_stream() { "10^6bits/s" } else { "Trans/s" };
        if units != wanted {
            return Err(Failure::Refused(format!("netperf printed its throughput in {units}, not {wanted}")));
        }
        figures.throughputs.push(number("THROUGHPUT")?);
        if plan.test.is_stream() {
            figures.sent.push(number("LOCAL_SEND_THROUGHPUT")?);
        } else {
            for ((key, _), (_, values)) in LATENCIES.iter().zip(&mut latencies) {
                values.push(number(key)?);
            }
        }
    }
    let total = |values: &[f64]| values.iter().sum::<f64>();
    let (arrived, sent) = (total(&figures.throughputs), total(&figures.sent));
    if plan.test == Test::UdpStream && sent > 0.0 {
        figures.lost_pct = Some((1.0 - arrived / sent).max(0.0) * 100.0);
    }
    for (metric, values) in latencies {
        let value = match metric {
            "latency-min" => values.iter().copied().reduce(f64::min),
            "latency-max" => values.iter().copied().reduce(f64::max),
            _ => stats::mean(&values).ok(),
        };
        figures.latencies.extend(value.map(|value| (metric, value)));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netperf::plan_of;

    #[test]
    fn the_command_line_says_what_the_parameters_say() {
        let line = |set: &[(&str, &str)]| arguments(&plan_of(1, set).unwrap(), 12865).unwrap().join(" ");
        let latencies = "MIN_LATENCY,MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY";
        let begin = "-4 -H 127.0.0.1 -p 12865 -t";
        assert_eq!(
            line(&[]),
            format!("{begin} TCP_RR -l 10 -P 0 -- -r 100,100 -k THROUGHPUT,THROUGHPUT_UNITS,{latencies}")
        );
        assert_eq!(
            line(&[("test", "tcp_stream"), ("buffer", "65536"), ("nodelay", "on")]),
            format!(
                "{begin} TCP_STREAM -l 10 -P 0 -f m -- -m 16384 -M 131072 -s 65536 -S 65536 -D -k \
                 THROUGHPUT,THROUGHPUT_UNITS,LOCAL_SEND_THROUGHPUT"
            )
        );
        let parts = plan_of(1, &[("runtime", "2.5")]).unwrap();
        assert!(arguments(&parts, 1).unwrap_err().to_string().contains("whole seconds"));
    }

    fn printed(throughput: f64, latency: f64) -> String {
        let latencies: Vec<String> = LATENCIES.iter().map(|(key, _)| format!("{key}={latency}\n")).collect();
        format!("THROUGHPUT={throughput}\nTHROUGHPUT_UNITS=Trans/s\n{}", latencies.concat())
    }

    #[test]
    fn clients_are_put_together() {
        let plan = plan_of(2, &[]).unwrap();
        let read = figures(&plan, &[printed(100.0, 20.0), printed(300.0, 40.0)]).unwrap();
        assert_eq!((read.throughputs, read.sum), (vec![100.0, 300.0], None));
        let of = |metric: &str| read.latencies.iter().find(|(name, _)| *name == metric).unwrap().1;
        assert_eq!(["latency-min", "latency-p99", "latency-max"].map(of), [20.0, 30.0, 40.0]);
        let udp = plan_of(1, &[("test", "udp_stream")]).unwrap();
        let output = "THROUGHPUT=75\nTHROUGHPUT_UNITS=10^6bits/s\nLOCAL_SEND_THROUGHPUT=100\n";
        let read = figures(&udp, &[output.into()]).unwrap();
        assert_eq!((read.throughputs, read.sent, read.lost_pct), (vec![75.0], vec![100.0], Some(25.0)));
    }

    #[test]
    fn what_cannot_be_read_is_quoted() {
        let plan = plan_of(1, &[]).unwrap();
        let error = |output: &str| figures(&plan, &[output.into()]).unwrap_err().to_string();
        assert!(error("catcher: timer popped\n").contains("catcher: timer popped"));
        assert!(error("THROUGHPUT=1\nTHROUGHPUT_UNITS=10^6bits/s").contains("in 10^6bits/s, not Trans/s"));
        assert!(error("THROUGHPUT=-nan\nTHROUGHPUT_UNITS=Trans/s").contains("THROUGHPUT=-nan"));
    }
}
