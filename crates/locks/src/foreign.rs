//! Locks of other libraries behind the same interface.

mod pthread;

pub use pthread::{Pthread, PthreadPi};

use crate::{Lock, Unavailable};
use std::sync::PoisonError;

/// The mutex of Rust's standard library.
#[derive(Debug)]
pub struct Std(std::sync::Mutex<()>);

// SAFETY: the section runs while the guard lives.
unsafe impl Lock for Std {
    const NAME: &'static str = "std";
    const SUMMARY: &'static str = "std::sync::Mutex: spins about a hundred times, then sleeps on a futex";
    type Context = ();

    fn new() -> Result<Self, Unavailable> {
        Ok(Std(std::sync::Mutex::new(())))
    }

    #[inline(always)]
    fn with<R>(&self, _: &mut (), section: impl FnOnce() -> R) -> R {
        // It protects no value of its own that a panicking section could have left in disorder.
        let _guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        section()
    }
}

/// The mutex of parking_lot.
#[derive(Debug)]
pub struct ParkingLot(parking_lot::Mutex<()>);

// SAFETY: the section runs while the guard lives.
unsafe impl Lock for ParkingLot {
    const NAME: &'static str = "parking_lot";
    const SUMMARY: &'static str =
        "parking_lot: spins, then parks; now and then hands over to the first waiter";
    type Context = ();

    fn new() -> Result<Self, Unavailable> {
        Ok(ParkingLot(parking_lot::Mutex::new(())))
    }

    #[inline(always)]
    fn with<R>(&self, _: &mut (), section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock();
        section()
    }
}

/// The spin mutex of the crate `spin`.
#[derive(Debug)]
pub struct Spin(spin::mutex::SpinMutex<()>);

// SAFETY: the section runs while the guard lives.
unsafe impl Lock for Spin {
    const NAME: &'static str = "spin";
    const SUMMARY: &'static str = "spin::Mutex: test and test-and-set with a compare-and-swap";
    type Context = ();

    fn new() -> Result<Self, Unavailable> {
        Ok(Spin(spin::mutex::SpinMutex::new(())))
    }

    #[inline(always)]
    fn with<R>(&self, _: &mut (), section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock();
        section()
    }
}
