use experiment::{AskError, Header, Params, Point, Variant};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;

/// All that a run may come to, in the order in which it is done: block after block, and in each block every point.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The points of all workloads, in the order of the experiment.
    pub slots: Vec<Slot>,
    /// The most blocks that a point may get.
    pub cap: u32,
    seed: u64,
}

/// One workload at one point.
#[derive(Debug, Clone)]
pub struct Slot {
    /// The label of the workload.
    pub label: String,
    /// The workload's name.
    pub workload: String,
    /// The point.
    pub point: Point,
    /// What runs in each of its blocks, the baseline first. A variant that changes nothing for this workload is not
    /// among them.
    pub sides: Vec<Side>,
}

/// What one trial of a block runs.
#[derive(Debug, Clone)]
pub struct Side {
    /// The variant.
    pub variant: Variant,
    /// Whether it is the second run of the baseline.
    pub twin: bool,
    /// The workload's parameters under the variant.
    pub params: Params,
}

impl Plan {
    /// The plan of a run.
    ///
    /// # Errors
    /// When a parameter is not one of its workload: the header was not made from a checked experiment.
    pub fn of(header: &Header) -> Result<Plan, AskError> {
        let experiment = &header.experiment;
        let mut slots = Vec::new();
        for (entry, description) in experiment.workloads.iter().zip(&header.descriptions) {
            let mut sides = Vec::new();
            for (place, variant) in experiment.variants.iter().enumerate() {
                let params = experiment.params(entry, variant, description)?;
                if place > 0 && experiment.applies(variant, description).is_err() {
                    continue;
                }
                sides.push(Side { variant: variant.clone(), twin: false, params: params.clone() });
                if place == 0 && experiment.aa {
                    sides.push(Side { variant: variant.clone(), twin: true, params });
                }
            }
            slots.extend(entry.points.iter().map(|point| Slot {
                label: entry.label.clone(),
                workload: entry.workload.clone(),
                point: point.clone(),
                sides: sides.clone(),
            }));
        }
        Ok(Plan { slots, cap: experiment.blocks.cap(), seed: header.seed })
    }

    /// The order of a block's trials, as places in [`Slot::sides`]. It depends on nothing but the seed and the
    /// block, so that a resumed run goes on in the order that it began with.
    pub fn order(&self, slot: &Slot, block: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..slot.sides.len()).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(self.block_seed(slot, block)));
        order
    }

    /// The seed of a block: for its order, and handed to each of its trials, so that all variants draw alike.
    pub fn block_seed(&self, slot: &Slot, block: u32) -> u64 {
        let words =
            [slot.label.as_bytes(), b"\0", slot.point.as_str().as_bytes(), b"\0", &block.to_le_bytes()];
        words
            .iter()
            .flat_map(|word| word.iter())
            .fold(self.seed ^ FNV_OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
    }
}

// The constants of the Fowler-Noll-Vo hash: a hash that stays the same in every build.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
