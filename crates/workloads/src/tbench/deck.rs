//! The load that kduel brings along. It has as many operations of each kind as the original's file, the same totals of
//! bytes and the same structure of their order; it is made from such figures alone and holds nothing of that file.

use super::operation::{Kind, Operation};
use super::order;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

/// What the deck has of one kind.
#[derive(Debug)]
struct Suit {
    kind: Kind,
    count: u32,
    /// Characters of the paths: in turn `steps` lengths upwards from the first.
    paths: Spread,
    /// Sizes of as many operations, or nothing where the kind has none.
    sizes: &'static [Spread],
}

/// `count` values, which are in turn `first` and the `steps - 1` that follow at a distance of `step`.
#[derive(Debug, Clone, Copy)]
struct Spread {
    count: u32,
    first: u32,
    step: u32,
    steps: u32,
}

const fn same(count: u32, value: u32) -> Spread {
    Spread { count, first: value, step: 0, steps: 1 }
}

const fn spread(count: u32, first: u32, step: u32, steps: u32) -> Spread {
    Spread { count, first, step, steps }
}

const fn suit(kind: Kind, count: u32) -> Suit {
    Suit { kind, count, paths: same(count, 0), sizes: &[] }
}

impl Suit {
    const fn with_paths(mut self, shortest: u32, longest: u32) -> Suit {
        self.paths = spread(self.count, shortest, 1, longest - shortest + 1);
        self
    }

    const fn with_sizes(mut self, sizes: &'static [Spread]) -> Suit {
        self.sizes = sizes;
        self
    }

    fn operations(&self) -> impl Iterator<Item = Operation> {
        let sizes = self.sizes.iter().copied().flat_map(Spread::values).chain(std::iter::repeat(0));
        self.paths.values().zip(sizes).map(|(path, size)| Operation { kind: self.kind, path, size })
    }
}

impl Spread {
    fn values(self) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |nth| self.first + nth % self.steps * self.step)
    }
}

/// The values of which the original has a hundredth or more are its own. The rest is spread, such that the number of
/// distinct values, the totals and the percentiles of the messages are the original's. The last read and the last write
/// are what is missing to the total.
const SUITS: [Suit; 16] = [
    suit(Kind::Deltree, 2).with_paths(17, 17),
    suit(Kind::Mkdir, 1).with_paths(39, 39),
    suit(Kind::Unlink, 16_000).with_paths(34, 45),
    suit(Kind::NtCreateX, 79_230).with_paths(34, 45),
    suit(Kind::Close, 58_200),
    // Two paths.
    suit(Kind::Rename, 3_355).with_paths(68, 90),
    suit(Kind::Flush, 5_553),
    suit(Kind::QueryPath, 71_814).with_paths(28, 51),
    suit(Kind::QueryFile, 12_585),
    suit(Kind::QueryFs, 13_168),
    suit(Kind::SetFile, 6_454),
    suit(Kind::LockX, 258),
    suit(Kind::UnlockX, 258),
    suit(Kind::FindFirst, 27_765).with_paths(28, 51).with_sizes(&[
        same(14_327, 0),
        same(12_383, 11),
        spread(706, 3, 1, 8),
        spread(349, 12, 1, 15),
    ]),
    suit(Kind::WriteX, 39_502).with_sizes(&[
        same(12_656, 65_536),
        same(9_943, 4_096),
        same(7_422, 1),
        same(1_679, 2_048),
        same(1_165, 8_192),
        spread(2_200, 120, 200, 18),
        spread(4_436, 4_543, 1_443, 35),
        same(1, 32_499),
    ]),
    suit(Kind::ReadX, 124_199).with_sizes(&[
        same(83_176, 4_096),
        same(16_643, 61_440),
        same(4_645, 2_048),
        same(4_645, 8_192),
        same(1_938, 16_384),
        same(1_155, 512),
        same(1_000, 1_536),
        spread(8_000, 24, 50, 30),
        spread(2_996, 1_743, 387, 29),
        same(1, 3_073),
    ]),
];

/// The operations of one pass. `seed` decides on their order and on nothing else.
pub fn shuffled(seed: u64) -> Vec<Operation> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut piles: [Vec<Operation>; Kind::COUNT] = Default::default();
    for suit in &SUITS {
        let pile = &mut piles[suit.kind as usize];
        pile.extend(suit.operations());
        pile.shuffle(&mut random);
    }
    order::merge(piles, &mut random)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tbench::operation::Exchange;
    use std::collections::{BTreeSet, HashMap};

    fn exchanges(operations: &[Operation]) -> Vec<Exchange> {
        operations.iter().map(|operation| operation.exchange().unwrap()).collect()
    }

    fn total(operations: &[Operation], kind: Kind) -> u64 {
        operations.iter().filter(|operation| operation.kind == kind).map(|one| u64::from(one.size)).sum()
    }

    /// By nearest rank, as the figures of the original are.
    fn percentile(values: impl Iterator<Item = u32>, percent: usize) -> u32 {
        let mut values: Vec<u32> = values.collect();
        values.sort_unstable();
        values[(values.len() * percent).div_ceil(100) - 1]
    }

    #[test]
    fn a_pass_has_the_operations_and_bytes_of_the_original() {
        let deck = shuffled(7);
        assert_eq!(deck.len(), 458_344);
        let payload: u64 = exchanges(&deck).iter().map(|exchange| u64::from(exchange.payload)).sum();
        assert_eq!(payload, 2_488_062_937);
        assert_eq!(total(&deck, Kind::ReadX), 1_472_088_767);
        assert_eq!(total(&deck, Kind::WriteX), 1_015_974_170);
        for (kind, count) in [
            (Kind::ReadX, 124_199),
            (Kind::NtCreateX, 79_230),
            (Kind::QueryPath, 71_814),
            (Kind::Close, 58_200),
            (Kind::WriteX, 39_502),
            (Kind::FindFirst, 27_765),
            (Kind::Unlink, 16_000),
            (Kind::QueryFs, 13_168),
            (Kind::QueryFile, 12_585),
            (Kind::SetFile, 6_454),
            (Kind::Flush, 5_553),
            (Kind::Rename, 3_355),
            (Kind::LockX, 258),
            (Kind::UnlockX, 258),
            (Kind::Deltree, 2),
            (Kind::Mkdir, 1),
            (Kind::Rmdir, 0),
        ] {
            assert_eq!(deck.iter().filter(|operation| operation.kind == kind).count(), count, "{kind:?}");
        }
    }

    #[test]
    fn sizes_are_spread_as_those_of_the_original() {
        let deck = shuffled(1);
        let sizes = |kind| deck.iter().filter(move |one| one.kind == kind).map(|one| one.size);
        let distinct = |kind| sizes(kind).collect::<BTreeSet<u32>>();
        assert_eq!(distinct(Kind::ReadX).len(), 67);
        assert_eq!(distinct(Kind::WriteX).len(), 59);
        assert_eq!(distinct(Kind::FindFirst), BTreeSet::from_iter([0].into_iter().chain(3..=26)));
        assert!(!distinct(Kind::ReadX).contains(&0) && !distinct(Kind::WriteX).contains(&0));
        let reads = [50, 75, 90, 100].map(|percent| percentile(sizes(Kind::ReadX), percent));
        assert_eq!(reads, [4_096, 4_096, 61_440, 61_440]);
        let writes = [50, 75].map(|percent| percentile(sizes(Kind::WriteX), percent));
        assert_eq!(writes, [4_096, 65_536]);
        assert_eq!((total(&deck, Kind::FindFirst) as f64 / 277.65).round(), 531.0);
    }

    #[test]
    fn messages_are_as_large_as_those_of_the_original() {
        let mut exchanges = exchanges(&shuffled(1));
        exchanges.retain(|exchange| exchange.request > 0);
        assert_eq!(exchanges.len(), 458_342);
        let (requests, answers) =
            (|| exchanges.iter().map(|one| one.request), || exchanges.iter().map(|one| one.answer));
        let mean = |sizes: &mut dyn Iterator<Item = u32>| {
            sizes.map(u64::from).sum::<u64>() as f64 / exchanges.len() as f64
        };
        assert_eq!((mean(&mut requests()).round(), mean(&mut answers()).round()), (2310.0, 3302.0));
        assert_eq!(
            [50, 90, 95, 99].map(|percent| percentile(requests(), percent)),
            [111, 162, 4_155, 65_595]
        );
        assert_eq!(
            [50, 75, 90, 99].map(|percent| percentile(answers(), percent)),
            [71, 1_595, 4_155, 61_499]
        );
    }

    #[test]
    fn the_order_has_the_structure_of_the_original_and_depends_on_the_seed_alone() {
        let deck = shuffled(3);
        assert!(deck == shuffled(3) && deck != shuffled(4));
        let mut follows: HashMap<(&str, &str), f64> = HashMap::new();
        let mut leaves: HashMap<&str, f64> = HashMap::new();
        for pair in deck.windows(2) {
            *follows.entry((pair[0].kind.word(), pair[1].kind.word())).or_default() += 1.0;
            *leaves.entry(pair[0].kind.word()).or_default() += 1.0;
        }
        for (after, next, share) in order::STATED {
            let found = follows[&(after.word(), next.word())] / leaves[after.word()];
            assert!((found - share).abs() < 0.01, "{} after {}: {found}", next.word(), after.word());
        }
        let is_read = |operation: &Operation| operation.kind == Kind::ReadX;
        let runs = deck.chunk_by(|one, next| is_read(one) == is_read(next)).filter(|run| is_read(&run[0]));
        let lengths: Vec<usize> = runs.map(<[Operation]>::len).collect();
        assert_eq!((124_199.0 / lengths.len() as f64 * 10.0).round(), 38.0);
        let longest = *lengths.iter().max().unwrap();
        assert!((20..60).contains(&longest), "{longest}");
    }
}
