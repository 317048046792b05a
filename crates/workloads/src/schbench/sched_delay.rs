//! How long the scheduler let threads wait for a CPU, as the kernel counts it.

use std::fs;

/// The mean time in microseconds for which the calling thread was ready to run before it ran; `None` where the kernel does
/// not count it.
pub fn own_us() -> Option<f64> {
    mean_us(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// From the three numbers of a schedstat file: nanoseconds on a CPU, nanoseconds waiting for one, and turns.
fn mean_us(schedstat: &str) -> Option<f64> {
    let mut numbers = schedstat.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (_, waited_ns, turns) = (numbers.next()??, numbers.next()??, numbers.next()??);
    Some(waited_ns as f64 / 1000.0 / turns.max(1) as f64)
}

/// The mean over threads; `None` where none is known.
pub fn mean_of_threads(each_us: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let known: Vec<f64> = each_us.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_delay_of_a_thread_and_of_threads() {
        assert_eq!(mean_us("1000 6000 3\n"), Some(2.0));
        assert_eq!(mean_us("0 0 0\n"), Some(0.0));
        assert_eq!(mean_us("1000 6000"), None);
        assert_eq!(mean_us("a b c"), None);
        assert_eq!(mean_of_threads([Some(1.0), None, Some(2.0)]), Some(1.5));
        assert_eq!(mean_of_threads([None]), None);
    }
}
