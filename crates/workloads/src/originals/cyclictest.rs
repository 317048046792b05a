//! cyclictest of rt-tests.

use super::{Original, unread};
use crate::wakeup_timer::{IdleStates, Lateness, Plan, policy_is_other};
use crate::{Failure, Trial};
use rustix::time::ClockId;
use serde_json::Value;

/// Lateness in microseconds that it still tells apart; its own limit.
const HISTOGRAM_US: u64 = 1_000_000;

/// Whether it is there and can do what is planned.
///
/// # Errors
/// When it is not there, or has no counterpart.
pub fn check(plan: &Plan) -> Result<(), Failure> {
    arguments(plan)?;
    Original::CYCLICTEST.find().map(drop)
}

/// Runs it once and leaves what it measured.
///
/// # Errors
/// As [`check`], when it does not come to its end, and when it prints what cannot be read.
pub fn run(plan: &Plan, trial: &mut Trial) -> Result<(), Failure> {
    let arguments = arguments(plan)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let cyclictest = Original::CYCLICTEST.find()?;
    let _held = IdleStates::new(plan.idle_states)?.note(trial);
    let output = cyclictest.run(&arguments)?;
    let (version, lateness) = read(&output).ok_or_else(|| unread("cyclictest", "its JSON", &output))?;
    trial.note(format!("measured by cyclictest V {version}"));
    trial.note("cyclictest does not say how many intervals it missed");
    lateness?.report(trial)
}

fn arguments(plan: &Plan) -> Result<Vec<String>, Failure> {
    if !plan.warmup.is_zero() {
        return Err(Failure::Refused(
            "cyclictest has no warm-up; leave out `warmup`, or take via=kduel".into(),
        ));
    }
    if plan.distance_ns > 0 {
        return Err(Failure::Refused(
            "cyclictest has no `distance` where it keeps a histogram; set it to 0, or take via=kduel".into(),
        ));
    }
    if !plan.interval_ns.is_multiple_of(1000) {
        return Err(Failure::Refused(
            "cyclictest takes whole microseconds as `interval`; set such a one, or take via=kduel".into(),
        ));
    }
    if !plan.affinity {
        return Err(Failure::Refused(
            "cyclictest lets each thread run on one CPU only; leave affinity on, or take via=kduel".into(),
        ));
    }
    let cpus: Vec<String> = plan.cpus().iter().map(u32::to_string).collect();
    let mut arguments = vec![
        "--quiet".into(),
        format!("--threads={}", plan.threads),
        format!("--interval={}", plan.interval_ns / 1000),
        // It ends when its first thread does.
        format!("--loops={}", plan.intervals(0, plan.runtime)),
        format!("--affinity={}", cpus.join(",")),
        format!("--clock={}", if plan.clock == ClockId::Realtime { 1 } else { 0 }),
        format!("--histogram={HISTOGRAM_US}"),
        "--histfile=/dev/null".into(),
        "--json=/dev/stdout".into(),
        // What it would do about idle states is done here, and said.
        "--default-system".into(),
    ];
    // Where version 2.40 is given a priority of 0, it takes SCHED_FIFO, so it is given none.
    match &plan.policy {
        Some(knob) => {
            let (policy, priority) = knob.value.split_once(':').unwrap_or((&knob.value, "1"));
            arguments.extend([format!("--policy={policy}"), format!("--priority={priority}")]);
        }
        // It gives its threads SCHED_OTHER, whatever it is started under.
        None if !policy_is_other() => {
            return Err(Failure::Refused(
                "cyclictest gives its threads SCHED_OTHER or a real-time policy of their own; leave out the knob \
                 `policy`, and set `priority` and `realtime` for a real-time one"
                    .into(),
            ));
        }
        None => {}
    }
    if plan.mlockall {
        arguments.push("--mlockall".into());
    }
    Ok(arguments)
}

/// The version and what the threads measured, from the JSON that cyclictest writes; other lines may stand around it.
fn read(output: &str) -> Option<(String, Result<Lateness, Failure>)> {
    let json: Value = serde_json::from_str(output.get(output.find('{')?..=output.rfind('}')?)?).ok()?;
    let version = json.get("rt_test_version:").or_else(|| json.get("rt_test_version"))?.as_str()?;
    let mut all = Lateness { missed: None, ..Lateness::default() };
    for thread in json.get("thread")?.as_object()?.values() {
        let number = |name: &str| thread.get(name)?.as_u64();
        let mut own = Lateness { missed: None, ..Lateness::default() };
        for (late_us, count) in thread.get("histogram")?.as_object()? {
            let late_us: u64 = late_us.parse().ok()?;
            for _ in 0..count.as_u64()? {
                own.record(late_us * 1000);
            }
        }
        if own.histogram_ns.len() != number("cycles")? {
            return Some((version.into(), Err(beyond(number("max")?))));
        }
        all.merge(&own);
    }
    Some((version.into(), Ok(all)))
}

fn beyond(max_us: u64) -> Failure {
    Failure::Refused(format!(
        "a wake-up was {max_us} us late, and cyclictest counts no more than {HISTOGRAM_US} us one by one; take via=kduel"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"# /dev/cpu_dma_latency set to 0us
{
  "file_version": 1,
  "cmdline:": "cyclictest -q -t 2",
  "rt_test_version:": "2.40",
  "num_threads": 2,
  "thread": {
    "0": {
      "histogram": { "59": 3, "62": 1 },
      "cycles": 4, "min": 59, "max": 62, "avg": 59.75, "cpu": 0, "node": 0
    },
    "1": {
      "histogram": { "58": 1, "900": 1 },
      "cycles": 2, "min": 58, "max": 900, "avg": 479.00, "cpu": 1, "node": 0
    }
  }
}
WARN: not setting cpu_dma_latency from cyclictest
"#;

    #[test]
    fn all_threads_are_read() {
        let (version, lateness) = read(OUTPUT).unwrap();
        let lateness = lateness.unwrap();
        assert_eq!((version.as_str(), lateness.histogram_ns.len()), ("2.40", 6));
        assert_eq!(lateness.range_ns, Some((58_000, 900_000)));
        assert_eq!(lateness.sum_ns, (3 * 59 + 62 + 58 + 900) * 1000);
    }

    #[test]
    fn wake_ups_beyond_the_histogram_are_no_result() {
        let error =
            read(&OUTPUT.replace("\"cycles\": 2", "\"cycles\": 3")).unwrap().1.unwrap_err().to_string();
        assert!(error.contains("a wake-up was 900 us late"), "{error}");
    }

    #[test]
    fn what_is_no_json_is_no_result() {
        assert!(read("").is_none());
        assert!(read("FATAL: unable to change scheduling policy!\n").is_none());
        assert!(read(&OUTPUT.replace("\"cycles\": 4,", "")).is_none());
    }
}
