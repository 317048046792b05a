//! Additions, multiplications and divisions. Each operation needs the result of the one before, the operands come from
//! where the compiler cannot see them, and the result is known by another way.

use crate::Failure;
use std::fmt::Debug;
use std::hint::black_box;
use std::ops::{Add, Div, Mul, Sub};

/// How many operations a loop has.
const PER_LOOP: u64 = 8;

/// A whole number that wraps.
pub trait Whole: Copy + PartialEq + Debug {
    fn cut_from(number: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    /// A dividend, and a divisor below its root.
    const DIVISION: (Self, Self);
}

macro_rules! whole {
    ($($number:ty, $dividend:expr, $divisor:expr);*) => {$(
        impl Whole for $number {
            fn cut_from(number: u64) -> $number { number as $number }
            #[inline(always)]
            fn plus(self, other: $number) -> $number { self.wrapping_add(other) }
            #[inline(always)]
            fn times(self, other: $number) -> $number { self.wrapping_mul(other) }
            #[inline(always)]
            fn over(self, other: $number) -> $number { self.wrapping_div(other) }
            const DIVISION: ($number, $number) = ($dividend, $divisor);
        }
    )*};
}
whole!(i16, 30_011, 7; i32, 2_000_000_011, 31_013; i64, 9_000_000_000_000_000_011, 2_000_003);

/// Each number is the sum of the two before: the Fibonacci numbers.
pub fn add<T: Whole>(loops: u64) -> Result<(), Failure> {
    let (mut a, mut b) = black_box((T::cut_from(0), T::cut_from(1)));
    for _ in 0..loops {
        for _ in 0..PER_LOOP / 2 {
            a = a.plus(b);
            b = b.plus(a);
        }
    }
    expect("sum", a, T::cut_from(fibonacci(loops * PER_LOOP)))
}

/// Each number is the product of the two before: powers of an odd number with the Fibonacci numbers as exponents.
pub fn mul<T: Whole>(loops: u64) -> Result<(), Failure> {
    const BASE: u64 = 3;
    let (mut a, mut b) = black_box((T::cut_from(1), T::cut_from(BASE)));
    for _ in 0..loops {
        for _ in 0..PER_LOOP / 2 {
            a = a.times(b);
            b = b.times(a);
        }
    }
    expect("product", a, T::cut_from(power(BASE, fibonacci(loops * PER_LOOP))))
}

/// A number divided by a quotient of itself gives the divisor again, as long as that is below its root.
pub fn div<T: Whole>(loops: u64) -> Result<(), Failure> {
    let (dividend, divisor) = T::DIVISION;
    let (n, mut a) = black_box((dividend, divisor));
    let mut quotient = n;
    for _ in 0..loops {
        for _ in 0..PER_LOOP / 2 {
            quotient = n.over(a);
            a = n.over(quotient);
        }
    }
    expect("quotient", (quotient, a), (dividend.over(divisor), divisor))
}

/// A binary fraction. The numbers below are such that no result is ever rounded.
pub trait Fraction:
    Copy
    + PartialEq
    + Debug
    + From<f32>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
}
impl Fraction for f32 {}
impl Fraction for f64 {}

/// Half up and a quarter down.
pub fn add_float<T: Fraction>(loops: u64) -> Result<(), Failure> {
    let (mut a, half, quarter) = black_box((T::from(0.0), T::from(0.5), T::from(0.25)));
    for _ in 0..loops {
        for _ in 0..PER_LOOP / 2 {
            a = a + half;
            a = a - quarter;
        }
    }
    expect("sum", a, T::from((loops * PER_LOOP / 8) as f32))
}

/// Doubled and halved.
pub fn mul_float<T: Fraction>(loops: u64) -> Result<(), Failure> {
    let (mut a, two, half) = black_box((T::from(1.25), T::from(2.0), T::from(0.5)));
    for _ in 0..loops {
        for _ in 0..PER_LOOP / 2 {
            a = a * two;
            a = a * half;
        }
    }
    expect("product", a, T::from(1.25))
}

/// A number divided by a quotient of itself, which is no short fraction on the way.
pub fn div_float<T: Fraction>(loops: u64) -> Result<(), Failure> {
    let (n, mut a) = black_box((T::from(4.0), T::from(3.0)));
    let mut quotient = n;
    for _ in 0..loops {
        for _ in 0..PER_LOOP / 2 {
            quotient = n / a;
            a = n / quotient;
        }
    }
    expect("quotient", (quotient, a), (T::from(4.0) / T::from(3.0), T::from(3.0)))
}

fn expect<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), Failure> {
    match found == expected {
        true => Ok(()),
        false => Err(Failure::Invariant(format!("the {what} is {found:?} and not {expected:?}"))),
    }
}

/// The nth Fibonacci number, cut to 64 bits, by doubling n.
fn fibonacci(n: u64) -> u64 {
    // F(k) and F(k + 1), for the k that the leading bits of n make.
    let (mut a, mut b) = (0_u64, 1_u64);
    for bit in (0..u64::BITS - n.leading_zeros()).rev() {
        let even = a.wrapping_mul(b.wrapping_mul(2).wrapping_sub(a));
        let odd = a.wrapping_mul(a).wrapping_add(b.wrapping_mul(b));
        (a, b) = if n >> bit & 1 == 1 { (odd, even.wrapping_add(odd)) } else { (even, odd) };
    }
    a
}

/// `base` to the `exponent`, cut to 64 bits. The powers of an odd number repeat after 2^62, so that an exponent that
/// was cut to 64 bits itself is as good.
fn power(base: u64, exponent: u64) -> u64 {
    let (mut result, mut square, mut left) = (1_u64, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_way_to_the_result_is_right() {
        assert_eq!((0..10).map(fibonacci).collect::<Vec<_>>(), [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]);
        assert_eq!(fibonacci(90), 2_880_067_194_370_816_120);
        assert_eq!(power(3, 13), 1_594_323);
        for loops in [1, 7, 1000] {
            assert!(add::<i16>(loops).is_ok() && add::<i32>(loops).is_ok() && add::<i64>(loops).is_ok());
            assert!(mul::<i16>(loops).is_ok() && mul::<i32>(loops).is_ok() && mul::<i64>(loops).is_ok());
        }
    }

    #[test]
    fn a_wrong_result_is_told() {
        let error = expect("sum", 5, 4).unwrap_err().to_string();
        assert!(error.ends_with("the sum is 5 and not 4"), "{error}");
    }
}
