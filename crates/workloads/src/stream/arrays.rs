//! The three arrays, and the parts of them that threads have.

use crate::mapping::Mapping;
use rustix::mm::MapFlags;
use std::io;

/// Arrays a, b and c behind one another in memory, as the original's static arrays are. No page exists before its
/// first touch, which decides on its NUMA node.
#[derive(Debug)]
pub struct Arrays {
    mapping: Mapping,
    elements: usize,
}

/// The part of the arrays that one thread has.
#[derive(Debug)]
pub struct Part<'a> {
    pub a: &'a mut [f64],
    pub b: &'a mut [f64],
    pub c: &'a mut [f64],
}

impl Arrays {
    /// Arrays of `elements` numbers each.
    ///
    /// # Errors
    /// When the kernel refuses so much address space.
    pub fn new(elements: usize) -> io::Result<Arrays> {
        let bytes = elements.max(1).checked_mul(3 * size_of::<f64>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Arrays { mapping: Mapping::anonymous(bytes, MapFlags::PRIVATE)?, elements })
    }

    /// One part for each of `threads`, as a static schedule deals them out: in order, and the first ones have an element
    /// more where it does not come out even.
    pub fn parts(&mut self, threads: usize) -> Vec<Part<'_>> {
        let start = self.mapping.start().cast().as_ptr();
        // SAFETY: The mapping holds three times as many numbers, all zero or written, and is borrowed as a whole.
        let all = unsafe { std::slice::from_raw_parts_mut(start, 3 * self.elements) };
        let (mut a, rest) = all.split_at_mut(self.elements);
        let (mut b, mut c) = rest.split_at_mut(self.elements);
        let (share, odd) = (self.elements / threads, self.elements % threads);
        let part = |index| {
            let own = share + usize::from(index < odd);
            Part { a: take(&mut a, own), b: take(&mut b, own), c: take(&mut c, own) }
        };
        (0..threads).map(part).collect()
    }
}

fn take<'a>(rest: &mut &'a mut [f64], count: usize) -> &'a mut [f64] {
    let (own, others) = std::mem::take(rest).split_at_mut(count);
    *rest = others;
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_dealt_out_as_a_static_schedule_does() {
        let mut arrays = Arrays::new(11).unwrap();
        for (index, part) in arrays.parts(4).into_iter().enumerate() {
            part.a.fill(index as f64);
            part.c.fill(10.0 + index as f64);
        }
        let whole = &arrays.parts(1)[0];
        assert_eq!(whole.a, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0]);
        assert_eq!(whole.b, [0.0; 11]);
        assert_eq!((whole.c[0], whole.c[10]), (10.0, 13.0));
        assert_eq!(Arrays::new(2).unwrap().parts(3)[2].a.len(), 0);
    }
}
