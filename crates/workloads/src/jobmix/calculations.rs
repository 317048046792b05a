//! Calculations: equations, projections, zeros, functions, series, primes, sorting.

use crate::Failure;
use crate::random::Random;
use std::f64::consts::TAU;
use std::hint::black_box;

/// Solves linear systems by elimination, each made from a solution that is known.
pub fn linear_systems() -> Result<(), Failure> {
    const SYSTEMS: usize = 100;
    const N: usize = 20;
    for system in 0..SYSTEMS {
        // A diagonal that outweighs its row keeps the elimination stable without a search for pivots.
        let entry = |row: usize, column: usize| match row == column {
            true => 4.0 * N as f64,
            false => ((row * 7 + column * 3 + system) % 5) as f64,
        };
        let solution = |row: usize| (row + system + 1) as f64;
        let mut rows: [[f64; N + 1]; N] = [[0.0; N + 1]; N];
        for (index, row) in rows.iter_mut().enumerate() {
            row.iter_mut().take(N).enumerate().for_each(|(column, value)| *value = entry(index, column));
            row[N] = (0..N).map(|column| entry(index, column) * solution(column)).sum();
        }
        let found = eliminate(black_box(rows));
        let wrong = (0..N).find(|row| (found[*row] - solution(*row)).abs() > 1e-6);
        check(wrong.is_none(), "the solution of a linear system")?;
    }
    Ok(())
}

fn eliminate<const N: usize, const WIDTH: usize>(mut rows: [[f64; WIDTH]; N]) -> [f64; N] {
    for pivot in 0..N {
        let pivot_row = rows[pivot];
        for row in &mut rows[pivot + 1..] {
            let factor = row[pivot] / pivot_row[pivot];
            (pivot..WIDTH).for_each(|column| row[column] -= factor * pivot_row[column]);
        }
    }
    let mut solution = [0.0; N];
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|column| rows[row][column] * solution[column]).sum();
        solution[row] = (rows[row][WIDTH - 1] - known) / rows[row][row];
    }
    solution
}

type Matrix = [[f64; 4]; 4];

/// Turns the corners of a cube around an axis by a small angle until they have come round, moves and projects them
/// after each turn.
pub fn projections() -> Result<(), Failure> {
    const TURNS: u32 = 1000;
    const DISTANCE: f64 = 10.0;
    let (sine, cosine) = black_box(TAU / f64::from(TURNS)).sin_cos();
    let turn: Matrix =
        [[cosine, -sine, 0.0, 0.0], [sine, cosine, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];
    let away: Matrix =
        [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, DISTANCE], [0.0, 0.0, 0.0, 1.0]];
    let corner = |index: usize| {
        let side = |bit: usize| if index >> bit & 1 == 1 { 1.0 } else { -1.0 };
        [side(0), side(1), side(2), 1.0]
    };
    let mut turned: Matrix =
        std::array::from_fn(|row| std::array::from_fn(|column| f64::from(row == column)));
    let mut largest: f64 = 0.0;
    for _ in 0..TURNS {
        turned = product(&turn, &turned);
        let seen = product(&away, &turned);
        for index in 0..8 {
            let [x, y, z, _] = applied(&seen, &corner(index));
            largest = largest.max((x / z).abs()).max((y / z).abs());
        }
    }
    // A corner of the front side comes to the axis of x or y once in a turn.
    let nearest = 2_f64.sqrt() / (DISTANCE - 1.0);
    let back: f64 = (0..8).map(|index| distance(&applied(&turned, &corner(index)), &corner(index))).sum();
    check(back < 1e-9 && (largest - nearest).abs() < 1e-6, "a projection")
}

fn product(left: &Matrix, right: &Matrix) -> Matrix {
    let entry = |row: usize, column: usize| (0..4).map(|k| left[row][k] * right[k][column]).sum();
    std::array::from_fn(|row| std::array::from_fn(|column| entry(row, column)))
}

fn applied(matrix: &Matrix, point: &[f64; 4]) -> [f64; 4] {
    std::array::from_fn(|row| (0..4).map(|k| matrix[row][k] * point[k]).sum())
}

fn distance(one: &[f64; 4], other: &[f64; 4]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).sum()
}

/// Finds zeros by Newton's method: of cubes less a number, and of the cosine less its argument.
pub fn zeros() -> Result<(), Failure> {
    const NUMBERS: u32 = 1000;
    for number in 1..=NUMBERS {
        let number = f64::from(black_box(number));
        let root = zero(number, |x| x * x * x - number, |x| 3.0 * x * x);
        check((root * root * root - number).abs() < 1e-9 * number, "a cube root")?;
        let fixed = zero(1.0 / number, |x| x.cos() - x, |x| -x.sin() - 1.0);
        check((fixed.cos() - fixed).abs() < 1e-12, "the number that is its own cosine")?;
    }
    Ok(())
}

fn zero(start: f64, value: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64) -> f64 {
    let mut x = start;
    for _ in 0..100 {
        let step = value(x) / slope(x);
        x -= step;
        if step.abs() <= 1e-15 * x.abs() {
            break;
        }
    }
    x
}

/// Numeric functions and their inverses.
pub fn numeric_functions() -> Result<(), Failure> {
    for number in 1..=2000_u32 {
        let x = f64::from(black_box(number)) / 100.0;
        let near = |found: f64| (found - x).abs() < 1e-9 * x;
        check(near(x.exp().ln()), "the logarithm of a power of e")?;
        check(near(x.sqrt().powi(2)), "the square of a square root")?;
        check(near(x.powf(2.5).powf(0.4)), "a power of a power")?;
        check(near(10_f64.powf(x.log10())), "the logarithm of a power of 10")?;
        check(near(x.floor() + x % 1.0) && (-x).abs() == x, "a whole part and a rest")?;
    }
    Ok(())
}

/// Sums the series of the exponential function, term by term.
pub fn series() -> Result<(), Failure> {
    for number in 1..=1000_u32 {
        let x = f64::from(black_box(number)) / 100.0;
        let (mut sum, mut term) = (1.0, 1.0);
        for n in 1..=60_u32 {
            term *= x / f64::from(n);
            sum += term;
        }
        check((sum - x.exp()).abs() < 1e-9 * sum, "a sum of a series")?;
    }
    Ok(())
}

/// The primes up to a million, five times.
pub fn sieve() -> Result<(), Failure> {
    const LIMIT: usize = 1_000_000;
    const PRIMES: usize = 78_498;
    for _ in 0..5 {
        let mut composite = vec![false; LIMIT + 1];
        let mut number = 2;
        while number * number <= LIMIT {
            if !composite[number] {
                (number * number..=LIMIT).step_by(number).for_each(|multiple| composite[multiple] = true);
            }
            number += 1;
        }
        let primes = composite[2..].iter().filter(|composite| !**composite).count();
        check(primes == PRIMES, "the number of primes")?;
    }
    Ok(())
}

/// Sorts random numbers and tables of names, and looks them up.
pub fn sorts(random: &mut Random) -> Result<(), Failure> {
    const NUMBERS: usize = 10_000;
    let mut numbers: Vec<u64> = (0..NUMBERS).map(|_| random.next()).collect();
    let sum = |numbers: &[u64]| numbers.iter().fold(0_u64, |sum, number| sum.wrapping_add(*number));
    let (before, wanted) = (sum(&numbers), numbers[NUMBERS / 2]);
    numbers.sort_unstable();
    check(numbers.is_sorted() && sum(&numbers) == before, "a sorted table")?;
    check(numbers.binary_search(&wanted).is_ok(), "the place of a number in a table")?;
    let mut names: Vec<String> = numbers.iter().rev().map(u64::to_string).collect();
    names.sort();
    check(names.is_sorted() && names.len() == NUMBERS, "a sorted table of names")
}

/// The circular functions and their inverses.
pub fn trigonometry() -> Result<(), Failure> {
    for number in 1..=2000_u32 {
        let angle = f64::from(black_box(number)) / 2001.0 * TAU / 4.0;
        let (sine, cosine, tangent) = (angle.sin(), angle.cos(), angle.tan());
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        check(near(sine * sine + cosine * cosine, 1.0), "a sum of squares of sine and cosine")?;
        check(near(tangent * cosine, sine), "a tangent")?;
        let inverses = [sine.asin(), cosine.acos(), tangent.atan(), sine.atan2(cosine)];
        check(inverses.iter().all(|inverse| near(*inverse, angle)), "an inverse")?;
    }
    Ok(())
}

fn check(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Invariant(format!("{what} is wrong"))) }
}
