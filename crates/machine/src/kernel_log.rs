//! The lines that the kernel logs while a trial runs.

use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// As many lines are kept; a storm is told by its number.
const LINES_MAX: usize = 100;
/// As many records are looked at, since a kernel in trouble may log faster than anybody reads.
const RECORDS_MAX: u32 = 20_000;
/// The kernel's longest record.
const RECORD_BYTES: usize = 8192;

/// The kernel log from a mark on. Absent without permission, or in a container that has no /dev/kmsg.
#[derive(Debug)]
pub struct KernelLog {
    device: Option<OwnedFd>,
}

impl KernelLog {
    /// Marks the end of the log.
    pub fn mark() -> KernelLog {
        KernelLog { device: device().filter(|device| seek(device, SeekFrom::End(0)).is_ok()) }
    }

    /// The lines that hold one of `words`, of all that the kernel still has of its log since it was started; a
    /// last line as in [`KernelLog::since`]. `None` where the log cannot be read.
    pub fn lines_with(words: &[&str]) -> Option<Vec<String>> {
        let device = device()?;
        let wanted = |line: &str| words.iter().any(|word| line.contains(word));
        Some(collect(|buffer| rustix::io::read(&device, buffer), wanted))
    }

    /// Whether the log can be read here.
    pub fn is_readable(&self) -> bool {
        self.device.is_some()
    }

    /// What the kernel has logged since the mark or the last call, a line each; a last line says how many are left
    /// out, when they are too many, and another one when the kernel has overwritten some before they were read.
    pub fn since(&self) -> Vec<String> {
        match &self.device {
            Some(device) => collect(|buffer| rustix::io::read(device, buffer), |_| true),
            None => Vec::new(),
        }
    }
}

/// The log, at its first line.
fn device() -> Option<OwnedFd> {
    open("/dev/kmsg", OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Whether by these lines the out-of-memory killer has ended `first` or a process that was started after it. Ids rise,
/// so one that is lower than `first` was there before. Where the log does not say whom it ended, it may have been one of
/// these.
pub fn oom_killed_since(lines: &[String], first: i32) -> bool {
    let mut victims = lines.iter().filter_map(|line| oom_victim(line)).peekable();
    match victims.peek().is_some() {
        true => victims.any(|victim| victim >= first),
        false => lines.iter().any(|line| line.contains("oom-kill") || line.contains("Out of memory")),
    }
}

/// The process that a line says was killed for want of memory, in either of the two forms in which the kernel says so.
fn oom_victim(line: &str) -> Option<i32> {
    let behind = match line.split_once("Killed process ") {
        Some((_, behind)) => behind,
        None => line.split_once("oom-kill:")?.1.split_once(",pid=")?.1,
    };
    behind.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

fn collect(
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut left_out, mut overrun) = (0_u64, false);
    let mut buffer = [0; RECORD_BYTES];
    for _ in 0..RECORDS_MAX {
        match read(&mut buffer) {
            // One read gives one record.
            Ok(length) if length > 0 => match parse(&buffer[..length]).filter(|line| wanted(line)) {
                Some(line) if lines.len() < LINES_MAX => lines.push(line),
                Some(_) => left_out += 1,
                None => {}
            },
            // The record at which we stood was overwritten; the next read goes on behind the gap.
            Err(Errno::PIPE) => overrun = true,
            Err(Errno::INTR) => {}
            // EAGAIN at the end; anything else will not get better either.
            Ok(_) | Err(_) => break,
        }
    }
    if left_out > 0 {
        lines.push(format!("(and {left_out} more lines)"));
    }
    if overrun {
        lines.push("(the kernel logged more than its buffer holds; some lines are lost)".into());
    }
    lines
}

/// A record is `PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT` and then, on lines of their own, properties. What
/// programs have written into the log has another facility than 0 and is passed over.
fn parse(record: &[u8]) -> Option<String> {
    let record = String::from_utf8_lossy(record);
    let (head, rest) = record.split_once(';')?;
    let mut head = head.split(',');
    let priority: u32 = head.next()?.parse().ok()?;
    let us: u64 = head.nth(1)?.parse().ok()?;
    // A message that ends in a newline of its own has it escaped.
    let text = rest.lines().next().unwrap_or_default().trim_end_matches("\\x0a");
    (priority >> 3 == 0).then(|| format!("[{:5}.{:06}] {text}", us / 1_000_000, us % 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A log device that gives these results one by one and then has no more.
    fn device(results: Vec<Result<String, Errno>>) -> impl FnMut(&mut [u8]) -> Result<usize, Errno> {
        let mut results = results.into_iter();
        move |buffer| {
            let text = results.next().unwrap_or(Err(Errno::AGAIN))?;
            buffer[..text.len()].copy_from_slice(text.as_bytes());
            Ok(text.len())
        }
    }

    #[test]
    fn kernel_lines_are_kept_and_others_are_not() {
        let records = vec![
            Ok("4,812,5123456,-;cpu 3: stalled\\x0a\n SUBSYSTEM=cpu\n".into()),
            Ok("12,813,5123457,-;systemd says something\n".into()),
            Err(Errno::INTR),
            Ok("3,814,5200000,-,caller=T1;Out of memory: Killed process 7 (x)\n".into()),
        ];
        let stalled = "[    5.123456] cpu 3: stalled";
        let killed = "[    5.200000] Out of memory: Killed process 7 (x)";
        assert_eq!(collect(device(records.clone()), |_| true), [stalled, killed]);
        assert_eq!(collect(device(records), |line| line.contains("memory")), [killed]);
    }

    #[test]
    fn the_victim_of_the_oom_killer_is_told_from_others() {
        let killed = |lines: &[&str], first| {
            oom_killed_since(&lines.iter().map(|line| line.to_string()).collect::<Vec<_>>(), first)
        };
        let whole = "Memory cgroup out of memory: Killed process 700 (tail) total-vm:9kB, anon-rss:8kB";
        let summary =
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task_memcg=/x,task=tail,pid=700,uid=0";
        for line in [whole, summary] {
            assert!(killed(&["cpu 3: stalled", line], 700) && killed(&[line], 699), "{line}");
            assert!(!killed(&[line], 701), "{line}");
        }
        assert!(killed(&["Out of memory: Killed process 5 (x)", whole], 700), "one of two");
        // Nothing says whom it ended.
        assert!(killed(&["stress invoked oom-killer: gfp_mask=0xcc0"], 700));
        assert!(!killed(&["cpu 3: stalled"], 1) && !killed(&[], 1));
    }

    #[test]
    fn a_storm_is_bounded_and_an_overrun_is_told() {
        let mut results: Vec<_> = (0..LINES_MAX + 7).map(|n| Ok(format!("4,{n},1,-;line\n"))).collect();
        results.insert(0, Err(Errno::PIPE));
        let lines = collect(device(results), |_| true);
        assert_eq!(lines.len(), LINES_MAX + 2);
        assert_eq!(lines[LINES_MAX], "(and 7 more lines)");
        assert!(lines[LINES_MAX + 1].contains("lost"));
    }

    proptest! {
        #[test]
        fn any_record_is_a_line_or_none(
            record in prop::collection::vec(any::<u8>(), 0..60),
            head in "[0-9,;-]{0,30}",
        ) {
            let _ = parse(&[head.as_bytes(), &record].concat());
        }
    }
}
