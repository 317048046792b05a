//! What the CPUs spent their time on.

/// What all CPUs together spent their time on since the machine was started, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTicks {
    /// On tasks and interrupts.
    pub busy: u64,
    /// On nothing.
    pub idle: u64,
    /// Waiting for the hypervisor to give them a real CPU; `None` where the kernel does not count it.
    pub stolen: Option<u64>,
}

impl CpuTicks {
    /// Reads the first line of /proc/stat. `None` where it is not there or holds something else.
    pub fn parse(stat: &str) -> Option<CpuTicks> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        // The time of guests, which follows, is part of the first two.
        let [user, nice, system, idle, rest @ ..] = ticks.as_slice() else { return None };
        let later = |index: usize| rest.get(index).copied().unwrap_or(0);
        let (iowait, interrupts, soft_interrupts) = (later(0), later(1), later(2));
        let busy = [*user, *nice, *system, interrupts, soft_interrupts];
        Some(CpuTicks {
            busy: busy.into_iter().fold(0, u64::saturating_add),
            idle: idle.saturating_add(iowait),
            stolen: rest.get(3).copied(),
        })
    }

    /// The stolen time in nanoseconds.
    pub fn stolen_ns(&self) -> Option<u64> {
        self.stolen?.checked_mul(1_000_000_000)?.checked_div(rustix::param::clock_ticks_per_second())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernels_first_line_is_read_and_a_torn_one_is_not() {
        let now = "cpu  1 2 4 100 50 8 16 32 7 7\ncpu0 1 2 4 100 50 8 16 32 7 7\n";
        assert_eq!(CpuTicks::parse(now), Some(CpuTicks { busy: 31, idle: 150, stolen: Some(32) }));
        let old = "cpu  1 2 4 100\n";
        assert_eq!(CpuTicks::parse(old), Some(CpuTicks { busy: 7, idle: 100, stolen: None }));
        for torn in ["", "cpu", "cpu  1 2 4", "cpu  1 2 x 4", "cpu0 1 2 3 4\n", "cpu  -1 2 3 4"] {
            assert_eq!(CpuTicks::parse(torn), None, "{torn}");
        }
        let huge = format!("cpu  {0} {0} {0} {0} {0}\n", u64::MAX);
        assert_eq!(CpuTicks::parse(&huge).map(|ticks| ticks.busy), Some(u64::MAX));
    }
}
