//! The threads that do the work, and how their work is timed and checked.

use super::Plan;
use super::arrays::{Arrays, Part};
use super::kernels::{Kernels, first_touch};
use crate::barrier::Barrier;
use crate::clock::now_ns;
use crate::{Failure, crew, threads};

/// One of the four loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    Copy,
    Scale,
    Add,
    Triad,
}

impl Kernel {
    /// In the order in which an iteration does them.
    pub const ALL: [Kernel; 4] = [Kernel::Copy, Kernel::Scale, Kernel::Add, Kernel::Triad];

    /// The name of its metric.
    pub fn metric(self) -> &'static str {
        match self {
            Kernel::Copy => "copy",
            Kernel::Scale => "scale",
            Kernel::Add => "add",
            Kernel::Triad => "triad",
        }
    }

    /// The label of its row.
    pub fn row(self) -> &'static str {
        match self {
            Kernel::Copy => "Copy",
            Kernel::Scale => "Scale",
            Kernel::Add => "Add",
            Kernel::Triad => "Triad",
        }
    }

    /// The bytes that it is said to move for each element. What a store reads first is not counted.
    pub fn bytes_per_element(self) -> usize {
        let arrays = match self {
            Kernel::Copy | Kernel::Scale => 2,
            Kernel::Add | Kernel::Triad => 3,
        };
        arrays * size_of::<f64>()
    }
}

/// The factor of Scale and Triad.
const SCALAR: f64 = 3.0;

/// The largest relative error that an element may have.
const TOLERANCE: f64 = 1e-13;

/// When the team began and had ended each kernel of one iteration, in the order of [`Kernel::ALL`].
pub type Iteration = [(u64, u64); 4];

/// Does all iterations and checks the arrays that they leave.
///
/// # Errors
/// When there is no memory or a thread cannot be started, and when an element is not what it should be.
pub fn run(plan: &Plan) -> Result<Vec<Iteration>, Failure> {
    // The first use of the clock looks for it, which is not to be measured.
    now_ns();
    let mut arrays = Arrays::new(plan.elements).map_err(|error| {
        Failure::Refused(format!("no memory for three arrays of {} elements: {error}", plan.elements))
    })?;
    let barrier = Barrier::new(plan.threads as u32, plan.turns());
    let barrier = &barrier;
    let mut parts = arrays.parts(plan.threads).into_iter().enumerate();
    // This thread is the first of the team, as in a program with OpenMP.
    let own = parts.next();
    threads::scope(crew::STACK_BYTES, |team| {
        for (index, mut part) in parts {
            if let Err(error) = team.start(move || member(plan, index, &mut part, barrier)) {
                barrier.cancel();
                return Err(Failure::Spawn { nth: index + 1, count: plan.threads, why: error.to_string() });
            }
        }
        let done = own.map(|(index, mut part)| member(plan, index, &mut part, barrier)).unwrap_or_else(left);
        for ended in team.join() {
            ended.into_result().unwrap_or_else(left)?;
        }
        done
    })
}

/// What the `index`-th thread does, first to last.
fn member(plan: &Plan, index: usize, part: &mut Part, barrier: &Barrier) -> Result<Vec<Iteration>, Failure> {
    let placed = plan.place(index);
    let mut iterations = Vec::with_capacity(plan.iterations);
    // The first touch. The original times the second loop to learn about its clock.
    let prepared = together(barrier, || part.fill()).and_then(|_| together(barrier, || part.double()));
    if prepared.is_none() {
        return left();
    }
    for _ in 0..plan.iterations {
        let mut times = Iteration::default();
        for (kernel, time) in Kernel::ALL.into_iter().zip(&mut times) {
            match together(barrier, || part.run(kernel, plan.kernels)) {
                Some(span) => *time = span,
                None => return left(),
            }
        }
        iterations.push(times);
    }
    placed?;
    part.check(index, plan.expected_iterations)?;
    Ok(iterations)
}

/// Does `work` between two meetings of the team. Gives the times before the first and after the second: what is
/// measured holds both. `None` if the team is not complete.
fn together(barrier: &Barrier, work: impl FnOnce()) -> Option<(u64, u64)> {
    let start_ns = now_ns();
    if !barrier.wait() {
        return None;
    }
    work();
    barrier.wait().then(|| (start_ns, now_ns()))
}

fn left<T>() -> Result<T, Failure> {
    Err(Failure::Invariant("a thread left the team before the work was done".into()))
}

impl Part<'_> {
    fn fill(&mut self) {
        first_touch(self.a, self.b, self.c);
    }

    fn double(&mut self) {
        for a in self.a.iter_mut() {
            *a *= 2.0;
        }
    }

    fn run(&mut self, kernel: Kernel, kernels: &Kernels) {
        match kernel {
            Kernel::Copy => (kernels.copy)(self.a, self.c),
            Kernel::Scale => (kernels.scale)(self.b, self.c, SCALAR),
            Kernel::Add => (kernels.add)(self.a, self.b, self.c),
            Kernel::Triad => (kernels.triad)(self.a, self.b, self.c, SCALAR),
        }
    }

    /// The invariant: every element is what so many iterations make of it. The original accepts it if the mean error is
    /// small.
    fn check(&self, index: usize, iterations: usize) -> Result<(), Failure> {
        let [mut a, mut b, mut c] = [2.0, 2.0, 0.0];
        for _ in 0..iterations {
            c = a;
            b = SCALAR * c;
            c = a + b;
            a = b + SCALAR * c;
        }
        for (name, array, expected) in [("a", &self.a, a), ("b", &self.b, b), ("c", &self.c, c)] {
            let good = |value: &f64| (value - expected).abs() <= TOLERANCE * f64::abs(expected);
            if let Some(wrong) = array.iter().find(|value| !good(value)) {
                return Err(Failure::Invariant(format!(
                    "array {name} holds {wrong} in the part of thread {index}, and should hold {expected}"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::kernels::THROUGH_CACHES;

    #[test]
    fn one_wrong_element_of_any_array_is_found() {
        let mut arrays = Arrays::new(1000).unwrap();
        let mut part = arrays.parts(1).remove(0);
        part.fill();
        part.double();
        for kernel in [Kernel::ALL, Kernel::ALL].concat() {
            part.run(kernel, &THROUGH_CACHES);
        }
        part.check(0, 2).unwrap();
        assert!(part.check(0, 3).is_err());
        for array in 0..3 {
            let element = match array {
                0 => &mut part.a[999],
                1 => &mut part.b[500],
                _ => &mut part.c[0],
            };
            let right = *element;
            *element = right * (1.0 + 1e-12);
            let error = part.check(0, 2).unwrap_err().to_string();
            assert!(error.contains("and should hold"), "{error}");
            match array {
                0 => part.a[999] = right,
                1 => part.b[500] = right,
                _ => part.c[0] = right,
            }
        }
    }
}
