//! What is set against what.

use super::MARGIN_PCT;

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
    /// The CPUs that both get, where they have to be fewer than there are for the figure to be steady enough.
    pub cpus: Option<&'static str>,
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

    /// What measures it first.
    pub fn command(&self) -> String {
        format!("kduel run {}", self.arguments(MARGIN_PCT).join(" "))
    }

    /// What follows `kduel run`.
    pub fn arguments(&self, margin_pct: f64) -> Vec<String> {
        let cpus = self.cpus.map(|cpus| format!("cpus={cpus}"));
        let ours = cpus.iter().map(|cpus| format!(":{cpus}")).collect::<String>();
        let theirs = cpus.iter().map(|cpus| format!(",{cpus}")).collect::<String>();
        let mut arguments: Vec<String> = [
            self.workload,
            "--points",
            self.points,
            "-V",
            &format!("ours{ours}"),
            "-V",
            &format!("original:via={}{theirs}", self.via),
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
        workload: "netperf",
        via: "netperf",
        package: None,
        points: "1,2",
        cpus: Some("0"),
        set: &["runtime=1"],
        metrics: &["throughput"],
        reason: None,
    },
    Pair {
        workload: "io-uring",
        via: "fio",
        package: Some("fio"),
        points: "1,2",
        cpus: None,
        set: &["target=auto", "runtime=1"],
        metrics: &["iops"],
        reason: None,
    },
    Pair {
        workload: "sys-cpu",
        via: "sysbench",
        package: Some("sysbench"),
        points: "1,2",
        cpus: None,
        set: &["runtime=1"],
        metrics: &["rate"],
        reason: None,
    },
    Pair {
        workload: "sys-threads",
        via: "sysbench",
        package: Some("sysbench"),
        points: "1,2",
        cpus: None,
        set: &["runtime=1"],
        metrics: &["rate"],
        reason: Some(
            "sysbench gives up the CPU through the C library's sched_yield(), kduel inlines the instruction. \
             `benches/sys-threads/run.sh` measures both ways in C.",
        ),
    },
    Pair {
        workload: "sys-mutex",
        via: "sysbench",
        package: Some("sysbench"),
        points: "1,2",
        cpus: None,
        set: &["locks=400000"],
        metrics: &["rate"],
        reason: None,
    },
    Pair {
        workload: "futex-hash",
        via: "perf",
        package: Some("linux-perf"),
        points: "1",
        cpus: None,
        set: &["runtime=1"],
        metrics: &["rate"],
        reason: Some(
            "perf makes its calls through the C library's syscall(), kduel inlines the instruction. \
             `benches/futex-hash/run.sh` measures both ways in C.",
        ),
    },
    Pair {
        workload: "sched-pipe",
        via: "perf",
        package: Some("linux-perf"),
        points: "1",
        cpus: Some("0"),
        set: &["loops=100000"],
        metrics: &["rate"],
        reason: None,
    },
    Pair {
        workload: "sched-pipe",
        via: "perf",
        package: Some("linux-perf"),
        points: "1",
        cpus: None,
        set: &["loops=100000", "mode=thread"],
        metrics: &["rate"],
        reason: None,
    },
    Pair {
        workload: "spawn",
        via: "stress-ng",
        package: Some("stress-ng"),
        points: "1,2",
        cpus: None,
        set: &["runtime=1"],
        metrics: &["rate"],
        reason: Some(
            "A fork of stress-ng copies the mappings of its shared libraries, and its child makes ten more system calls, \
             setsid among them, before it leaves. `benches/spawn/run.sh` takes that apart, on a busy machine: C that \
             forks as `spawn` does makes 7291 forks a second, with the calls 5531, with the libraries 2830, with both \
             2523; stress-ng makes 2180 and `spawn` 6683.",
        ),
    },
    Pair {
        workload: "tbench",
        via: "dbench",
        package: Some("dbench"),
        points: "1,2",
        cpus: Some("0"),
        set: &["runtime=6", "loadfile=/usr/share/dbench/client.txt"],
        metrics: &["throughput"],
        reason: Some(
            "The original takes a line of text apart and calls kill() for each operation. `benches/tbench/run.sh` measures \
             it without the one and without the other.",
        ),
    },
    Pair {
        workload: "futex-lock-pi",
        via: "perf",
        package: Some("linux-perf"),
        points: "2",
        cpus: None,
        set: &["runtime=1"],
        metrics: &["rate"],
        reason: None,
    },
    Pair {
        workload: "hackbench",
        via: "rt-tests",
        package: Some("rt-tests"),
        points: "2",
        cpus: None,
        set: &["repeat=20"],
        metrics: &["time"],
        reason: None,
    },
    Pair {
        workload: "hackbench",
        via: "rt-tests",
        package: Some("rt-tests"),
        points: "2",
        cpus: None,
        set: &["mode=thread", "loops=300"],
        metrics: &["time"],
        reason: None,
    },
    Pair {
        workload: "hackbench",
        via: "perf",
        package: Some("linux-perf"),
        points: "2",
        cpus: None,
        set: &[],
        metrics: &["time"],
        reason: Some(
            "Every process of perf inherits perf's address space and tears it down at its end, inside the measured time. \
             `benches/hackbench/run.sh` shows it: hackbench of rt-tests gets slower by as much when it is given as many \
             mappings and as much memory.",
        ),
    },
    Pair {
        workload: "hackbench",
        via: "perf",
        package: Some("linux-perf"),
        points: "2",
        cpus: None,
        set: &["mode=thread", "loops=300"],
        metrics: &["time"],
        reason: None,
    },
    Pair {
        workload: "wakeup-timer",
        via: "rt-tests",
        package: Some("rt-tests"),
        points: "1",
        cpus: None,
        set: &["runtime=2", "interval=200"],
        metrics: &["p50", "p99.9"],
        reason: None,
    },
    Pair {
        workload: "futex-requeue",
        via: "perf",
        package: Some("linux-perf"),
        points: "32",
        cpus: None,
        set: &["repeat=100"],
        metrics: &["latency"],
        reason: Some(
            "perf makes its calls through the C library's syscall(), kduel inlines the instruction. \
             `benches/futex-hash/run.sh` measures both ways in C.",
        ),
    },
    Pair {
        workload: "futex-wake",
        via: "perf",
        package: Some("linux-perf"),
        points: "32",
        cpus: None,
        set: &["repeat=100"],
        metrics: &["latency"],
        reason: None,
    },
    Pair {
        workload: "netperf",
        via: "iperf3",
        package: Some("iperf3"),
        points: "1",
        cpus: Some("0"),
        set: &["test=tcp_stream", "message=131072", "runtime=1"],
        metrics: &["throughput"],
        reason: Some(
            "iperf3 asks by pselect before each block that it receives, and reads the clock around it. \
             `benches/netperf/run.sh 5 tcp_stream` measures the CPU time per MB of both, and of C with and without that call.",
        ),
    },
    Pair {
        workload: "futex-wake-parallel",
        via: "perf",
        package: Some("linux-perf"),
        points: "32",
        cpus: None,
        set: &["nwakers=4", "repeat=50"],
        metrics: &["latency"],
        reason: Some(
            "At least a part of it: threads of perf end by pthread_exit(), which unwinds their stacks under a lock of the C \
             library and looks through all loaded libraries for that; meanwhile a waker waits for its CPU. \
             `benches/futex-wake-parallel/run.sh` measures C with and without.",
        ),
    },
    Pair {
        workload: "seccomp-notify",
        via: "perf",
        package: None,
        points: "1",
        cpus: None,
        set: &["loops=50000"],
        metrics: &["rate"],
        reason: None,
    },
    Pair {
        workload: "schbench-old",
        via: "schbench",
        package: None,
        points: "1,2",
        cpus: None,
        set: &["runtime=2"],
        metrics: &["p99"],
        reason: None,
    },
    Pair {
        workload: "schbench",
        via: "schbench",
        package: None,
        points: "1,2",
        cpus: None,
        set: &["runtime=2"],
        metrics: &["rps", "wakeup-p99", "request-p99"],
        reason: None,
    },
    Pair {
        workload: "stream",
        via: "stream",
        package: None,
        points: "2",
        cpus: None,
        set: &[],
        metrics: &["copy", "scale", "add", "triad"],
        reason: None,
    },
];
