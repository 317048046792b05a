//! Lock algorithms, each written once over a small [`Platform`].
//!
//! One file holds one algorithm. It implements [`RawLock`]; every raw lock is a [`Lock`], whose one safe operation
//! runs a section under the lock, and [`Guarded`] puts a lock and the value that it protects together. A program
//! that takes the name of a lock from its user goes through [`visit`], which calls a generic function with the
//! type of that name, so that nothing is dispatched at run time inside the function.
//!
//! ```
//! use locks::{Guarded, Lock, Mcs};
//!
//! let balance = Guarded::<Mcs, u64>::new(100)?;
//! std::thread::scope(|scope| {
//!     for _ in 0..2 {
//!         scope.spawn(|| {
//!             // The queue node of this thread.
//!             let mut context = <Mcs as Lock>::Context::default();
//!             balance.with(&mut context, |balance| *balance += 1);
//!         });
//!     }
//! });
//! assert_eq!(balance.into_inner(), 102);
//! # Ok::<(), locks::Unavailable>(())
//! ```
//!
//! With the feature `foreign` the registry also holds locks of other libraries, to compare with.

#[cfg(feature = "foreign")]
mod foreign;
mod guarded;
mod lock;
mod platform;
mod real;
mod registry;

mod clh;
mod futex_3_state;
mod mcs;
mod tas;
mod ticket;
mod ttas;

pub use clh::{Clh, ClhContext};
#[cfg(feature = "foreign")]
pub use foreign::{ParkingLot, Pthread, PthreadPi, Spin, Std};
pub use futex_3_state::Futex3State;
pub use guarded::Guarded;
pub use lock::{Lock, RawLock, Unavailable};
pub use mcs::{Mcs, McsContext};
pub use platform::{Atomic, AtomicInteger, Platform};
pub use real::Real;
pub use registry::{NoSuchLock, Visitor, all, names, own_names, visit, visit_on};
pub use tas::Tas;
pub use ticket::Ticket;
pub use ttas::Ttas;
