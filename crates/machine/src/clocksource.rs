//! The clock that the kernel goes by.

use crate::Root;
use std::time::{Duration, Instant};

/// What a kernel goes by until it has measured the clock that it will keep.
const MAKESHIFTS: &[&str] = &["jiffies", "refined-jiffies", "tsc-early"];
/// How long it may take to measure it: it does so for a second, soon after its start.
const PATIENCE: Duration = Duration::from_secs(5);

/// The clock source in force, cheaply: a change while a trial runs makes its figures worthless.
pub fn clocksource(root: &Root) -> Option<String> {
    let current = root.text("sys/devices/system/clocksource/clocksource0/current_clocksource").ok();
    current.filter(|name| !name.is_empty())
}

/// As [`clocksource`]; waits for a kernel that has just started to settle for one.
pub fn settled_clocksource(root: &Root) -> Option<String> {
    let began = Instant::now();
    loop {
        let now = clocksource(root);
        let settled = now.as_deref().is_none_or(|name| !MAKESHIFTS.contains(&name));
        if settled || !root.is_real() || began.elapsed() > PATIENCE {
            return now;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
