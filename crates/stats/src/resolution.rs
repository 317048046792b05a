/// The step of the clock or counter behind `values`, when it is coarse enough to show: at least half of them repeat
/// another one, and all lie a whole number of steps apart. A difference below it is below resolution.
///
/// `None` when no step shows, and when all values are equal, which says nothing about its size.
pub fn tick(values: &[f64]) -> Option<f64> {
    let mut distinct: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let all = distinct.len();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    if distinct.len() * 2 > all {
        return None;
    }
    let gaps = || distinct.windows(2).map(|pair| pair[1] - pair[0]);
    let step = gaps().min_by(f64::total_cmp)?;
    let whole = |gap: f64| ((gap / step).round() - gap / step).abs() < 1e-3;
    gaps().all(whole).then_some(step)
}
