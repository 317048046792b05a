//! tbench and tbench_srv of dbench.

use super::running::Running;
use super::{Original, Program, decimal, unread};
use crate::shared::warmup;
use crate::tbench::{Operation, loadfile};
use crate::{Failure, Trial};
use experiment::Params;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The only port that tbench_srv listens on and tbench connects to.
const PORT: u16 = 7003;

/// How long the port may take to become free and the server to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the originals are there and can do what `params` ask for, and nobody has the port.
pub fn check(params: &Params) -> Result<(), Failure> {
    Programs::new(params)?;
    wait_for_port(PORT, PATIENCE)
}

/// Starts the server, lets the original's clients replay `load` for the time of `params` and leaves what they print.
pub fn run(params: &Params, load: &[Operation], trial: &mut Trial) -> Result<(), Failure> {
    let programs = Programs::new(params)?;
    let clients = trial.count()?;
    let (path, _text) = match params.text("loadfile")? {
        "" => {
            let (path, text) = in_memory(load)?;
            (path, Some(text))
        }
        path => (path.to_string(), None),
    };
    let mut server = programs.start_server()?;
    let (time_s, clients) = (programs.time_s.to_string(), clients.to_string());
    let output = programs.client.run(&["-c", &path, "-t", &time_s, &clients, "127.0.0.1"])?;
    server.check()?;
    drop(server);
    let printed = Printed::read(&output)?;
    trial.note(format!("measured by {}", output.lines().next().unwrap_or("tbench").trim()));
    trial.note("the original stops reading its clock one second before the end of `runtime`");
    trial.sample("throughput", printed.throughput)?;
    trial.sample("rate", printed.operations as f64 / programs.time_s as f64)?;
    trial.sample("latency", printed.mean_latency_us)?;
    trial.sample("max-latency", printed.max_latency_us)
}

/// The originals, and the time that they are to take.
struct Programs {
    client: Program,
    server: Program,
    time_s: u64,
}

impl Programs {
    fn new(params: &Params) -> Result<Programs, Failure> {
        let refused = |why: String| Err(Failure::Refused(why));
        let port = params.count("port")?;
        if port != 0 && port != u64::from(PORT) {
            return refused(format!(
                "tbench knows no port but {PORT}; leave out port={port}, or take via=kduel"
            ));
        }
        let runtime = params.decimal("runtime")?;
        if runtime.fract() != 0.0 || runtime < 2.0 {
            return refused(format!(
                "tbench takes whole seconds, from 2; set runtime to such a number instead of {runtime}"
            ));
        }
        let time_s = runtime as u64;
        let own_warmup = Duration::from_secs(time_s / 5);
        if warmup(params)? > own_warmup {
            return refused(format!(
                "tbench warms up for a fifth of `runtime`, here {} s; set warmup to no more, or raise runtime",
                own_warmup.as_secs()
            ));
        }
        Ok(Programs { client: Original::TBENCH.find()?, server: Original::TBENCH_SRV.find()?, time_s })
    }

    fn start_server(&self) -> Result<Running, Failure> {
        wait_for_port(PORT, PATIENCE)?;
        let mut server = self.server.start(&[])?;
        server.wait_until(&format!("to listen on port {PORT}"), PATIENCE, |_| {
            TcpStream::connect((Ipv4Addr::LOCALHOST, PORT)).is_ok()
        })?;
        Ok(server)
    }
}

/// Waits until nobody has `port`: processes of a server that was just killed can have it for a moment.
fn wait_for_port(port: u16, patience: Duration) -> Result<(), Failure> {
    let start = Instant::now();
    // The original takes the port of every address.
    while let Err(error) = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)) {
        if start.elapsed() > patience {
            return Err(Failure::Refused(format!(
                "tbench_srv needs port {port}, which cannot be had: {error}; end what listens there \
                 (`ss -ltnp sport = :{port}` shows it), or take via=kduel, which takes any port"
            )));
        }
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The load as text in a file in memory, with the path by which other processes can open it.
fn in_memory(load: &[Operation]) -> Result<(String, File), Failure> {
    let file = || -> io::Result<File> {
        let mut file = File::from(memfd_create("load", MemfdFlags::CLOEXEC)?);
        file.write_all(loadfile::write(load).as_bytes())?;
        Ok(file)
    };
    let file =
        file().map_err(|error| Failure::Refused(format!("no memory for a loadfile of the load: {error}")))?;
    Ok((format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()), file))
}

/// What tbench printed at its end.
#[derive(Debug, PartialEq)]
struct Printed {
    throughput: f64,
    max_latency_us: f64,
    operations: u64,
    mean_latency_us: f64,
}

impl Printed {
    fn read(output: &str) -> Result<Printed, Failure> {
        let unreadable = |what: &str| unread("tbench", what, output);
        let total = |line: &str| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let ["Throughput", throughput, "MB/sec", .., max_latency, "ms"] = words.as_slice() else {
                return None;
            };
            Some((decimal(throughput)?, decimal(max_latency.strip_prefix("max_latency=")?)? * 1e3))
        };
        let (throughput, max_latency_us) =
            output.lines().rev().find_map(total).ok_or_else(|| unreadable("throughput"))?;
        // It prints 0 where it ended before it had looked for the first time.
        if throughput <= 0.0 {
            return Err(unreadable("throughput above 0"));
        }
        let (mut operations, mut total_ms) = (0, 0.0);
        for (count, mean_ms) in output.lines().filter_map(row) {
            operations += count;
            total_ms += count as f64 * mean_ms;
        }
        if operations == 0 {
            return Err(unreadable("table of operations"));
        }
        Ok(Printed {
            throughput,
            max_latency_us,
            operations,
            mean_latency_us: total_ms / operations as f64 * 1e3,
        })
    }
}

/// A row of the table of operations: how many, and their mean latency in ms. It has a name before and a maximum behind.
fn row(line: &str) -> Option<(u64, f64)> {
    match line.split_ascii_whitespace().collect::<Vec<&str>>().as_slice() {
        [_name, count, mean, max] if decimal(max).is_some() => Some((count.parse().ok()?, decimal(mean)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "dbench version 4.00 - Copyright Andrew Tridgell 1999-2004\n\n\
        Running for 10 seconds with load 'client.txt' and minimum warmup 2 secs\n\
        1 of 2 processes prepared for launch   0 sec\nreleasing clients\n\
        \x20  2     32758   388.17 MB/sec  warmup   1 sec  latency 3.943 ms\n\
        \x20  2    697368   746.24 MB/sec  execute   9 sec  latency 0.110 ms\n\
        \x20  0  cleanup  10 sec\n\n Operation      Count    AvgLat    MaxLat\n\
        \x20----------------------------------------\n NTCreateX       3000     0.012     8.084\n\
        \x20ReadX           1000     0.016     2.141\n\n\
        Throughput 746.244 MB/sec  2 clients  2 procs  max_latency=8.094 ms\n";

    #[test]
    fn the_throughput_and_the_table_are_read() {
        let printed = Printed::read(OUTPUT).unwrap();
        assert_eq!((printed.throughput, printed.operations), (746.244, 4_000));
        assert!((printed.max_latency_us - 8_094.0).abs() < 1e-6, "{printed:?}");
        assert!((printed.mean_latency_us - 13.0).abs() < 1e-6, "{printed:?}");
    }

    #[test]
    fn a_port_in_use_is_an_error_that_says_so() {
        let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = holder.local_addr().unwrap().port();
        let error = wait_for_port(port, Duration::from_millis(20)).unwrap_err().to_string();
        assert!(
            error.contains(&format!("needs port {port}, which cannot be had: Address already in use")),
            "{error}"
        );
        drop(holder);
        wait_for_port(port, Duration::from_secs(5)).unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_no_figure() {
        let without_table = "Throughput 746.244 MB/sec  2 clients  2 procs  max_latency=8.094 ms\n";
        let nothing_measured = OUTPUT.replace("Throughput 746.244", "Throughput 0");
        for output in [without_table, &nothing_measured, "connect: Connection refused\n", ""] {
            assert!(matches!(Printed::read(output), Err(Failure::Refused(_))), "{output}");
        }
    }
}
