use crate::Lock;
use thiserror::Error;

/// A generic function over the type of a lock.
pub trait Visitor {
    /// What it returns.
    type Output;

    /// Called by [`visit`] with the type of the lock.
    fn visit<L: Lock>(self) -> Self::Output;
}

/// No lock has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no lock is called `{0}`")]
pub struct NoSuchLock(pub String);

macro_rules! registry {
    ($($(#[$when:meta])* $lock:ty,)*) => {
        /// Every lock, in the order of `kduel list locks`: its name and what kind it is.
        pub fn all() -> Vec<(&'static str, &'static str)> {
            vec![$($(#[$when])* (<$lock as Lock>::NAME, <$lock as Lock>::SUMMARY),)*]
        }

        /// Calls the visitor with the lock of this name and returns what it returned.
        ///
        /// # Errors
        /// When no lock has this name.
        pub fn visit<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, NoSuchLock> {
            $(
                $(#[$when])*
                if name == <$lock as Lock>::NAME {
                    return Ok(visitor.visit::<$lock>());
                }
            )*
            Err(NoSuchLock(name.into()))
        }
    };
}

// A new lock is its file, the `mod` of that file and a line here.
registry! {
    crate::Tas,
    crate::Ttas,
    crate::Ticket,
    crate::Mcs,
    crate::Clh,
    crate::Futex3State,
    #[cfg(feature = "foreign")]
    crate::Std,
    #[cfg(feature = "foreign")]
    crate::ParkingLot,
    #[cfg(feature = "foreign")]
    crate::Pthread,
    #[cfg(feature = "foreign")]
    crate::PthreadPi,
    #[cfg(feature = "foreign")]
    crate::Spin,
}

/// The names of all locks.
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|(name, _)| name).collect()
}
