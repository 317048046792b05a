//! iperf3, for the streams.

use super::{Original, whole_seconds};
use crate::netperf::{Figures, Plan, Test};
use crate::{Failure, Trial};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::time::Duration;

/// The most streams that one iperf3 takes.
const MOST_STREAMS: usize = 128;

/// How long the server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs server and client once and returns what they achieved.
///
/// # Errors
/// When iperf3 is not installed, has no counterpart of what `plan` asks for, or prints what cannot be read.
pub fn measure(plan: &Plan, trial: &mut Trial) -> Result<Figures, Failure> {
    let port = plan.free_port()?;
    let arguments = arguments(plan, port)?;
    let iperf3 = Original::IPERF3.find()?;
    let version = iperf3.run(&["--version"])?;
    trial.note(format!("measured by {}", version.lines().next().unwrap_or("iperf3").trim()));
    if plan.clients > 1 {
        trial.note("iperf3 before 3.16 serves all its streams with one thread");
    }
    let (address, port) = (Ipv4Addr::LOCALHOST.to_string(), port.to_string());
    let mut server = iperf3.start(&["-s", "-1", "-B", &address, "-p", &port, "--forceflush"])?;
    server.wait_until("to listen", PATIENCE, |said| said.contains("Server listening"))?;
    let output = iperf3.run(&arguments.iter().map(String::as_str).collect::<Vec<&str>>())?;
    figures(plan, &output)
}

/// The command line of the client.
///
/// # Errors
/// When iperf3 has no counterpart of what `plan` asks for.
pub fn arguments(plan: &Plan, port: u16) -> Result<Vec<String>, Failure> {
    let refused = |why: String| Err(Failure::Refused(format!("{why}, or take via=kduel")));
    if !plan.test.is_stream() {
        return refused(
            "iperf3 has no requests and responses; take test=tcp_stream or test=udp_stream".into(),
        );
    }
    if plan.test == Test::TcpStream && plan.receive != plan.message {
        return refused(format!(
            "iperf3 sends and receives blocks of one size; set message and receive alike, as in message={}",
            plan.receive
        ));
    }
    if plan.clients > MOST_STREAMS {
        return refused(format!("iperf3 has {MOST_STREAMS} streams at the most; take fewer clients"));
    }
    let runtime_s = whole_seconds("iperf3", plan.runtime.as_secs_f64())?;
    let mut arguments: Vec<String> = vec!["-c".into(), Ipv4Addr::LOCALHOST.to_string(), "-J".into()];
    let mut option = |name: &str, value: u64| arguments.extend([name.into(), value.to_string()]);
    option("-p", port.into());
    option("-t", runtime_s);
    option("-l", plan.message as u64);
    option("-P", plan.clients as u64);
    if plan.buffer > 0 {
        option("-w", plan.buffer as u64);
    }
    if !plan.warmup.is_zero() {
        option("-O", plan.warmup.as_secs_f64().ceil() as u64);
    }
    match plan.test {
        // Without -b a sender of datagrams holds itself to 1 Mbit/s.
        Test::UdpStream => arguments.extend(["-u", "-b", "0"].map(String::from)),
        _ if plan.nodelay => arguments.push("-N".into()),
        _ => {}
    }
    Ok(arguments)
}

/// What the client printed as JSON.
fn figures(plan: &Plan, output: &str) -> Result<Figures, Failure> {
    let report: Value = serde_json::from_str(output)
        .map_err(|error| Failure::Refused(format!("what iperf3 printed is no JSON: {error}")))?;
    let number = |of: &Value, path: &str| {
        of.pointer(path).and_then(Value::as_f64).ok_or_else(|| {
            Failure::Refused(format!("iperf3 printed no {path}; this version of it is not known"))
        })
    };
    let empty = Vec::new();
    let streams = report.pointer("/end/streams").and_then(Value::as_array).unwrap_or(&empty);
    if streams.len() != plan.clients {
        return Err(Failure::Invariant(format!(
            "iperf3 reports {} streams, not {}",
            streams.len(),
            plan.clients
        )));
    }
    let mut figures = Figures {
        sum: Some(number(&report, "/end/sum_received/bits_per_second")? / 1e6),
        ..Figures::default()
    };
    for stream in streams {
        let (sent, arrived) = match plan.test {
            Test::UdpStream => {
                let part = 1.0 - number(stream, "/udp/lost_packets")? / number(stream, "/udp/packets")?;
                let sent = number(stream, "/udp/bits_per_second")?;
                (sent, sent * part)
            }
            _ => (number(stream, "/sender/bits_per_second")?, number(stream, "/receiver/bits_per_second")?),
        };
        figures.sent.push(sent / 1e6);
        figures.throughputs.push(arrived / 1e6);
    }
    if plan.test == Test::UdpStream {
        figures.lost_pct = Some(number(&report, "/end/sum/lost_percent")?);
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netperf::plan_of;

    fn tcp(more: &[(&str, &str)]) -> Plan {
        let set = [("test", "tcp_stream"), ("message", "131072"), ("runtime", "3")];
        plan_of(2, &[&set, more].concat()).unwrap()
    }

    #[test]
    fn the_command_line_says_what_the_parameters_say() {
        let line = |plan: &Plan| arguments(plan, 5999).unwrap().join(" ");
        assert_eq!(line(&tcp(&[])), "-c 127.0.0.1 -J -p 5999 -t 3 -l 131072 -P 2");
        let more = [("buffer", "65536"), ("nodelay", "on"), ("warmup", "1.5")];
        assert_eq!(line(&tcp(&more)), "-c 127.0.0.1 -J -p 5999 -t 3 -l 131072 -P 2 -w 65536 -O 2 -N");
        let udp = plan_of(1, &[("test", "udp_stream"), ("message", "1472"), ("runtime", "3")]).unwrap();
        assert_eq!(line(&udp), "-c 127.0.0.1 -J -p 5999 -t 3 -l 1472 -P 1 -u -b 0");
    }

    #[test]
    fn what_has_no_counterpart_is_refused() {
        let refused = |plan: &Plan| arguments(plan, 1).unwrap_err().to_string();
        assert!(refused(&plan_of(1, &[]).unwrap()).contains("no requests and responses"));
        assert!(refused(&tcp(&[("receive", "4096")])).contains("message and receive alike"));
        assert!(refused(&tcp(&[("runtime", "0.5")])).contains("whole seconds"));
        assert!(refused(&Plan { clients: 129, ..tcp(&[]) }).contains("128 streams"));
    }

    #[test]
    fn both_kinds_of_report_are_read() {
        let report = r#"{"end": {"streams": [
            {"sender": {"bits_per_second": 9.5e9}, "receiver": {"bits_per_second": 9.4e9}},
            {"sender": {"bits_per_second": 9.2e9}, "receiver": {"bits_per_second": 9.1e9}}],
            "sum_received": {"bits_per_second": 18.5e9}}}"#;
        let read = figures(&tcp(&[]), report).unwrap();
        assert_eq!(
            (read.throughputs, read.sent, read.sum),
            (vec![9400.0, 9100.0], vec![9500.0, 9200.0], Some(18500.0))
        );
        let report = r#"{"end": {"streams": [{"udp": {"bits_per_second": 2e9, "packets": 200, "lost_packets": 50}}],
            "sum": {"lost_percent": 25}, "sum_received": {"bits_per_second": 1.5e9}}}"#;
        let udp = plan_of(1, &[("test", "udp_stream")]).unwrap();
        let read = figures(&udp, report).unwrap();
        assert_eq!((read.throughputs, read.sent, read.lost_pct), (vec![1500.0], vec![2000.0], Some(25.0)));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let error = |output: &str| figures(&tcp(&[]), output).unwrap_err().to_string();
        assert!(error("iperf 3.12").contains("no JSON"));
        assert!(error("{}").contains("0 streams, not 2"));
        assert!(error(r#"{"end": {"streams": [1, 2]}}"#).contains("/end/sum_received"));
    }
}
