//! Claims from more than one test: several looks at a growing run, several cells of a report.

/// When a run that stops as soon as it is decided is looked at, in blocks, and the two-sided level of each look. The
/// levels add up to an overall rate of about 5 %, since one look resembles the next.
pub const LOOKS: [(usize, f64); 4] = [(8, 0.008), (12, 0.012), (20, 0.02), (40, 0.03)];

/// The overall level that [`LOOKS`] spends.
const OVERALL: f64 = 0.05;

/// The level of the look after `blocks` blocks; `None` when that is no look.
pub fn look_level(blocks: usize) -> Option<f64> {
    LOOKS.iter().find(|(at, _)| *at == blocks).map(|(_, level)| *level)
}

/// One p value from the looks taken, each with its number of blocks: at most 0.05 exactly when one of the looks was
/// within its level, so that it can enter [`holm`] beside others. What is not one of [`LOOKS`] counts for nothing.
pub fn sequential_p(looks: &[(usize, f64)]) -> f64 {
    looks.iter().filter_map(|(blocks, p)| Some(p * (OVERALL / look_level(*blocks)?))).fold(1.0, f64::min)
}

/// Holm's adjusted p values, in the order given: claims with one of at most 5 % are wrong, any of them, at most 5 % of
/// the time.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0;
    for (done, cell) in order.into_iter().enumerate() {
        let left = (p_values.len() - done) as f64;
        largest = f64::max(largest, (p_values[cell] * left).min(1.0));
        adjusted[cell] = largest;
    }
    adjusted
}
