//! The work of a request: matrices are multiplied in the naive way.

use crate::Failure;
use crate::mapping::Mapping;
use rustix::mm::MapFlags;
use std::sync::atomic::Ordering::Relaxed;

/// Two matrices and their product, which threads may share: then all of them write the same product.
#[derive(Debug)]
pub struct Matrices {
    /// The three behind each other.
    cells: Mapping,
    side: usize,
    touched: bool,
}

impl Matrices {
    /// Three matrices that together take at most `footprint_bytes`. Where they are not to be touched, no page of the first
    /// two is ever written, so that all their pages are the kernel's one page of zeros.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new(footprint_bytes: u64, touch: bool) -> Result<Matrices, Failure> {
        let side = (footprint_bytes / 3 / size_of::<u64>() as u64).isqrt() as usize;
        let bytes = (3 * side * side).max(1) * size_of::<u64>();
        let cells = Mapping::anonymous(bytes, MapFlags::PRIVATE).map_err(|error| {
            Failure::Refused(format!(
                "no room for matrices of {footprint_bytes} bytes: {error}; take a smaller footprint"
            ))
        })?;
        let matrices = Matrices { cells, side, touched: touch };
        if touch {
            let cells = matrices.cells.words();
            for row in 0..side {
                for column in 0..side {
                    let (first, second) = factors(row, column);
                    cells[row * side + column].store(first, Relaxed);
                    cells[(side + row) * side + column].store(second, Relaxed);
                }
            }
        }
        Ok(matrices)
    }

    /// Multiplies them. Each step of a sum is stored, as in the original, whose compiler cannot know that the product
    /// is not one of the factors.
    pub fn multiply(&self) {
        let side = self.side;
        if side == 0 {
            return;
        }
        let (first, rest) = self.cells.words().split_at(side * side);
        let (second, product) = rest.split_at(side * side);
        for (left, products) in first.chunks_exact(side).zip(product.chunks_exact(side)) {
            for (column, cell) in products.iter().enumerate().take(side) {
                let mut sum = 0_u64;
                cell.store(sum, Relaxed);
                for (left, right) in left.iter().zip(second.chunks_exact(side)) {
                    sum = sum.wrapping_add(left.load(Relaxed).wrapping_mul(right[column].load(Relaxed)));
                    cell.store(sum, Relaxed);
                }
            }
        }
    }

    /// The invariant: the product of matrices that were multiplied is what it must be.
    ///
    /// # Errors
    /// With the first cell that is not.
    pub fn check(&self) -> Result<(), Failure> {
        let side = self.side;
        let (cells, sums) = (self.cells.words(), self.sums());
        for row in 0..side {
            for column in 0..side {
                let found = cells[(2 * side + row) * side + column].load(Relaxed);
                let wanted = if self.touched { product(row, column, sums) } else { 0 };
                if found != wanted {
                    return Err(Failure::Invariant(format!(
                        "row {row}, column {column} of a product of matrices is {found} and not {wanted}"
                    )));
                }
            }
        }
        Ok(())
    }

    fn sums(&self) -> Sums {
        let index = 0..self.side as u64;
        Sums {
            ones: self.side as u64,
            indices: index.clone().sum(),
            squares: index.map(|index| index * index).sum(),
        }
    }
}

/// Sums over all indices of a row: of 1, of the index and of its square.
#[derive(Debug, Clone, Copy)]
struct Sums {
    ones: u64,
    indices: u64,
    squares: u64,
}

/// The cells of the two factors: sums of row and column that make no two rows or columns alike.
fn factors(row: usize, column: usize) -> (u64, u64) {
    let (row, column) = (row as u64, column as u64);
    (row + 2 * column + 1, 3 * row + column + 1)
}

/// A cell of their product in closed form: the sum over k of (row + 2 k + 1) (3 k + column + 1).
fn product(row: usize, column: usize, Sums { ones, indices, squares }: Sums) -> u64 {
    let (row, column) = (row as u64 + 1, column as u64 + 1);
    row * column * ones + (3 * row + 2 * column) * indices + 6 * squares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::alone;

    #[test]
    fn the_footprint_of_the_original_makes_matrices_of_its_size() {
        assert_eq!(Matrices::new(256 * 1024, false).unwrap().side, 104);
        assert_eq!(Matrices::new(0, true).unwrap().side, 0);
    }

    #[test]
    fn products_are_right_and_a_wrong_one_is_found() {
        for touch in [false, true] {
            for footprint in [0, 24, 4096, 50_000] {
                let matrices = Matrices::new(footprint, touch).unwrap();
                matrices.multiply();
                matrices.check().unwrap();
                if footprint > 0 {
                    let last = matrices.cells.words().last().unwrap();
                    last.fetch_add(1, Relaxed);
                    let error = matrices.check().unwrap_err().to_string();
                    assert!(error.contains("of a product"), "{error}");
                }
            }
        }
    }

    /// Kilobytes of memory of this process that are in use.
    fn resident_kb() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn factors_that_are_not_touched_take_no_memory() {
        alone("schbench::matrices::tests::factors_that_are_not_touched_take_no_memory", || {
            let third_kb = 256;
            for (touch, thirds) in [(false, 1), (true, 3)] {
                let before_kb = resident_kb();
                let matrices = Matrices::new(3 * third_kb * 1024, touch).unwrap();
                matrices.multiply();
                let taken_kb = resident_kb() - before_kb;
                assert!(
                    taken_kb.abs_diff(thirds * third_kb) < third_kb / 2,
                    "{taken_kb} KiB, touched: {touch}"
                );
            }
        });
    }
}
