//! Alignment: taking the drift of a session out of paired values.

/// Blocks whose centres give the running median. Five follow a drift closely and ignore two outliers.
const WINDOW: usize = 5;

/// Subtracts from both members of each block the running median of the block centres.
///
/// Swapping the two members of a block leaves its centre, and so every residual, as it was. The permutation test rests
/// on this. Adding a constant to one side moves all centres equally, so it changes no residual relative to another:
/// alignment and a hypothesised shift commute, and a test can be inverted after aligning once.
pub(crate) fn aligned(base: &[f64], new: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let centres: Vec<f64> = base.iter().zip(new).map(|(a, b)| a / 2.0 + b / 2.0).collect();
    let drift: Vec<f64> = (0..centres.len()).map(|block| running_median(&centres, block)).collect();
    let residuals = |side: &[f64]| side.iter().zip(&drift).map(|(value, centre)| value - centre).collect();
    (residuals(base), residuals(new))
}

/// The median of the window around `block`, which is shorter at the ends.
fn running_median(centres: &[f64], block: usize) -> f64 {
    let from = block.saturating_sub(WINDOW / 2);
    let to = (block + WINDOW / 2 + 1).min(centres.len());
    let mut window = [0.0; WINDOW];
    let window = &mut window[..to - from];
    window.copy_from_slice(&centres[from..to]);
    window.sort_by(f64::total_cmp);
    let middle = window.len() / 2;
    if window.len() % 2 == 1 { window[middle] } else { window[middle - 1] / 2.0 + window[middle] / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_drift_is_taken_out_of_the_inner_blocks() {
        let base: Vec<f64> = (0..9).map(|block| f64::from(block) * 10.0).collect();
        let new: Vec<f64> = base.iter().map(|value| value + 1.0).collect();
        let (base, new) = aligned(&base, &new);
        assert_eq!(&base[2..7], &[-0.5; 5]);
        assert_eq!(&new[2..7], &[0.5; 5]);
    }

    #[test]
    fn swapping_the_members_of_a_block_leaves_the_residuals() {
        let (base, new) = ([1.0, 2.5, 3.1, 4.7, 4.9, 6.0], [1.2, 2.0, 3.9, 4.0, 5.5, 6.3]);
        let (mut swapped_base, mut swapped_new) = (base, new);
        std::mem::swap(&mut swapped_base[3], &mut swapped_new[3]);
        let (plain, swapped) = (aligned(&base, &new), aligned(&swapped_base, &swapped_new));
        assert_eq!((plain.0[3], plain.1[3]), (swapped.1[3], swapped.0[3]));
        assert_eq!((plain.0[4], plain.1[4]), (swapped.0[4], swapped.1[4]));
    }
}
