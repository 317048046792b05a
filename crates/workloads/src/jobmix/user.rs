//! One user: what the sub-tests work with, and how it does its jobs.

use super::mix::Mix;
use crate::Failure;
use crate::random::Random;
use std::fmt::Display;
use std::path::PathBuf;

/// What the sub-tests of one user work with.
#[derive(Debug)]
pub struct User {
    /// Which user, from 0.
    pub index: usize,
    /// Where the files of all users are.
    pub directory: PathBuf,
    /// Blocks of 1 KiB in a file of a disk test.
    pub file_kib: u64,
    /// Whether disk tests sync the whole machine first.
    pub sync: bool,
    /// Its random choices.
    pub random: Random,
}

impl User {
    /// A file or directory of this user alone.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{}.{name}", self.index))
    }

    /// Does all jobs of `mix` and returns how many it did.
    pub fn work(&mut self, mix: &Mix) -> Result<u64, Failure> {
        let mut draw = mix.draw();
        let mut done = 0;
        while let Some(test) = draw.next(&mut self.random) {
            (test.run)(self).map_err(|failure| named(test.name, failure))?;
            done += 1;
        }
        Ok(done)
    }
}

/// The failure with the sub-test in which it happened.
fn named(test: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Invariant(text) => Failure::Invariant(format!("{test}: {text}")),
        other => other.of(test),
    }
}

/// What could not be done, with what the kernel said.
pub fn failed<E: Display>(what: impl Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::Refused(format!("{what}: {error}"))
}

/// The sizes of messages and copies, in their order, again and again.
pub fn sizes() -> impl Iterator<Item = usize> {
    const ALL: [usize; 11] = [1, 3, 5, 7, 16, 32, 64, 512, 1024, 2048, 4096];
    const MANY: [(usize, usize); 3] = [(32, 6), (512, 5), (2048, 4)];
    let many = MANY.into_iter().flat_map(|(size, times)| std::iter::repeat_n(size, times));
    ALL.into_iter().chain(ALL).chain(many).cycle()
}

/// The largest of them.
pub const LARGEST: usize = 4096;

/// Bytes that differ from one to the next, to be sent and compared.
pub fn pattern() -> [u8; LARGEST] {
    std::array::from_fn(|index| index as u8 ^ (index >> 8) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_repeat_after_37() {
        let sizes: Vec<usize> = sizes().take(74).collect();
        assert_eq!(sizes[..37], sizes[37..]);
        assert_eq!(sizes[..37].iter().sum::<usize>(), 2 * 7808 + 6 * 32 + 5 * 512 + 4 * 2048);
        assert_eq!(sizes.iter().max(), Some(&LARGEST));
    }
}
