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

/// What one boot of a block is for: the trials of one side, at every point.
#[derive(Debug, Clone, PartialEq)]
pub struct Boot {
    /// The variant.
    pub variant: Variant,
    /// Whether it is the second boot of the baseline.
    pub twin: bool,
}

impl Slot {
    /// What runs at this point in a boot, if anything does.
    pub fn side(&self, boot: &Boot) -> Option<&Side> {
        self.sides.iter().find(|side| side.variant.name == boot.variant.name && side.twin == boot.twin)
    }
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
        shuffled((0..slot.sides.len()).collect(), self.block_seed(slot, block))
    }

    /// The seed of a block: for its order, and handed to each of its trials, so that all variants draw alike.
    pub fn block_seed(&self, slot: &Slot, block: u32) -> u64 {
        self.seed_of([slot.label.as_bytes(), slot.point.as_str().as_bytes(), &block.to_le_bytes()])
    }

    /// The boots of a block on a target that boots, in the order of the variants.
    pub fn boots(&self) -> Vec<Boot> {
        let mut boots = Vec::new();
        for side in self.slots.iter().flat_map(|slot| &slot.sides) {
            let boot = Boot { variant: side.variant.clone(), twin: side.twin };
            if !boots.contains(&boot) {
                boots.push(boot);
            }
        }
        boots
    }

    /// The same in the order of a block; as in [`Plan::order`], a resumed run has it again.
    pub fn boot_order(&self, block: u32) -> Vec<Boot> {
        shuffled(self.boots(), self.seed_of([b"boots", b"", &block.to_le_bytes()]))
    }

    /// The order in which a boot takes its points, as places in [`Plan::slots`].
    pub fn point_order(&self, boot: &Boot, block: u32) -> Vec<usize> {
        let twin: &[u8] = if boot.twin { b"twin" } else { b"" };
        let seed = self.seed_of([boot.variant.name.as_bytes(), twin, &block.to_le_bytes()]);
        shuffled(self.points_of(boot), seed)
    }

    /// The points that run in a boot, as places in [`Plan::slots`], in the order of the experiment.
    pub fn points_of(&self, boot: &Boot) -> Vec<usize> {
        let places = self.slots.iter().enumerate().filter(|(_, slot)| slot.side(boot).is_some());
        places.map(|(place, _)| place).collect()
    }

    fn seed_of(&self, words: [&[u8]; 3]) -> u64 {
        let [first, second, third] = words;
        [first, b"\0", second, b"\0", third]
            .into_iter()
            .flatten()
            .fold(self.seed ^ FNV_OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
    }
}

fn shuffled<T>(mut all: Vec<T>, seed: u64) -> Vec<T> {
    all.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    all
}

// The constants of the Fowler-Noll-Vo hash: a hash that stays the same in every build.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
