//! The order of the deck: which kind of operation follows which.

use super::operation::{Kind, Operation};
use rand::Rng;

/// What is known of the original's order: how often, of all times that the first kind stands there, the second follows.
/// It is what makes reads come in runs of 3.8 on average.
pub const STATED: [(Kind, Kind, f64); 10] = [
    (Kind::ReadX, Kind::ReadX, 0.738),
    (Kind::WriteX, Kind::WriteX, 0.346),
    (Kind::NtCreateX, Kind::ReadX, 0.33),
    (Kind::NtCreateX, Kind::NtCreateX, 0.23),
    (Kind::NtCreateX, Kind::Close, 0.19),
    (Kind::QueryPath, Kind::QueryPath, 0.37),
    (Kind::QueryPath, Kind::NtCreateX, 0.24),
    (Kind::Close, Kind::Close, 0.27),
    (Kind::Close, Kind::NtCreateX, 0.27),
    (Kind::Close, Kind::QueryPath, 0.27),
];

/// One value for each kind after each kind.
type Table = [[f64; Kind::COUNT]; Kind::COUNT];

/// One deck of all operations of `piles`, which are of one kind each, by its number. Every operation is drawn by the
/// probabilities of the original, from what is left.
pub fn merge(mut piles: [Vec<Operation>; Kind::COUNT], random: &mut impl Rng) -> Vec<Operation> {
    let mut left = std::array::from_fn(|kind| piles[kind].len() as f64);
    let weights = transitions(&left);
    let mut deck = Vec::with_capacity(piles.iter().map(Vec::len).sum());
    let mut last = Kind::Close as usize;
    while let Some(next) = draw(&weights[last], &left, random) {
        deck.extend(piles[next].pop());
        left[next] -= 1.0;
        last = next;
    }
    deck
}

/// The kind that comes next: by its weight and by how many are left of it. `None` if nothing is left.
fn draw(weights: &[f64; Kind::COUNT], left: &[f64; Kind::COUNT], random: &mut impl Rng) -> Option<usize> {
    let shares: [f64; Kind::COUNT] = std::array::from_fn(|kind| weights[kind] * left[kind]);
    // Between 0 and the sum; 53 bits are what a double holds.
    let mut point = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * shares.iter().sum::<f64>();
    let mut chosen = None;
    for (kind, share) in shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0) {
        chosen = Some(kind);
        point -= share;
        if point < 0.0 {
            break;
        }
    }
    chosen
}

/// For each kind after each kind a weight, such that a draw of weight times number left meets the stated probabilities,
/// and, where nothing is stated, such that every kind comes as often as it is there.
fn transitions(counts: &[f64; Kind::COUNT]) -> Table {
    let mut stated: Table = [[0.0; Kind::COUNT]; Kind::COUNT];
    for (after, next, share) in STATED {
        stated[after as usize][next as usize] = share * counts[after as usize];
    }
    // What is not stated is fitted by turns to what must come out of a kind and what must go into it.
    let is_free = |after: usize, next: usize| stated[after][next] == 0.0;
    let mut free: Table = std::array::from_fn(|after| {
        std::array::from_fn(|next| if is_free(after, next) { counts[after] * counts[next] } else { 0.0 })
    });
    for _ in 0..100 {
        for after in 0..Kind::COUNT {
            let wanted = counts[after] - stated[after].iter().sum::<f64>();
            let factor = scale(wanted, free[after].iter().sum());
            free[after].iter_mut().for_each(|value| *value *= factor);
        }
        for next in 0..Kind::COUNT {
            let wanted = counts[next] - stated.iter().map(|row| row[next]).sum::<f64>();
            let factor = scale(wanted, free.iter().map(|row| row[next]).sum());
            free.iter_mut().for_each(|row| row[next] *= factor);
        }
    }
    std::array::from_fn(|after| {
        std::array::from_fn(|next| (stated[after][next] + free[after][next]) / counts[next].max(1.0))
    })
}

fn scale(wanted: f64, found: f64) -> f64 {
    if found > 0.0 { wanted.max(0.0) / found } else { 0.0 }
}
