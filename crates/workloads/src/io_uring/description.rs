//! What there is to say about io-uring.

use super::{ORIGINALS, target};
use crate::shared::with_shared;
use experiment::{Axis, Description, Direction, Metric, Parameter, Point, Statistic};

/// The percentiles of the latency that are metrics, by name.
pub const PERCENTILES: [(&str, f64); 4] =
    [("latency-p50", 50.0), ("latency-p90", 90.0), ("latency-p99", 99.0), ("latency-p99.9", 99.9)];

/// The description with every metric.
pub(super) fn description() -> Description {
    Description {
        name: "io-uring".into(),
        summary: "I/O operations per second through io_uring".into(),
        about: "Every thread has a ring of its own and keeps up to `depth` reads of `bs` bytes in flight. It \
                prepares up to `submit` of them, enters the kernel once, takes every completion that is there, \
                and begins again. It waits in the kernel, for `complete` completions, where another batch would \
                not fit into `depth`. It never writes.\n\n\
                `target=nop`, the default, needs no device: the operations do nothing, and what is measured is the \
                ring itself. `target=auto` reads a temporary file without a name, any other value the file or \
                block device of that name.\n\n\
                With original semantics an operation counts when the kernel has accepted it, an EIO or ENODATA is \
                taken off again, and fixed buffers mean that all reads go into one. With strict semantics an \
                operation counts when it has completed, every error fails the trial, and the reads take the \
                buffers in turn. Both counts are divided by the time that passed, not by whole seconds."
            .into(),
        source: "t/io_uring of fio (2023). It polls by default (-p1), kduel does not; where it divides by \
                 the second that it wanted to sleep, kduel divides by the time that passed. fio's io_uring engine \
                 is what `via=fio` runs."
            .into(),
        axis: Axis {
            name: "threads".into(),
            heading: "Threads".into(),
            suffix: String::new(),
            points: [1, 2, 4, 8].map(Point::from).to_vec(),
            range: Some((1, 10_000)),
        },
        parameters: with_shared(parameters(), ORIGINALS),
        metrics: metrics(true, true),
        requirements: vec![
            "io_uring: Linux 5.4 with kernel.io_uring_disabled=0, and no seccomp filter against it".into(),
            "locked memory of depth x bs per thread with `fixed-buffers`".into(),
            "fio for `via`".into(),
        ],
    }
}

fn parameters() -> Vec<Parameter> {
    vec![
        Parameter::text(
            "target",
            target::NOP,
            "what is read: `nop` for operations that do nothing, `auto` for a temporary file, or the path of a file \
             or block device, which is never written",
        ),
        Parameter::integer("size", 64, 1, 1 << 20, "MiB of the temporary file of `target=auto`"),
        Parameter::integer("depth", 128, 1, 32_768, "operations in flight per thread"),
        Parameter::integer("submit", 32, 1, 32_768, "operations per submission"),
        Parameter::integer("complete", 32, 1, 32_768, "completions to wait for, where a thread has to wait"),
        Parameter::integer(
            "bs",
            4096,
            1,
            1 << 24,
            "bytes per read; with `direct` a multiple of the device's block",
        ),
        Parameter::flag("random", true, "read random blocks instead of one after the other"),
        Parameter::flag(
            "polled",
            false,
            "look for completions instead of waiting for interrupts (IORING_SETUP_IOPOLL)",
        ),
        Parameter::flag("fixed-buffers", true, "register the buffers with the ring"),
        Parameter::flag("registered-files", true, "register the file with the ring"),
        Parameter::flag("registered-ring", true, "register the ring itself, where the kernel can (5.18)"),
        Parameter::flag("direct", true, "read past the page cache (O_DIRECT)"),
        Parameter::flag(
            "latency",
            false,
            "take the latency of every operation; costs two looks at the clock per batch",
        ),
        Parameter::decimal("runtime", 5.0, 0.01, 86_400.0, "seconds for which is measured"),
    ]
}

/// The metrics, which depend on whether bytes move and latencies are taken.
pub(super) fn metrics(moves: bool, latency: bool) -> Vec<Metric> {
    let iops = Metric::new(
        "iops",
        "IO/s",
        Direction::Higher,
        "IOPS",
        "operations of all threads per second: accepted ones with original semantics, completed ones with strict",
    );
    let mut metrics = vec![
        // Nobody is to take operations that do nothing for those of a device.
        if moves { iops } else { iops.titled("io-uring-nop") },
        Metric::new(
            "best-second",
            "IO/s",
            Direction::Higher,
            "IOPS of the best second",
            "the most in any of the seconds, which the original calls Maximum IOPS",
        )
        .titled("io-uring-best-second")
        .secondary(),
        Metric::new(
            "ios-per-call",
            "IO/call",
            Direction::Higher,
            "operations per system call",
            "operations per entry into the kernel",
        )
        .titled("io-uring-ios-per-call")
        .secondary(),
    ];
    if moves {
        metrics.push(
            Metric::new(
                "bandwidth",
                "MiB/s",
                Direction::Higher,
                "bandwidth in MiB/s",
                "bytes of the operations per second",
            )
            .titled("io-uring-bandwidth")
            .secondary(),
        );
    }
    if latency {
        metrics.extend(PERCENTILES.map(|(name, percent)| {
            let help = format!("time from submission to completion that {percent} % of the operations kept");
            Metric::new(name, "us", Direction::Lower, "latency in us", &help)
                .by(Statistic::Median)
                .titled(&format!("io-uring-{name}"))
                .secondary()
        }));
    }
    metrics
}
