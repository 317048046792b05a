//! `mixed`: one workload that is measured beside another one that is load.

mod beside;
mod part;

use crate::shared::with_shared_alone;
use crate::{Failure, Trial, Workload};
use beside::{Beside, Load};
use experiment::{Axis, Description, Parameter, Params, Point};
use part::Part;
use std::collections::BTreeMap;
use std::time::Duration;

/// Any two workloads at once.
pub struct Mixed;

const MEASURED: &str = "wakeup-timer";
const LOAD: &str = "hackbench";

/// The point that stands for "no load".
const NO_LOAD: &str = "0";

impl Workload for Mixed {
    fn describe(&self) -> Description {
        self.describe_for(&BTreeMap::new())
    }

    fn describe_for(&self, set: &BTreeMap<String, String>) -> Description {
        let text = |name: &str, default: &str| set.get(name).cloned().unwrap_or_else(|| default.into());
        // What cannot be meant is told by `check`; until then it is described as if nothing had been set.
        let of =
            |text: &str, default: &str| Part::description(text).or_else(|_| Part::description(default)).ok();
        let measured = of(&text("measured", MEASURED), MEASURED);
        let load = of(&text("load", LOAD), LOAD);
        let warmup = measured.as_ref().and_then(|measured| measured.parameter("warmup").ok()).cloned();
        let load_name = load.as_ref().map_or(LOAD, |load| load.name.as_str());
        let metrics = measured.into_iter().flat_map(|measured| {
            let name = measured.name;
            measured.metrics.into_iter().map(move |mut metric| {
                metric.test =
                    Some(format!("{} beside {load_name}", metric.test.unwrap_or_else(|| name.clone())));
                metric
            })
        });
        let mut parameters = with_shared_alone(parameters(), "what it is for the measured part");
        // What goes to the measured part has its default.
        for (ours, its) in parameters.iter_mut().filter(|ours| ours.name == "warmup").zip(warmup) {
            ours.default = its.default;
        }
        let mut points = vec![Point::new(NO_LOAD)];
        points.extend(load.iter().flat_map(|load| load.axis.points.iter().take(2).cloned()));
        Description {
            name: "mixed".into(),
            summary: "one workload measured while another one, or none, is load on the same CPUs".into(),
            about: ABOUT.into(),
            source: String::new(),
            metrics: metrics.collect(),
            axis: Axis {
                name: "load".into(),
                heading: "Load".into(),
                suffix: load.as_ref().map_or(String::new(), |load| load.axis.suffix.clone()),
                points,
                range: None,
            },
            parameters,
            requirements: vec!["what the two workloads need".into()],
        }
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        let plan = Plan::new(params, trial)?;
        plan.measured.check(trial)?;
        plan.load.map_or(Ok(()), |load| load.part.check(trial))
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        let Plan { measured, load } = Plan::new(params, trial)?;
        let beside = Beside::start(load, trial)?;
        let outcome = beside.measure(&measured, trial)?;
        beside.end(trial)?;
        trial.take_over(outcome).map_err(|(kind, why)| Failure::Part {
            part: measured.title.clone(),
            kind,
            why,
        })
    }
}

/// What is to be run.
struct Plan {
    measured: Part,
    load: Option<Load>,
}

impl Plan {
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        // What is set for the whole goes for the part that is measured, unless its own text says otherwise.
        let ours = ["semantics", "warmup"].map(|name| (name, params.text(name).unwrap_or_default()));
        let point = params.text("measured-point")?;
        let point = (!point.is_empty()).then(|| Point::new(point));
        let measured = Part::new(
            "the measured part",
            params.text("measured")?,
            &ours,
            point,
            params.text("measured-cpus")?,
            trial,
        )?;
        // Parsed in any case, so that a mistake is told at the first point too.
        let none = trial.point().as_str() == NO_LOAD;
        let point = (!none).then(|| trial.point().clone());
        let part = Part::new("the load", params.text("load")?, &[], point, params.text("load-cpus")?, trial)?;
        let load = (!none).then_some(Load {
            part,
            lead: Duration::from_secs_f64(params.decimal("lead")?),
            patience: Duration::from_secs_f64(params.decimal("patience")?),
        });
        Ok(Plan { measured, load })
    }
}

fn parameters() -> Vec<Parameter> {
    vec![
        Parameter::text(
            "measured",
            MEASURED,
            "the workload that is measured, and its parameters: `wakeup-timer interval=200`",
        ),
        Parameter::text("measured-point", "", "its point; where nothing is set, the first of its own"),
        Parameter::text(
            "load",
            LOAD,
            "the workload that is load, and its parameters: `hackbench loops=1000`",
        ),
        Parameter::decimal(
            "lead",
            0.5,
            0.0,
            3600.0,
            "seconds that the load runs before the measured part starts",
        ),
        Parameter::decimal(
            "patience",
            10.0,
            0.0,
            3600.0,
            "seconds that the load has afterwards to come to the end of its round, before it is killed",
        ),
        Parameter::text(
            "measured-cpus",
            "",
            "the CPUs of the measured part, as a list; where nothing is set, the trial's",
        ),
        Parameter::text(
            "load-cpus",
            "",
            "the CPUs of the load, as a list; where nothing is set, the trial's",
        ),
    ]
}

const ABOUT: &str = "\
The axis is the point of the load: with `load=hackbench`, 4 is hackbench with 4 groups. At point 0 there is no load, and the \
measured part runs as it does alone. The metrics are those of the measured workload.

The load starts first, in a process of its own, and is done over and over, round after round. After `lead` seconds the measured \
part starts in another process, and when it has ended the load is asked to stop after its round. The trial counts only if the \
load ran, without a failure, from before the measured part's start until after its end. How many rounds it did and what its own first \
metric came to is left as counters.

`semantics` and `warmup` are those of the measured part, unless its own text sets them. A mixed cannot be a part of a mixed.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::processes::fork;
    use experiment::Outcome;
    use rustix::process::{Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
    use std::thread::sleep;
    use std::time::Instant;

    fn set(set: &[(&str, &str)]) -> BTreeMap<String, String> {
        set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    fn prepare(point: &str, parameters: &[(&str, &str)]) -> Result<(Params, Trial), Failure> {
        let params = Mixed.describe_for(&set(parameters)).params(&set(parameters))?;
        let cpus = machine::cpus::allowed().unwrap().to_vec();
        let trial = Trial::new(Point::new(point), cpus, 1);
        Mixed.check(&params, &trial)?;
        Ok((params, trial))
    }

    fn run(point: &str, parameters: &[(&str, &str)]) -> Result<Outcome, Failure> {
        let (params, mut trial) = prepare(point, parameters)?;
        Mixed.run(&params, &mut trial)?;
        Ok(trial.into_outcome())
    }

    const SHORT_LOAD: (&str, &str) = ("load", "hackbench fds=2 loops=5 repeat=1");
    const SHORT_WORK: (&str, &str) = ("measured", "wakeup-timer runtime=0.05");
    const NO_LEAD: (&str, &str) = ("lead", "0.02");

    #[test]
    fn the_measured_part_yields_its_metrics_beside_any_load_and_nothing_is_left() {
        alone(
            "mixed::tests::the_measured_part_yields_its_metrics_beside_any_load_and_nothing_is_left",
            || {
                for mode in ["process", "thread"] {
                    let load = format!("{} mode={mode}", SHORT_LOAD.1);
                    for point in ["0", "2"] {
                        let parameters = [SHORT_WORK, ("load", &load), NO_LEAD];
                        let outcome = leaving_nothing(|| run(point, &parameters).unwrap());
                        let Outcome::Done { samples, counters, evidence, .. } = outcome else { panic!() };
                        assert_eq!(samples["max"].len(), 1);
                        assert_eq!(counters.contains_key("load rounds"), point == "2", "{counters:?}");
                        assert_eq!(evidence.len(), usize::from(point == "2"));
                    }
                }
            },
        );
    }

    #[test]
    fn a_measured_part_that_forks_and_one_that_is_a_command_do_not_end_the_load() {
        alone(
            "mixed::tests::a_measured_part_that_forks_and_one_that_is_a_command_do_not_end_the_load",
            || {
                for measured in ["hackbench fds=2 loops=5 repeat=1", "exec command='sleep 0.05'"] {
                    let parameters = [("measured", measured), SHORT_LOAD, NO_LEAD];
                    let outcome = leaving_nothing(|| run("1", &parameters).unwrap());
                    let Outcome::Done { samples, .. } = outcome else { panic!() };
                    assert_eq!(samples["time"].len(), 1);
                }
            },
        );
    }

    #[test]
    fn a_load_that_fails_fails_the_trial_and_says_so() {
        alone("mixed::tests::a_load_that_fails_fails_the_trial_and_says_so", || {
            let work = ("measured", "wakeup-timer runtime=10");
            for command in ["exec command='false'", "exec shell=on command='sleep 0.2; exit 3'"] {
                let error =
                    leaving_nothing(|| run("-", &[work, ("load", command), ("lead", "0.1")])).unwrap_err();
                assert!(error.to_string().starts_with("the load, exec: "), "{error}");
                assert!(error.to_string().contains("left with status"), "{error}");
            }
        });
    }

    #[test]
    fn a_measured_part_that_fails_is_named_and_keeps_its_kind() {
        alone("mixed::tests::a_measured_part_that_fails_is_named_and_keeps_its_kind", || {
            let parameters = [("measured", "exec command='sh -c \"exit 7\"'"), SHORT_LOAD, NO_LEAD];
            let error = leaving_nothing(|| run("1", &parameters)).unwrap_err();
            assert_eq!(error.kind(), experiment::Failure::Exit);
            assert!(error.to_string().starts_with("the measured part, exec: "), "{error}");
        });
    }

    #[test]
    fn a_load_that_does_not_end_is_killed_with_all_that_it_started() {
        alone("mixed::tests::a_load_that_does_not_end_is_killed_with_all_that_it_started", || {
            let load = ("load", "exec shell=on command='setsid sleep 600 & sleep 600'");
            let outcome =
                leaving_nothing(|| run("-", &[SHORT_WORK, load, NO_LEAD, ("patience", "0.05")]).unwrap());
            let Outcome::Done { notes, .. } = outcome else { panic!() };
            assert!(notes.iter().any(|note| note.contains("was killed")), "{notes:?}");
        });
    }

    #[test]
    fn p2_nothing_outlives_a_trial_that_is_killed() {
        alone("mixed::tests::p2_nothing_outlives_a_trial_that_is_killed", || {
            // What outlives its parent comes to this process.
            set_child_subreaper(Some(getpid())).unwrap();
            let trial = fork(|| {
                let parameters =
                    [("measured", "wakeup-timer runtime=600"), ("load", "hackbench loops=1000000"), NO_LEAD];
                u8::from(run("1", &parameters).is_ok())
            })
            .unwrap();
            let list = format!("/proc/{0}/task/{0}/children", trial.as_raw_nonzero());
            while std::fs::read_to_string(&list).unwrap_or_default().split_whitespace().count() < 2 {
                sleep(Duration::from_millis(1));
            }
            kill_process(trial, Signal::KILL).unwrap();
            let start = Instant::now();
            // Until there is nobody left to wait for.
            while let Ok(ended) = wait(WaitOptions::NOHANG) {
                assert!(start.elapsed() < Duration::from_secs(60), "somebody is left");
                if ended.is_none() {
                    sleep(Duration::from_millis(1));
                }
            }
        });
    }

    #[test]
    fn what_cannot_be_meant_is_told_before_the_first_trial() {
        let error = |parameters: &[(&str, &str)]| prepare("1", parameters).map(drop).unwrap_err().to_string();
        assert!(error(&[("load", "hackbnech")]).contains("hackbench"));
        assert!(error(&[("load", "hackbench lops=3")]).contains("`loops`"));
        assert!(
            error(&[("measured", "futex-hash futexes=none")]).starts_with("the measured part, futex-hash: ")
        );
        assert!(error(&[("measured", "futex-hash futexes")]).contains("KEY=VALUE"));
        assert!(error(&[("measured", "mixed")]).contains("mixed cannot be a part"));
        assert!(error(&[("measured", " ")]).contains("no workload"));
        assert!(error(&[("measured-point", "none")]).contains("the measured part"));
        assert!(error(&[("load-cpus", "60000")]).contains("60000"));
        let beyond = prepare("0", &[("load", "hackbench mode=rocket")]).map(drop).unwrap_err().to_string();
        assert!(beyond.starts_with("the load, hackbench: "), "{beyond}");
        let beyond = prepare("1000000000", &[]).map(drop).unwrap_err().to_string();
        assert!(beyond.starts_with("the load, hackbench: "), "{beyond}");
    }

    #[test]
    fn the_metrics_are_those_of_the_measured_workload() {
        let description = Mixed.describe_for(&set(&[SHORT_WORK, ("load", "lock-busy")]));
        let timer = crate::find("wakeup-timer").unwrap().describe();
        let names =
            |metrics: &[experiment::Metric]| metrics.iter().map(|m| m.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&description.metrics), names(&timer.metrics));
        assert_eq!(description.metrics[0].test.as_deref(), Some("wakeup-timer-max beside lock-busy"));
        assert_eq!(description.axis.suffix, "-per-cpu");
        let warmup = |measured: &str| {
            Mixed.describe_for(&set(&[("measured", measured)])).parameter("warmup").unwrap().default.clone()
        };
        for name in ["scale-futex1", "hackbench"] {
            let alone = crate::find(name).unwrap().describe();
            assert_eq!(warmup(name), alone.parameter("warmup").unwrap().default);
        }
    }
}
