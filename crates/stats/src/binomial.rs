/// The probability that at least `at_least` of `trials` independent events happen, each with probability `rate`
/// (taken as 0 or 1 when outside that range).
pub fn binomial_tail(at_least: u64, trials: u64, rate: f64) -> f64 {
    if at_least == 0 {
        return 1.0;
    }
    if at_least > trials || rate.is_nan() || rate <= 0.0 {
        return 0.0;
    }
    if rate >= 1.0 {
        return 1.0;
    }
    // The logarithm of each term from the one before; a product of so many small factors would underflow.
    let odds = (rate / (1.0 - rate)).ln();
    let mut term = trials as f64 * (-rate).ln_1p();
    let mut tail = 0.0;
    for successes in 0..=trials {
        if successes >= at_least {
            tail += term.exp();
        }
        term += odds + ((trials - successes) as f64 / (successes + 1) as f64).ln();
    }
    f64::min(tail, 1.0)
}
