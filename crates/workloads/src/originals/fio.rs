//! fio with its io_uring engine.

use super::{Original, unread};
use crate::io_uring::{PERCENTILES, Plan, Target};
use crate::{Failure, Trial};
use serde_json::Value;

/// Whether fio can do what is planned.
///
/// # Errors
/// When it has no counterpart.
pub fn check(plan: &Plan) -> Result<(), Failure> {
    if plan.target.is_nop() {
        return Err(Failure::Refused(
            "fio's io_uring engine has no operations that do nothing; name a target=PATH or target=auto, or take \
             via=kduel"
                .into(),
        ));
    }
    Ok(())
}

/// Runs it once and leaves what it measured.
///
/// # Errors
/// When it is not there, does not come to its end, or prints what cannot be read.
pub fn run(plan: &Plan, target: &Target, trial: &mut Trial) -> Result<(), Failure> {
    check(plan)?;
    let Target::Readable { path, direct, .. } = target else { return check(plan) };
    let fio = Original::FIO.find()?;
    trial.note(format!("measured by {}", fio.run(&["--version"])?.trim()));
    trial.note("fio counts completed operations and has no best second, and its ring is never registered");
    let arguments = arguments(plan, &path.display().to_string().replace(':', "\\:"), *direct);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = fio.run(&arguments)?;
    let read = Read::new(&output).ok_or_else(|| unread("fio", "its JSON", &output))?;
    trial.sample("iops", read.iops)?;
    trial.sample("bandwidth", read.bandwidth_mib_s)?;
    trial.counter("completed", read.operations);
    if plan.latency {
        for (place, (name, _)) in PERCENTILES.iter().enumerate() {
            let latency_ns = read.percentiles_ns.get(place).copied().flatten();
            trial.sample(name, latency_ns.ok_or_else(|| unread("fio", name, &output))? / 1e3)?;
        }
    }
    Ok(())
}

fn arguments(plan: &Plan, path: &str, direct: bool) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "--name=kduel",
        "--ioengine=io_uring",
        // It writes nothing, whatever happens.
        "--readonly",
        "--thread",
        "--group_reporting",
        "--time_based",
        "--output-format=json",
        // As the original: blocks come again, and what goes on is not drawn.
        "--norandommap",
        // Nor is what the page cache holds thrown away first.
        "--invalidate=0",
        "--randrepeat=0",
        "--eta=never",
    ]
    .map(String::from)
    .to_vec();
    let mut option = |name: &str, value: String| arguments.push(format!("--{name}={value}"));
    let switch = |on: bool| u8::from(on).to_string();
    option("filename", path.into());
    option("rw", if plan.random { "randread" } else { "read" }.into());
    option("numjobs", plan.threads.to_string());
    option("bs", plan.bs.to_string());
    option("iodepth", plan.depth.to_string());
    option("iodepth_batch_submit", plan.submit.min(plan.depth).to_string());
    // The least completions that it waits for where it has to wait, and the most that it takes then.
    option("iodepth_batch_complete_min", plan.complete.min(plan.depth).to_string());
    option("iodepth_batch_complete_max", plan.depth.to_string());
    option("hipri", switch(plan.polled));
    option("fixedbufs", switch(plan.fixed_buffers));
    option("registerfiles", switch(plan.registered_files));
    option("direct", switch(direct));
    // Without latencies it looks at the clock less often, as the original does.
    option("gtod_reduce", switch(!plan.latency));
    option("percentile_list", PERCENTILES.map(|(_, percent)| percent.to_string()).join(":"));
    option("ramp_time", format!("{}ms", plan.warmup.as_millis()));
    option("runtime", format!("{}ms", plan.runtime.as_millis()));
    arguments
}

/// The reads of all jobs.
#[derive(Debug, PartialEq)]
struct Read {
    iops: f64,
    bandwidth_mib_s: f64,
    operations: f64,
    /// As [`PERCENTILES`]; nothing where no latency was taken.
    percentiles_ns: [Option<f64>; PERCENTILES.len()],
}

impl Read {
    /// From the JSON that fio prints, which warnings may precede. `None` if it is none, or tells of an error.
    fn new(output: &str) -> Option<Read> {
        let json: Value = serde_json::from_str(output.get(output.find('{')?..)?).ok()?;
        let job = json.get("jobs")?.get(0)?;
        let read = job.get("read")?;
        let number = |name: &str| read.get(name)?.as_f64();
        let percentiles = read.get("clat_ns").and_then(|latency| latency.get("percentile"));
        let percentile = |percent: f64| percentiles?.get(format!("{percent:.6}"))?.as_f64();
        let operations = number("total_ios")?;
        if job.get("error")?.as_i64()? != 0 || operations == 0.0 {
            return None;
        }
        Some(Read {
            iops: number("iops")?,
            bandwidth_mib_s: number("bw_bytes")? / f64::from(1 << 20),
            operations,
            percentiles_ns: PERCENTILES.map(|(_, percent)| percentile(percent)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"fio: some warning
{
  "fio version" : "fio-3.33",
  "jobs" : [ {
    "jobname" : "kduel", "error" : 0,
    "read" : {
      "io_bytes" : 799793152, "bw_bytes" : 1048576, "iops" : 97582.208896, "total_ios" : 195262,
      "clat_ns" : { "min" : 209422, "percentile" : {
        "50.000000" : 1335296, "90.000000" : 1531904, "99.000000" : 5144576, "99.900000" : 6586368 } }
    },
    "write" : { "iops" : 0.0 }
  } ]
}
"#;

    #[test]
    fn the_reads_are_read() {
        let read = Read::new(OUTPUT).unwrap();
        assert_eq!((read.iops, read.bandwidth_mib_s, read.operations), (97582.208896, 1.0, 195_262.0));
        assert_eq!(read.percentiles_ns, [1_335_296.0, 1_531_904.0, 5_144_576.0, 6_586_368.0].map(Some));
        // One that is missing is missing, and does not get the value of the next.
        let one_less = Read::new(&OUTPUT.replace("\"90.000000\" : 1531904,", "")).unwrap();
        assert_eq!(one_less.percentiles_ns, [Some(1_335_296.0), None, Some(5_144_576.0), Some(6_586_368.0)]);
    }

    #[test]
    fn an_error_or_no_reads_are_no_result() {
        for (good, bad) in [("\"error\" : 0", "\"error\" : 95"), ("195262", "0"), ("\"jobs\"", "\"jabs\"")] {
            assert_eq!(Read::new(&OUTPUT.replace(good, bad)), None, "{bad}");
        }
        assert_eq!(Read::new("fio: engine io_uring not loadable\n"), None);
    }
}
