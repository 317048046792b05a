//! How often the processes of a run ask the kernel for the topology of the machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support.rs"]
mod support;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use support::Kduel;

/// Where the kernel tells the topology: every directory with such files, and the file that has all CPUs in it.
fn places() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/proc/cpuinfo")];
    let mut left: Vec<PathBuf> =
        ["cpu", "node"].map(|kind| Path::new("/sys/devices/system").join(kind)).into();
    while let Some(directory) = left.pop() {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(below.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            ["cpu", "node", "topology", "cache", "index"].iter().any(|word| name.starts_with(word))
        }));
        found.push(directory);
    }
    found
}

/// Sees what every process of this machine opens there.
fn watch() -> OwnedFd {
    let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("inotify");
    for place in places() {
        // Some machines have less.
        let _ = inotify::add_watch(&watch, &place, WatchFlags::OPEN);
    }
    watch
}

/// How often something was opened since the last call.
fn opened(watch: &OwnedFd) -> usize {
    let mut buffer = [MaybeUninit::uninit(); 1 << 14];
    let mut reader = inotify::Reader::new(watch, &mut buffer);
    let mut opened = 0;
    loop {
        match reader.next() {
            Ok(_) => opened += 1,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return opened,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn l1_the_topology_is_read_once_and_not_by_each_of_hundreds_of_processes() {
    let kduel = Kduel::new();
    let watch = watch();
    let opened_by = |groups: &str, blocks: &str| {
        opened(&watch);
        let words = ["run", "hackbench", "--set", "loops=1", "--set", "repeat=1", "--set", "settle=0"];
        let more = ["-V", "a", "--no-aa", "--points", groups, "--blocks", blocks];
        kduel.ok(&[words.as_slice(), &more].concat());
        assert!(kduel.trials().iter().all(|trial| trial["outcome"]["state"] == "done"));
        opened(&watch)
    };
    let few = opened_by("1", "1");
    if few == 0 {
        return println!("skipped: this machine tells no topology, or not what is opened of it");
    }
    for (what, groups, blocks) in [("400 processes in one trial", "10", "1"), ("41 trials", "1", "41")] {
        let many = opened_by(groups, blocks);
        println!("40 processes in one trial: {few} opens; {what}: {many}");
        // Whoever else is on this machine may look, too; that each process or trial did would show as 40 more at least.
        assert!(many < few + 30, "40 processes in one trial: {few} opens; {what}: {many}");
    }
}
