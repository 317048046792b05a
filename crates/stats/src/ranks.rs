//! Ranks of two sides of aligned values, one of them shifted.

/// The aligned values of both variants.
#[derive(Debug, Clone)]
pub(crate) struct Sides {
    base: Side,
    new: Side,
    tie: f64,
}

/// One variant's aligned values.
#[derive(Debug, Clone)]
struct Side {
    sorted: Vec<f64>,
    /// The block of each sorted value.
    blocks: Vec<usize>,
    /// By block: twice the mid-rank among this side's own values, less a constant.
    standing: Vec<i64>,
}

impl Sides {
    /// The two sides, by block. Values no further apart than `tie` count as equal.
    pub(crate) fn new((base, new): (Vec<f64>, Vec<f64>), tie: f64) -> Sides {
        Sides { base: Side::new(base, tie), new: Side::new(new, tie), tie }
    }

    /// The same with new in the place of base.
    pub(crate) fn swapped(&self) -> Sides {
        Sides { base: self.new.clone(), new: self.base.clone(), tie: self.tie }
    }

    /// The smallest and the largest difference between a new and a base value.
    pub(crate) fn range(&self) -> (f64, f64) {
        let ends =
            |side: &Side| side.sorted.first().copied().zip(side.sorted.last().copied()).unwrap_or_default();
        let (base, new) = (ends(&self.base), ends(&self.new));
        (new.0 - base.1, new.1 - base.0)
    }

    /// The rank of the lower middle one of the n² differences.
    pub(crate) fn middle_rank(&self) -> usize {
        (self.base.sorted.len() * self.new.sorted.len()).div_ceil(2)
    }

    /// The median of the n² differences: the Hodges-Lehmann shift.
    pub(crate) fn median_shift(&self) -> f64 {
        let (all, middle) = (self.base.sorted.len() * self.new.sorted.len(), self.middle_rank());
        let lower = self.difference(middle);
        if all % 2 == 1 { lower } else { lower / 2.0 + self.difference(middle + 1) / 2.0 }
    }

    /// The `rank`th smallest difference between a new and a base value, from 1.
    ///
    /// Found by halving the range of floating point numbers, 64 times at most, and counting the differences below: no
    /// need to hold and sort all n² of them.
    pub(crate) fn difference(&self, rank: usize) -> f64 {
        let (low, high) = self.range();
        let (mut low, mut high) = (ordinal(low), ordinal(high));
        while low < high {
            // Rounds down, also where the sum is negative or would overflow.
            let middle = (low & high) + ((low ^ high) >> 1);
            if self.count_up_to(from_ordinal(middle)) >= rank { high = middle } else { low = middle + 1 }
        }
        from_ordinal(low)
    }

    /// How many of the differences are at most `limit`.
    fn count_up_to(&self, limit: f64) -> usize {
        let (mut count, mut reached) = (0, 0);
        // As the base value grows, so does the number of new values within the limit of it.
        for base in &self.base.sorted {
            while reached < self.new.sorted.len() && self.new.sorted[reached] - base <= limit {
                reached += 1;
            }
            count += reached;
        }
        count
    }
}

impl Side {
    fn new(values: Vec<f64>, tie: f64) -> Side {
        let mut blocks: Vec<usize> = (0..values.len()).collect();
        blocks.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let sorted: Vec<f64> = blocks.iter().map(|block| values[*block]).collect();
        let mut standing = vec![0; values.len()];
        for (block, below) in blocks.iter().zip(standings(&sorted, 0.0, &sorted, tie)) {
            standing[*block] = below;
        }
        Side { sorted, blocks, standing }
    }
}

/// Twice the difference of the mid-ranks of new and base in each block, among all values together, when new is moved
/// down by `shift`.
pub(crate) fn signed_ranks(sides: &Sides, shift: f64) -> Vec<i64> {
    let Sides { base, new, tie } = sides;
    let mut signed: Vec<i64> =
        new.standing.iter().zip(&base.standing).map(|(new, base)| new - base).collect();
    for (block, below) in new.blocks.iter().zip(standings(&new.sorted, -shift, &base.sorted, *tie)) {
        signed[*block] += below;
    }
    for (block, below) in base.blocks.iter().zip(standings(&base.sorted, shift, &new.sorted, *tie)) {
        signed[*block] -= below;
    }
    signed
}

/// For each of `values`, moved up by `shift`: twice the number of `others` below it, plus those tied with it. Both are
/// sorted.
fn standings(values: &[f64], shift: f64, others: &[f64], tie: f64) -> impl Iterator<Item = i64> {
    let (mut below, mut up_to) = (0, 0);
    values.iter().map(move |value| {
        let value = value + shift;
        while below < others.len() && others[below] < value - tie {
            below += 1;
        }
        while up_to < others.len() && others[up_to] <= value + tie {
            up_to += 1;
        }
        (below + up_to) as i64
    })
}

/// The place of a finite number in the order of all of them.
fn ordinal(value: f64) -> i64 {
    // Adding 0 makes -0.0 the same as 0.0.
    let bits = (value + 0.0).to_bits() as i64;
    if bits < 0 { i64::MIN - bits } else { bits }
}

fn from_ordinal(ordinal: i64) -> f64 {
    let bits = if ordinal < 0 { i64::MIN - ordinal } else { ordinal };
    f64::from_bits(bits as u64)
}
