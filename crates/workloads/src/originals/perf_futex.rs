//! `perf bench futex`.

use super::{Program, decimal, perf, unread, whole_seconds};
use crate::shared::{warm_up, warmup};
use crate::{Failure, Trial};
use experiment::Params;
use machine::{Root, cpus};
use regex::Regex;

/// Runs one of the subcommands that repeat themselves and take a latency: `wake`, `wake-parallel`, `requeue`.
/// `own` are its parameters besides those that all have; 0 stands for its own default.
///
/// # Errors
/// When perf is not there or not fit, and when what it prints is no result.
pub fn repeated(subcommand: &str, own: &[&str], params: &Params, trial: &mut Trial) -> Result<(), Failure> {
    let perf = fit_perf(trial)?;
    let repeats = params.count("repeat")?;
    let arguments = |repeats: u64| -> Result<Vec<String>, Failure> {
        let mut arguments =
            vec!["bench".into(), format!("--repeat={repeats}"), "futex".into(), subcommand.into()];
        arguments.extend(options(own, params, trial)?);
        Ok(arguments)
    };
    let once = arguments(1)?;
    warm_up(params, || run(&perf, &once).map(drop))?;
    let output = run(&perf, &arguments(repeats)?)?;
    let latencies_ms = latencies_ms(&output)?;
    if latencies_ms.len() as u64 != repeats {
        return Err(unread("perf", &format!("{} of {repeats} runs", latencies_ms.len()), &output));
    }
    for latency_ms in latencies_ms {
        trial.sample("latency", latency_ms)?;
    }
    Ok(())
}

/// Runs one of the subcommands that work for a time and count: `hash`, `lock-pi`.
///
/// # Errors
/// When perf is not there or not fit, and when what it prints is no result.
pub fn timed(subcommand: &str, own: &[&str], params: &Params, trial: &mut Trial) -> Result<(), Failure> {
    let perf = fit_perf(trial)?;
    let runtime_s = whole_seconds("perf", params.decimal("runtime")?)?;
    let arguments = |runtime_s: u64| -> Result<Vec<String>, Failure> {
        let mut arguments: Vec<String> = ["bench", "futex", subcommand].map(String::from).to_vec();
        arguments.push(format!("--runtime={runtime_s}"));
        arguments.extend(options(own, params, trial)?);
        Ok(arguments)
    };
    let warmup_s = warmup(params)?.as_secs_f64();
    if warmup_s > 0.0 {
        run(&perf, &arguments(warmup_s.ceil() as u64)?)?;
    }
    let output = run(&perf, &arguments(runtime_s)?)?;
    trial.sample("rate", rate(&output)?)
}

/// perf pins its threads to all CPUs that are switched on, whatever it was started on.
fn fit_perf(trial: &mut Trial) -> Result<Program, Failure> {
    let online = cpus::online(&Root::real()).map_err(|error| Failure::Refused(error.to_string()))?;
    if online.to_vec() != trial.cpus() {
        return Err(Failure::Refused(
            "perf pins its threads to all CPUs, and this trial may not use all; leave out `cpus`, or take \
             via=kduel"
                .into(),
        ));
    }
    perf(trial)
}

fn run(perf: &Program, arguments: &[String]) -> Result<String, Failure> {
    perf.run(&arguments.iter().map(String::as_str).collect::<Vec<&str>>())
}

/// The options of `own` parameters and of those that all subcommands have.
fn options(own: &[&str], params: &Params, trial: &Trial) -> Result<Vec<String>, Failure> {
    let mut options = vec![format!("--threads={}", trial.count()?)];
    for name in own.iter().copied().chain(["shared", "mlockall"]) {
        match params.text(name)? {
            "off" | "0" => {}
            "on" => options.push(format!("--{name}")),
            value => options.push(format!("--{name}={value}")),
        }
    }
    if params.integer("buckets")? >= 0 {
        options.push(format!("--buckets={}", params.integer("buckets")?));
    }
    Ok(options)
}

/// The latency of each run, from lines such as `[Run 1]: Wokeup 4 of 4 threads in 0.2930 ms`.
fn latencies_ms(output: &str) -> Result<Vec<f64>, Failure> {
    let run = pattern(r"^\[Run \d+\]: (.*) in ([0-9.,]+) ms")?;
    let all = pattern(r"(?:Wokeup|Requeued) (\d+) of (\d+) threads")?;
    let mut latencies_ms = Vec::new();
    for line in output.lines() {
        if line.contains("couldn't wake") {
            return Err(Failure::Invariant(format!("perf said: {line}")));
        }
        let Some(found) = run.captures(line) else { continue };
        if let Some(threads) = all.captures(&found[1])
            && threads[1] != threads[2]
        {
            return Err(Failure::Invariant(format!("perf said: {line}")));
        }
        latencies_ms.push(decimal(&found[2]).ok_or_else(|| unread("perf", "the latency", line))?);
    }
    Ok(latencies_ms)
}

/// The mean rate per thread, from a line such as `Averaged 4397056 operations/sec (+- 0.21%), total secs = 1`.
fn rate(output: &str) -> Result<f64, Failure> {
    // A whole number, whose digits some locales group.
    let averaged = pattern(r"^Averaged ([0-9]+|[0-9]{1,3}(?:[,.][0-9]{3})+) operations/sec")?;
    let found = output.lines().find_map(|line| averaged.captures(line));
    let digits = found.map(|found| found[1].replace([',', '.'], ""));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| unread("perf", "the average", output))
}

fn pattern(text: &str) -> Result<Regex, Failure> {
    Regex::new(text).map_err(|error| Failure::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_a_sample() {
        let wake = "# Running 'futex/wake' benchmark:\nRun summary [PID 8599]: blocking on 4 threads (at \
                    [private] futex 0x5556d1eb2b58), waking up 1 at a time.\n\n\
                    [Run 1]: Wokeup 4 of 4 threads in 0.2930 ms\n[Run 2]: Wokeup 4 of 4 threads in 0.1460 \
                    ms\nWokeup 4 of 4 threads in 0.1476 ms (+-11.27%)\n";
        assert_eq!(latencies_ms(wake).unwrap(), [0.2930, 0.1460]);
        let parallel = "[Run 1]: Avg per-thread latency (waking 2/4 threads) in 0.0045 ms (+-11.11%)\n\
                        Avg per-thread latency (waking 2/4 threads) in 0.0210 ms (+-25.39%)\n";
        assert_eq!(latencies_ms(parallel).unwrap(), [0.0045]);
        let requeue = "[Run 1]: Requeued 4 of 4 threads in 0.0410 ms\n\
                       [Run 2]: Awoke and Requeued (2+2) of 4 threads in 0.1330 ms\n";
        assert_eq!(latencies_ms(requeue).unwrap(), [0.0410, 0.1330]);
    }

    #[test]
    fn a_run_that_lost_a_thread_is_no_result() {
        let lost = "[Run 1]: Wokeup 3 of 4 threads in 0.2930 ms\n";
        assert!(matches!(latencies_ms(lost), Err(Failure::Invariant(_))));
        let late = "perf: couldn't wakeup all tasks (1/2)\n";
        assert!(matches!(latencies_ms(late), Err(Failure::Invariant(_))));
    }

    #[test]
    fn a_rate_is_read_with_and_without_separators() {
        let hash = "[thread  0] futexes: 0x55632eff6400 ... 0x55632eff73fc [ 4387840 ops/sec ]\n\n\
                    Averaged 4397056 operations/sec (+- 0.21%), total secs = 1\n";
        assert_eq!(rate(hash).unwrap(), 4397056.0);
        assert_eq!(
            rate("Averaged 4,397,056 operations/sec (+- 0,21%), total secs = 1\n").unwrap(),
            4397056.0
        );
        assert!(rate("Averaged 4.5 operations/sec\n").is_err());
        let error = rate("Segmentation fault\n").unwrap_err().to_string();
        assert!(error.contains("Segmentation fault"), "{error}");
    }
}
