//! exec: any command as a workload.

mod command_line;
mod figures;
mod process;
mod stream;

use crate::shared::{ALL_THE_SAME, warm_up, with_shared_alone};
use crate::{Failure, Trial, Workload};
use command_line::CommandLine;
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point, Statistic, counted};
use figures::Figures;
use std::collections::BTreeMap;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct Exec;

/// The point that stands for "no point".
const NO_POINT: &str = "-";

/// Parameters whose only meaning is what a command line makes of them.
const FREE: [&str; 4] = ["a", "b", "c", "d"];

impl Workload for Exec {
    fn describe(&self) -> Description {
        self.describe_for(&BTreeMap::new())
    }

    fn describe_for(&self, set: &BTreeMap<String, String>) -> Description {
        let own = own_parameters();
        let of = |name: &str| {
            let set = set.get(name).map(String::as_str);
            let default = || own.iter().find(|parameter| parameter.name == name).map(|p| p.default.as_str());
            set.or_else(default).unwrap_or_default()
        };
        let value = (!of("regex").is_empty() || !of("json").is_empty()).then(|| value_metric(&of));
        let mut metrics: Vec<Metric> = value.into_iter().collect();
        let seconds = |name: &str, units_line: &str, help: &str| {
            Metric::new(name, "s", Direction::Lower, units_line, help)
        };
        let time = seconds("time", "time in seconds", "from the start of the command to its end");
        metrics.push(if metrics.is_empty() { time } else { time.secondary() });
        metrics.extend([
            seconds("user", "user time in seconds", "CPU time in user mode, with all descendants")
                .secondary(),
            seconds("system", "system time in seconds", "CPU time in the kernel, with all descendants")
                .secondary(),
            Metric::new(
                "max-rss",
                "MiB",
                Direction::Lower,
                "memory in MiB",
                "the largest resident set of any process of the command",
            )
            .secondary(),
        ]);
        Description {
            name: "exec".into(),
            summary: "any command: its wall time and what it prints".into(),
            about: "Runs `command` once per trial, with nothing on its standard input. It is split into \
                    words as a shell splits them ('...', \"...\" and \\ quote), but no shell runs unless \
                    `shell=on`. In every word `{point}` stands for the point, `{seed}` for the seed of the \
                    trial, `{cpus}` for the list of CPUs that it may use, and `{a}` to `{d}` for the \
                    parameters of these names; `{{` and `}}` around a word stand for plain braces.\n\n\
                    The metric `value` is there if `regex` or `json` says where it is printed. Each match, \
                    and each number of a JSON array, is a sample. Then `value` is what is judged, and else \
                    the wall time. A command that does not leave with status 0 yields nothing."
                .into(),
            source: String::new(),
            axis: Axis {
                name: "point".into(),
                heading: "Case".into(),
                suffix: String::new(),
                points: vec![Point::new(NO_POINT)],
                range: None,
            },
            parameters: with_shared_alone(own_parameters(), ALL_THE_SAME),
            metrics,
            requirements: vec!["the command".into()],
        }
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        CommandLine::new(params, trial)?;
        Figures::new(params).map(drop)
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        let command = CommandLine::new(params, trial)?;
        let figures = Figures::new(params)?;
        warm_up(params, || process::run(&command).map(drop))?;
        let ended = process::run(&command)?;
        for value in figures.read(&ended.stdout, &ended.stderr)? {
            trial.sample("value", value)?;
        }
        trial.sample("time", ended.time_s)?;
        trial.sample("user", ended.user_s)?;
        trial.sample("system", ended.system_s)?;
        trial.sample("max-rss", ended.max_rss_mib)?;
        if ended.left_behind > 0 {
            trial.note(format!(
                "the command left {} running, which were killed; their time is not in `time`",
                counted(ended.left_behind, "process")
            ));
        }
        Ok(())
    }
}

fn own_parameters() -> Vec<Parameter> {
    let mut parameters = vec![
        Parameter::text("command", "", "the command with its arguments"),
        Parameter::flag("shell", false, "give the command to `sh -c` instead of splitting it into words"),
        Parameter::text(
            "regex",
            "",
            "a regular expression with one group, which captures `value` in what the command prints",
        ),
        Parameter::text(
            "json",
            "",
            "where `value` stands in the JSON that the command prints: `jobs.0.read.iops`, or a pointer \
             `/jobs/0/read/iops`",
        ),
        Parameter::text("unit", "", "the unit of `value`"),
        Parameter::choice("better", &["lower", "higher"], "which way `value` is good"),
        Parameter::choice(
            "statistic",
            &["amean", "hmean", "median"],
            "how samples of `value` become one figure",
        ),
    ];
    parameters.extend(
        FREE.map(|name| Parameter::text(name, "", &format!("what `{{{name}}}` in `command` stands for"))),
    );
    parameters
}

fn value_metric<'a>(of: &impl Fn(&str) -> &'a str) -> Metric {
    let direction = if of("better") == "higher" { Direction::Higher } else { Direction::Lower };
    let statistic = match of("statistic") {
        "hmean" => Statistic::Hmean,
        "median" => Statistic::Median,
        _ => Statistic::Amean,
    };
    let unit = of("unit");
    let units_line = if unit.is_empty() { "value".to_string() } else { format!("value in {unit}") };
    Metric::new("value", unit, direction, &units_line, "what the command printed").by(statistic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use experiment::Outcome;

    fn run(point: &str, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = Exec.describe().params(&set)?;
        let mut trial = Trial::new(Point::new(point), vec![0, 2], 7);
        Exec.run(&params, &mut trial)?;
        Ok(trial.into_outcome())
    }

    fn samples(outcome: &Outcome) -> &BTreeMap<String, Vec<f64>> {
        match outcome {
            Outcome::Done { samples, .. } => samples,
            missing => panic!("{missing:?}"),
        }
    }

    #[test]
    fn placeholders_reach_the_command_and_every_match_is_a_sample() {
        alone("exec::tests::placeholders_reach_the_command_and_every_match_is_a_sample", || {
            let set = [
                ("command", "sh -c 'echo value {point}; echo value {a} >&2; echo {seed} {cpus}' {{point}}"),
                ("a", "2.5"),
                ("regex", "value ([0-9.]+)"),
            ];
            let outcome = leaving_nothing(|| run("16", &set).unwrap());
            assert_eq!(samples(&outcome)["value"], [16.0, 2.5]);
            let set =
                [("command", "echo {seed}.{b}; exit 0"), ("b", "5"), ("shell", "on"), ("regex", r"(\d\.\d)")];
            assert_eq!(samples(&run("-", &set).unwrap())["value"], [7.5]);
            let set = [("command", r#"printf '{{"a": [%d]}' {cpus}"#), ("json", "a")];
            assert!(run("-", &set).is_err(), "`0,2` is no number for printf");
        });
    }

    #[test]
    fn output_of_any_size_on_both_streams_is_read() {
        alone("exec::tests::output_of_any_size_on_both_streams_is_read", || {
            let lines =
                "i=0; while [ $i -lt 9000 ]; do echo line $i of many; echo line >&2; i=$((i+1)); done";
            let script = format!("{lines}; echo 7 > /dev/stdout; echo ms 8 > /dev/stderr");
            let set = [
                ("shell", "on"),
                ("command", script.as_str()),
                ("regex", r"(?m)^line (\d*)0 of many|ms (8)"),
            ];
            assert!(run("-", &set).is_err(), "two groups");
            let set =
                [("shell", "on"), ("command", script.as_str()), ("regex", r"(?m)^(?:line|ms) ([0-9]+)")];
            let outcome = leaving_nothing(|| run("-", &set).unwrap());
            let values = &samples(&outcome)["value"];
            assert_eq!((values.len(), values[8999], values[9000]), (9001, 8999.0, 8.0));
        });
    }

    #[test]
    fn s10_a_command_that_takes_no_time_yields_plain_numbers() {
        alone("exec::tests::s10_a_command_that_takes_no_time_yields_plain_numbers", || {
            let outcome = leaving_nothing(|| run("-", &[("command", "true")]).unwrap());
            let samples = samples(&outcome);
            assert!(samples["time"][0] > 0.0 && samples["user"][0] >= 0.0 && samples["max-rss"][0] > 0.0);
            assert!(!samples.contains_key("value"));
            let zero = run("-", &[("command", "echo took 0 ms"), ("regex", "took (.*) ms")]).unwrap();
            let Outcome::Done { samples, .. } = zero else { panic!() };
            assert_eq!(samples["value"], [0.0]);
        });
    }

    #[test]
    fn p4_the_exact_status_and_signal_of_the_command() {
        alone("exec::tests::p4_the_exact_status_and_signal_of_the_command", || {
            let failure = |command: &str| leaving_nothing(|| run("-", &[("command", command)])).unwrap_err();
            let status = failure("sh -c 'echo alas >&2; exit 42'");
            assert_eq!(status.kind(), experiment::Failure::Exit);
            assert!(status.to_string().contains("left with status 42; it said: alas"), "{status}");
            let signal = failure("sh -c 'kill -SEGV $$'");
            assert_eq!(signal.kind(), experiment::Failure::Signal);
            assert!(signal.to_string().contains("was killed by signal 11 (SIGSEGV)"), "{signal}");
        });
    }

    #[test]
    fn p10_descendants_that_nobody_waited_for_are_counted_and_ended() {
        alone("exec::tests::p10_descendants_that_nobody_waited_for_are_counted_and_ended", || {
            let command =
                "sh -c '(setsid sleep 600 & exit 0); i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'";
            let outcome = leaving_nothing(|| run("-", &[("command", command)]).unwrap());
            let Outcome::Done { samples, notes, .. } = outcome else { panic!() };
            assert!(notes[0].contains("left 1 process running"), "{notes:?}");
            assert!(samples["user"][0] + samples["system"][0] > 0.0);
        });
    }

    #[test]
    fn what_cannot_be_meant_says_what_could_be() {
        let error = |set: &[(&str, &str)]| run("-", set).unwrap_err().to_string();
        assert!(error(&[]).contains("no command"));
        assert!(error(&[("command", "no-such-program-here 1")]).contains("any directory of PATH"));
        assert!(error(&[("command", "./no/such/program")]).contains("there is no program"));
        assert!(error(&[("command", "echo {poitn}")]).contains("did you mean `point`?"));
        assert!(error(&[("command", "echo {point}")]).contains("--points"));
        assert!(error(&[("command", "true"), ("regex", "a")]).contains("one group"));
        assert!(error(&[("command", "true"), ("regex", "(")]).contains("no regular expression"));
        assert!(error(&[("command", "true"), ("regex", "(a)"), ("json", "a")]).contains("not both"));
    }

    #[test]
    fn the_value_is_judged_where_there_is_one_and_else_the_time() {
        let primary = |set: &[(&str, &str)]| {
            let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let metrics = Exec.describe_for(&set).metrics.into_iter().filter(|metric| metric.primary);
            metrics.map(|m| (m.name, m.unit, m.direction, m.statistic)).collect::<Vec<_>>()
        };
        let time = ("time".to_string(), "s".to_string(), Direction::Lower, Statistic::Amean);
        assert_eq!(primary(&[]), [time]);
        let set = [("json", "a.b"), ("unit", "ops/s"), ("better", "higher"), ("statistic", "median")];
        let value = ("value".to_string(), "ops/s".to_string(), Direction::Higher, Statistic::Median);
        assert_eq!(primary(&set), [value]);
    }
}
