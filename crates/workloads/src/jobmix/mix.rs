//! The mixes: which sub-tests, how many jobs of each, and the order in which a user draws them.

use super::sub_tests::{self, SubTest};
use crate::Failure;
use crate::random::Random;
use crate::shared::Semantics;

/// The names of the mixes; the first is the default.
pub const NAMES: [&str; 7] =
    ["shared-memory", "shared", "compute", "high-systime", "short", "fserver", "dbase"];

/// The hits of each mix, as the work files of the original have them.
const SHARED: &[(u64, &str)] = &[
    (30, "add_double add_float add_int add_long add_short string_rtns"),
    (20, "disk_cp disk_rd disk_rr disk_rw disk_src disk_wrt exec_test shell_rtns_1"),
    (20, "mul_double mul_float mul_int mul_long mul_short"),
    (
        10,
        "array_rtns brk_test creat_clo dgram_pipe dir_rtns_1 div_double div_float div_int div_long div_short",
    ),
    (10, "fork_test jmp_test link_test matrix_rtns mem_rtns_1 mem_rtns_2 misc_rtns_1 new_raph num_rtns_1"),
    (10, "page_test pipe_cpy ram_copy series_1 shared_memory sieve signal_test sort_rtns_1 stream_pipe"),
    (10, "sync_disk_cp sync_disk_rw sync_disk_wrt tcp_test trig_rtns udp_test"),
];
const COMPUTE: &[(u64, &str)] = &[
    (50, "add_double matrix_rtns mul_double page_test"),
    (40, "div_double mem_rtns_1 mem_rtns_2 new_raph num_rtns_1 series_1 trig_rtns"),
    (30, "add_int add_long disk_rd div_int mul_int mul_long sieve string_rtns"),
    (20, "disk_wrt stream_pipe udp_test"),
    (10, "array_rtns disk_cp disk_src shared_memory"),
];
const HIGH_SYSTIME: &[(u64, &str)] = &[
    (30, "pipe_cpy"),
    (20, "creat_clo brk_test exec_test link_test page_test shell_rtns_1"),
    (
        10,
        "dgram_pipe dir_rtns_1 fork_test misc_rtns_1 shared_memory signal_test stream_pipe tcp_test udp_test",
    ),
    (10, "shell_rtns_2 shell_rtns_3"),
];
const SHORT: &[(u64, &str)] = &[
    (
        20,
        "dgram_pipe jmp_test matrix_rtns mem_rtns_2 misc_rtns_1 mul_int mul_long mul_short new_raph num_rtns_1",
    ),
    (20, "pipe_cpy ram_copy series_1 shared_memory stream_pipe tcp_test udp_test"),
];
const FSERVER: &[(u64, &str)] = &[
    (40, "mem_rtns_1 udp_test"),
    (30, "disk_cp disk_rd disk_rr disk_rw disk_src disk_wrt sort_rtns_1 string_rtns"),
    (20, "add_int add_long add_short creat_clo dir_rtns_1 link_test misc_rtns_1 ram_copy"),
    (10, "div_int div_long div_short mul_int mul_long mul_short jmp_test mem_rtns_2 signal_test tcp_test"),
    (5, "sync_disk_cp sync_disk_rw sync_disk_wrt"),
];
const DBASE: &[(u64, &str)] = &[
    (40, "disk_rd disk_rr mem_rtns_1 mem_rtns_2 page_test shared_memory"),
    (30, "sieve sort_rtns_1 string_rtns sync_disk_rw sync_disk_update"),
    (20, "add_int add_long add_short ram_copy"),
    (10, "div_int div_long div_short jmp_test mul_int mul_long mul_short stream_pipe"),
];

/// The jobs that every user does: sub-tests, each with how many times.
#[derive(Debug, Clone)]
pub struct Mix {
    loads: Vec<(&'static SubTest, u64)>,
}

impl Mix {
    /// The mix of this name with about `jobs` jobs for each user: see [`loads`].
    pub fn named(name: &str, jobs: u64, semantics: Semantics) -> Result<Mix, Failure> {
        Mix::of(&hits(name)?, jobs, semantics)
    }

    /// `jobs` jobs of one sub-test.
    pub fn single(sub_test: &str, jobs: u64) -> Result<Mix, Failure> {
        Ok(Mix { loads: vec![(sub_tests::find(sub_test)?, jobs)] })
    }

    fn of(hits: &[(&'static SubTest, u64)], jobs: u64, semantics: Semantics) -> Result<Mix, Failure> {
        let counts: Vec<u64> = hits.iter().map(|(_, hits)| *hits).collect();
        let loads = hits.iter().zip(loads(&counts, jobs, semantics)).map(|((test, _), load)| (*test, load));
        Ok(Mix { loads: loads.filter(|(_, load)| *load > 0).collect() })
    }

    /// How many jobs each user does.
    pub fn jobs(&self) -> u64 {
        self.loads.iter().map(|(_, load)| load).sum()
    }

    /// The sub-tests in it.
    pub fn sub_tests(&self) -> impl Iterator<Item = &'static SubTest> {
        self.loads.iter().map(|(test, _)| *test)
    }

    /// Draws the jobs one after another.
    pub fn draw(&self) -> Draw {
        Draw { left: self.loads.clone(), at: 0 }
    }
}

/// The sub-tests of a mix with their hits.
fn hits(name: &str) -> Result<Vec<(&'static SubTest, u64)>, Failure> {
    let groups = match name {
        "shared" => SHARED,
        "compute" => COMPUTE,
        "high-systime" => HIGH_SYSTIME,
        "short" => SHORT,
        "fserver" => FSERVER,
        "dbase" => DBASE,
        _ => &[(10, "shared_memory")],
    };
    let all = groups.iter().flat_map(|(hits, names)| names.split(' ').map(|name| (name, *hits)));
    all.map(|(name, hits)| Ok((sub_tests::find(name)?, hits))).collect()
}

/// How many jobs of each sub-test a user does, from its hits. With original semantics each is its share of `jobs` on
/// its own, rounded, and at least 1, so that the sum is only near `jobs`. With strict ones the sum is `jobs`: the
/// shares are cut off, and those with the largest rests get one more.
fn loads(hits: &[u64], jobs: u64, semantics: Semantics) -> Vec<u64> {
    let total = hits.iter().sum::<u64>().max(1);
    match semantics {
        Semantics::Original => {
            hits.iter().map(|hits| ((2 * hits * jobs + total) / (2 * total)).max(1)).collect()
        }
        Semantics::Strict => {
            let mut loads: Vec<u64> = hits.iter().map(|hits| hits * jobs / total).collect();
            let mut by_rest: Vec<usize> = (0..hits.len()).collect();
            by_rest.sort_by_key(|index| std::cmp::Reverse(hits[*index] * jobs % total));
            let missing = jobs - loads.iter().sum::<u64>();
            by_rest.into_iter().take(missing as usize).for_each(|index| loads[index] += 1);
            loads
        }
    }
}

/// The order of the jobs of one user: a random number of steps around the ring of sub-tests, again and again. One that
/// has no job left is taken out where a step meets it.
#[derive(Debug)]
pub struct Draw {
    left: Vec<(&'static SubTest, u64)>,
    at: usize,
}

impl Draw {
    /// The next job; `None` when all are done.
    pub fn next(&mut self, random: &mut Random) -> Option<&'static SubTest> {
        while !self.left.is_empty() {
            self.at = (self.at + random.below(self.left.len() as u64) as usize) % self.left.len();
            match &mut self.left[self.at] {
                (_, 0) => drop(self.left.remove(self.at)),
                (test, left) => {
                    *left -= 1;
                    return Some(test);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_hits_and_the_jobs_per_user_are_those_of_the_original() {
        for (name, tests, total, jobs) in [
            ("shared", 53, 780, 97),
            ("compute", 26, 820, 101),
            ("high-systime", 18, 260, 104),
            ("short", 17, 340, 102),
            ("fserver", 31, 595, 101),
            ("dbase", 23, 550, 99),
            ("shared-memory", 1, 10, 100),
        ] {
            let hits = hits(name).unwrap();
            assert_eq!(
                (hits.len(), hits.iter().map(|(_, hits)| hits).sum::<u64>()),
                (tests, total),
                "{name}"
            );
            let original = Mix::named(name, 100, Semantics::Original).unwrap();
            assert_eq!(original.jobs(), jobs, "{name}");
            for jobs in [1, 100, 12_345] {
                assert_eq!(Mix::named(name, jobs, Semantics::Strict).unwrap().jobs(), jobs, "{name}");
            }
        }
    }

    #[test]
    fn every_job_is_drawn_once_in_an_order_that_the_seed_decides() {
        let mix = Mix::named("shared", 100, Semantics::Original).unwrap();
        let order = |seed| {
            let (mut draw, mut random) = (mix.draw(), Random::new(seed, 0));
            std::iter::from_fn(|| draw.next(&mut random)).map(|test| test.name).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut drawn = BTreeMap::new();
        order(1).into_iter().for_each(|name| *drawn.entry(name).or_insert(0) += 1);
        assert_eq!(drawn, mix.loads.iter().map(|(test, load)| (test.name, *load)).collect());
    }

    #[test]
    fn a_sub_test_that_does_not_exist_is_named() {
        let error = Mix::single("add_doble", 1).unwrap_err().to_string();
        assert!(error.contains("`add_doble`") && error.contains("`add_double`"), "{error}");
    }
}
