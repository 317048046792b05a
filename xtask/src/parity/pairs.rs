//! What is set against what.

/// A workload, an original that measures the same, and the settings under which the two are compared.
pub(super) struct Pair {
    /// The workload.
    pub workload: &'static str,
    /// The original's word in `via`.
    pub via: &'static str,
    /// The Debian package that brings it; `None` where it has to be built by hand, so that it may be missing.
    pub package: Option<&'static str>,
    /// The points.
    pub points: &'static str,
    /// Parameters of both.
    pub set: &'static [&'static str],
    /// The metrics that mean the same in both.
    pub metrics: &'static [&'static str],
    /// Why the two differ, where they do and it was measured: by what, and with what result.
    pub reason: Option<&'static str>,
}

impl Pair {
    /// The workload with its settings and the original.
    pub fn name(&self) -> String {
        let set: Vec<&str> = self.set.to_vec();
        format!("{} {} via {}", self.workload, set.join(" "), self.via).replace("  ", " ")
    }

    /// What follows `kduel run`.
    pub fn arguments(&self, margin_pct: f64) -> Vec<String> {
        let mut arguments: Vec<String> = [
            self.workload,
            "--points",
            self.points,
            "-V",
            "ours",
            "-V",
            &format!("original:via={}", self.via),
        ]
        .map(String::from)
        .to_vec();
        for pair in self.set {
            arguments.extend(["--set".into(), pair.to_string()]);
        }
        arguments.extend([
            "--until-decided".into(),
            "--margin".into(),
            margin_pct.to_string(),
            "--no-aa".into(),
        ]);
        arguments
    }
}

/// All of them.
pub(super) static PAIRS: &[Pair] = &[
    Pair {
        workload: "hackbench",
        via: "rt-tests",
        package: Some("rt-tests"),
        points: "1,2",
        set: &[],
        metrics: &["time"],
        reason: None,
    },
    Pair {
        workload: "hackbench",
        via: "rt-tests",
        package: Some("rt-tests"),
        points: "1,2",
        set: &["mode=thread", "loops=300"],
        metrics: &["time"],
        reason: None,
    },
    Pair {
        workload: "hackbench",
        via: "perf",
        package: Some("linux-perf"),
        points: "1,2",
        set: &["mode=thread", "loops=300"],
        metrics: &["time"],
        reason: None,
    },
    Pair {
        workload: "io-uring",
        via: "fio",
        package: Some("fio"),
        points: "1,2",
        set: &["target=auto", "runtime=2"],
        metrics: &["iops"],
        reason: None,
    },
    Pair {
        workload: "wakeup-timer",
        via: "rt-tests",
        package: Some("rt-tests"),
        points: "1,2",
        set: &["runtime=1"],
        metrics: &["p50", "p99.9"],
        reason: None,
    },
    Pair {
        workload: "netperf",
        via: "iperf3",
        package: Some("iperf3"),
        points: "1",
        set: &["test=tcp_stream", "message=131072", "runtime=2"],
        metrics: &["throughput"],
        reason: None,
    },
    Pair {
        workload: "netperf",
        via: "netperf",
        package: None,
        points: "1,2",
        set: &["runtime=2"],
        metrics: &["throughput"],
        reason: None,
    },
];
