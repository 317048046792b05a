//! sysbench 1.0.

use super::{Original, decimal, unread, whole_seconds};
use crate::shared::warmup;
use crate::{Failure, Trial};
use experiment::Params;

/// A test of sysbench.
#[derive(Debug)]
pub struct Test {
    /// Its name.
    pub name: &'static str,
    /// The parameters that it takes, each with the name of its option.
    pub options: &'static [(&'static str, &'static str)],
}

impl Test {
    /// Whether sysbench is there and can do what `params` ask for.
    ///
    /// # Errors
    /// When it is not there, or has no counterpart for a parameter.
    pub fn check(&self, original: Original, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.arguments(params, trial)?;
        original.find().map(drop)
    }

    /// The command line, but for the command `run`.
    fn arguments(&self, params: &Params, trial: &Trial) -> Result<Vec<String>, Failure> {
        if self.name != "cpu" && params.text("lock")? != "pthread" {
            return Err(Failure::Refused(
                "sysbench has lock=pthread only; leave it so, or take via=kduel".into(),
            ));
        }
        let mut arguments = vec![self.name.to_string(), format!("--threads={}", trial.count()?)];
        for (name, option) in self.options {
            arguments.push(format!("--{option}={}", params.text(name)?));
        }
        match self.name {
            // It ends by itself.
            "mutex" => arguments.extend(["--time=0".into(), "--events=0".into()]),
            _ => {
                let runtime_s = whole_seconds("sysbench", params.decimal("runtime")?)?;
                arguments.push(format!("--time={runtime_s}"));
            }
        }
        Ok(arguments)
    }

    /// Runs it and leaves what it printed.
    ///
    /// # Errors
    /// As [`Test::check`], and when it prints no result.
    pub fn run(&self, original: Original, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        let mut arguments = self.arguments(params, trial)?;
        let sysbench = original.find()?;
        let version = sysbench.run(&["--version"])?;
        let warmup_s = warmup(params)?.as_secs_f64();
        if warmup_s > 0.0 {
            let mut warm = arguments.clone();
            warm.extend([format!("--time={}", warmup_s.ceil()), "run".into()]);
            sysbench.run(&warm.iter().map(String::as_str).collect::<Vec<&str>>())?;
        }
        arguments.push("run".into());
        let output = sysbench.run(&arguments.iter().map(String::as_str).collect::<Vec<&str>>())?;
        let Figures { time_s, events, min_ms, mean_ms, p95_ms, max_ms } = read(&output)?;
        trial.note(format!("measured by {}", version.trim()));
        if time_s <= 0.0 {
            return Err(Failure::Refused("sysbench says that it took no time; ask for more work".into()));
        }
        trial.sample("rate", events / time_s)?;
        if self.name == "mutex" {
            trial.sample("time", time_s)?;
        }
        trial.sample("latency-min", min_ms)?;
        trial.sample("latency-mean", mean_ms)?;
        trial.sample("latency-p95", p95_ms)?;
        trial.sample("latency-max", max_ms)?;
        trial.counter("events", events);
        Ok(())
    }
}

/// What sysbench prints.
#[derive(Debug, PartialEq)]
struct Figures {
    time_s: f64,
    events: f64,
    min_ms: f64,
    mean_ms: f64,
    p95_ms: f64,
    max_ms: f64,
}

fn read(output: &str) -> Result<Figures, Failure> {
    let figure = |head: &str| {
        let value = output.lines().find_map(|line| line.trim().strip_prefix(head));
        let value = value.and_then(|value| decimal(value.trim().trim_end_matches('s')));
        value.ok_or_else(|| unread("sysbench", head, output))
    };
    Ok(Figures {
        time_s: figure("total time:")?,
        events: figure("total number of events:")?,
        min_ms: figure("min:")?,
        mean_ms: figure("avg:")?,
        p95_ms: figure("95th percentile:")?,
        max_ms: figure("max:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::originals::on_path;
    use experiment::{Outcome, Point};

    const PRINTED: &str = "General statistics:\n    total time:                          1.0004s\n    \
                           total number of events:              4936\n\nLatency (ms):\n         \
                           min:                                    0.37\n         \
                           avg:                                    0.40\n         \
                           max:                                    4.99\n         \
                           95th percentile:                        0.42\n         \
                           sum:                                 1998.97\n";

    #[test]
    fn what_is_printed_is_read() {
        let figures = Figures {
            time_s: 1.0004,
            events: 4936.0,
            min_ms: 0.37,
            mean_ms: 0.4,
            p95_ms: 0.42,
            max_ms: 4.99,
        };
        assert_eq!(read(PRINTED).unwrap(), figures);
    }

    #[test]
    fn what_cannot_be_read_is_quoted() {
        let error = read("FATAL: unknown option\n").unwrap_err().to_string();
        assert!(error.contains("total time:") && error.contains("unknown option"), "{error}");
    }

    #[test]
    fn the_installed_one_is_run_and_read() {
        if on_path("sysbench").is_none() {
            println!("skipped: sysbench is not installed");
            return;
        }
        let tests: [(&str, &[(&str, &str)]); 3] = [
            ("sys-cpu", &[("runtime", "1")]),
            ("sys-threads", &[("runtime", "1"), ("yields", "10")]),
            ("sys-mutex", &[("locks", "500")]),
        ];
        for (name, set) in tests {
            let workload = crate::find(name).unwrap();
            let set = set.iter().chain(&[("via", "sysbench")]);
            let set = set.map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let params = workload.describe().params(&set).unwrap();
            let mut trial = Trial::new(Point::from(2), vec![0], 1);
            workload.run(&params, &mut trial).unwrap();
            let Outcome::Done { samples, notes, .. } = trial.into_outcome() else { panic!("{name}") };
            assert!(samples["rate"][0] > 0.0 && notes[0].starts_with("measured by sysbench 1"), "{notes:?}");
        }
    }

    #[test]
    fn what_it_has_no_counterpart_for_is_refused() {
        if on_path("sysbench").is_none() {
            println!("skipped: sysbench is not installed");
            return;
        }
        for (name, key, value) in [
            ("sys-threads", "lock", "tas"),
            ("sys-cpu", "runtime", "0.5"),
            ("sys-cpu", "semantics", "strict"),
        ] {
            let workload = crate::find(name).unwrap();
            let set = [("via", "sysbench"), (key, value)];
            let set = set.map(|(name, value)| (name.to_string(), value.to_string())).into_iter().collect();
            let params = workload.describe().params(&set).unwrap();
            let mut trial = Trial::new(Point::from(1), vec![0], 1);
            for refused in [workload.check(&params, &trial), workload.run(&params, &mut trial)] {
                assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
            }
        }
    }
}
