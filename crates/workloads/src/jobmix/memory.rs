//! Memory: growing and shrinking the data segment, allocations, copies, strings.

use super::user::{LARGEST, pattern, sizes};
use crate::Failure;
use std::hint::black_box;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The data segment is grown by 1 MiB, then 1000 times cut by 64 KiB and grown again in steps of 4 KiB.
pub fn brk_test() -> Result<(), Failure> {
    grow_and_shrink(1000, |_| {})
}

/// The same 100 times, where every new page is written to at each 128th byte.
pub fn page_test() -> Result<(), Failure> {
    grow_and_shrink(100, |page| page.iter_mut().step_by(128).for_each(|byte| *byte = 1))
}

fn grow_and_shrink(rounds: usize, mut touch: impl FnMut(&mut [u8])) -> Result<(), Failure> {
    const STEP: usize = 4 * KIB;
    let start = data_end(0);
    // The allocator uses the same segment. What is below `start` is its own and stays, and nothing here allocates.
    let mut end = set_data_end(start + MIB)?;
    for _ in 0..rounds {
        end = set_data_end(end - 64 * KIB)?;
        for _ in 0..16 {
            end = set_data_end(end + STEP)?;
            // SAFETY: The segment now ends here, and this step of it, which is fresh, belongs to nobody else.
            touch(unsafe { std::slice::from_raw_parts_mut((end - STEP) as *mut u8, STEP) });
        }
    }
    set_data_end(start).map(drop)
}

/// Moves the end of the data segment, as `sbrk` does with one call, and makes sure that it is there.
fn set_data_end(wanted: usize) -> Result<usize, Failure> {
    match data_end(wanted) {
        end if end == wanted => Ok(end),
        _ => Err(Failure::Refused(
            "the data segment cannot grow by 1 MiB: too little memory, or a limit on it (ulimit -d, ulimit -v)".into(),
        )),
    }
}

/// The end of the data segment after the kernel was asked to move it; it stays where the kernel refuses.
fn data_end(wanted: usize) -> usize {
    // SAFETY: Above the present end there is nothing, and what is cut off below is what this file had added.
    unsafe { libc::syscall(libc::SYS_brk, wanted) as usize }
}

/// 100 rounds of a table of blocks of 1 to 8192 bytes, every other one zeroed, allocated and freed.
pub fn allocations() -> Result<(), Failure> {
    for round in 0..100 {
        let blocks: Vec<Vec<u8>> = (0..14)
            .map(|power| 1_usize << power)
            .map(|bytes| if bytes.ilog2() % 2 == 0 { Vec::with_capacity(bytes) } else { vec![0; bytes] })
            .map(|mut block| {
                block.resize(black_box(block.capacity().max(1)), 0);
                block
            })
            .collect();
        let bytes: usize = black_box(&blocks).iter().map(Vec::len).sum();
        if bytes < 16_383 || blocks.iter().any(|block| block.iter().any(|byte| *byte != 0)) {
            return Err(Failure::Invariant(format!(
                "{bytes} bytes were allocated in round {round}, or not zeroed"
            )));
        }
    }
    Ok(())
}

/// 100 times: a block is filled, searched, compared, copied and moved.
pub fn block_operations() -> Result<(), Failure> {
    let (mut one, mut other) = (vec![0_u8; LARGEST], vec![0_u8; LARGEST]);
    for round in 0..100_u8 {
        black_box(&mut one).fill(round);
        one[LARGEST - 1] = 255;
        let found = black_box(&one).iter().position(|byte| *byte == 255);
        black_box(&mut other).copy_from_slice(&one);
        let same = black_box(&one) == black_box(&other);
        black_box(&mut other).copy_within(1.., 0);
        if found != Some(LARGEST - 1) || !same || other[LARGEST - 2] != 255 || other[0] != round {
            return Err(Failure::Invariant(format!("a block has the wrong bytes in round {round}")));
        }
    }
    Ok(())
}

/// 1000 copies from memory to memory.
pub fn ram_copy() -> Result<(), Failure> {
    let source = pattern();
    let mut copy = [0; LARGEST];
    for size in sizes().take(1000) {
        black_box(&mut copy)[..size].copy_from_slice(&black_box(&source)[..size]);
    }
    match copy == source {
        true => Ok(()),
        false => Err(Failure::Invariant("the copy is not as its source".into())),
    }
}

/// 1000 times: strings are joined, compared, searched, cut and turned into numbers and back.
pub fn strings() -> Result<(), Failure> {
    for number in 0..1000_u32 {
        let joined =
            format!("{}-{}", black_box("the quick brown fox jumps over the lazy dog"), black_box(number));
        let upper = joined.to_uppercase();
        let dog = joined.find("dog").and_then(|at| joined.get(at..));
        let last = joined.rsplit('-').next().and_then(|digits| digits.parse::<u32>().ok());
        let words = joined.split(' ').count();
        if last != Some(number)
            || words != 9
            || upper == joined
            || dog.is_none_or(|dog| dog.len() > joined.len())
        {
            return Err(Failure::Invariant(format!("`{joined}` came apart wrongly")));
        }
    }
    Ok(())
}
