//! This very binary: how it is read, and how it is started once more.

use crate::image::loadable;
use std::path::PathBuf;
use std::process::Command;

/// The name of the binary in the directory of a capsule.
pub const CAPSULE_BINARY: &str = "kduel";

/// How this process was started, and so can be again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Program {
    /// As any program.
    Itself,
    /// By the loader in the directory of a capsule, which also holds the binary and its libraries. What the kernel knows
    /// as the program of this process is then the loader.
    Capsule(PathBuf),
}

impl Program {
    /// The command that starts the binary again, without arguments yet.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("/proc/self/exe");
        if let Program::Capsule(directory) = self {
            // An argument and no variable: what trials start must find its own libraries and not these.
            command.arg("--library-path").arg(directory).arg(self.binary());
        }
        command
    }

    /// The id of this build: its version and the checksum of its binary, wherever that lies. Symbols do not count, since
    /// they are left behind where the binary is sent elsewhere.
    pub(crate) fn build_id(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        match loadable(&self.binary()) {
            Ok(binary) => format!("{version}-{:08x}", crc32fast::hash(&binary)),
            Err(_) => format!("{version}-unknown"),
        }
    }

    fn binary(&self) -> PathBuf {
        match self {
            // The link names this very binary even when the file has been replaced meanwhile.
            Program::Itself => "/proc/self/exe".into(),
            Program::Capsule(directory) => directory.join(CAPSULE_BINARY),
        }
    }
}
