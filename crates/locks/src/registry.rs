use crate::{Lock, Platform, Real};
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
    (own { $($own:ident,)* } foreign { $($foreign:ident,)* }) => {
        /// Every lock, in the order of `kduel list locks`: its name and what kind it is.
        pub fn all() -> Vec<(&'static str, &'static str)> {
            vec![
                $((<crate::$own as Lock>::NAME, <crate::$own as Lock>::SUMMARY),)*
                $(
                    #[cfg(feature = "foreign")]
                    (<crate::$foreign as Lock>::NAME, <crate::$foreign as Lock>::SUMMARY),
                )*
            ]
        }

        /// The names of the algorithms of this crate, which run on any platform.
        pub fn own_names() -> Vec<&'static str> {
            vec![$(<crate::$own as Lock>::NAME,)*]
        }

        /// Calls the visitor with the lock of this name and returns what it returned.
        ///
        /// # Errors
        /// When no lock has this name.
        pub fn visit<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, NoSuchLock> {
            $(
                #[cfg(feature = "foreign")]
                if name == <crate::$foreign as Lock>::NAME {
                    return Ok(visitor.visit::<crate::$foreign>());
                }
            )*
            visit_on::<Real, V>(name, visitor)
        }

        /// Calls the visitor with the algorithm of this name over the platform `P` and returns what it returned.
        ///
        /// # Errors
        /// When none of the algorithms of this crate has this name.
        pub fn visit_on<P: Platform, V: Visitor>(name: &str, visitor: V) -> Result<V::Output, NoSuchLock> {
            $(
                if name == <crate::$own<P> as Lock>::NAME {
                    return Ok(visitor.visit::<crate::$own<P>>());
                }
            )*
            Err(NoSuchLock(name.into()))
        }
    };
}

// A new lock is its file, the `mod` of that file and a line here.
registry! {
    own {
        Tas,
        Ttas,
        Ticket,
        Mcs,
        Clh,
        Futex3State,
    }
    foreign {
        Std,
        ParkingLot,
        Pthread,
        PthreadPi,
        Spin,
    }
}

/// The names of all locks.
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|(name, _)| name).collect()
}
