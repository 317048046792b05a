//! What can go wrong between here and another machine, and what ssh's own words mean.

use crate::capsule::CapsuleError;
use crate::kernel::KernelError;
use std::io;
use thiserror::Error;

/// Why a machine could not be used over ssh.
#[derive(Debug, Error)]
pub enum SshError {
    /// There is no ssh here.
    #[error("cannot start ssh: {0}; install OpenSSH's client (Debian: openssh-client)")]
    Client(io::Error),
    /// ssh gave up.
    #[error("{}{}", trouble.in_words(host), said_in_words("ssh said", said))]
    Link {
        /// The machine.
        host: String,
        /// What kind of failure it was.
        trouble: Trouble,
        /// What ssh said about it, shortened.
        said: String,
    },
    /// Nothing came for too long.
    #[error("{host} has not answered for {waited_s} s while it was {doing}")]
    Silent {
        /// The machine.
        host: String,
        /// What it was asked to do.
        doing: &'static str,
        /// For how long, in seconds.
        waited_s: u64,
    },
    /// A command failed there.
    #[error("{host} failed while it was {doing}{}", said_in_words("it said", said))]
    Failed {
        /// The machine.
        host: String,
        /// What it was asked to do.
        doing: &'static str,
        /// What it said, shortened.
        said: String,
    },
    /// It runs another system, or another kind of processor.
    #[error("{host} is {found}; this kduel runs on {ours} only, take one that was built for {host}")]
    OtherSystem {
        /// The machine.
        host: String,
        /// What it says it is.
        found: String,
        /// What this binary was built for.
        ours: String,
    },
    /// Programs are missing there.
    #[error("{host} has no {}; install what is missing (Debian: coreutils, tar)", programs.join(" and no "))]
    Lacks {
        /// The machine.
        host: String,
        /// The programs.
        programs: Vec<String>,
    },
    /// What was copied is not what arrived.
    #[error("{what} did not arrive whole on {host}; is the disk of its home directory full?")]
    Torn {
        /// The machine.
        host: String,
        /// What was copied.
        what: &'static str,
    },
    /// The copy of kduel does not run there.
    #[error(
        "kduel was copied to {host} and does not run there; may programs run from its home directory?{}",
        said_in_words("it said", said)
    )]
    NotRunning {
        /// The machine.
        host: String,
        /// What it said, shortened.
        said: String,
    },
    /// This binary could not be made a capsule.
    #[error(transparent)]
    Capsule(#[from] CapsuleError),
    /// This binary has no loader.
    #[error("this kduel is linked statically and cannot be sent elsewhere; build it as usual, for glibc")]
    Static,
    /// The machine came back from a reboot that kduel had not ordered.
    #[error("{host} was rebooted in the middle of the run and is not what it was: {differs}")]
    Changed {
        /// The machine.
        host: String,
        /// How it differs.
        differs: String,
    },
    /// A kernel file here could not be opened.
    #[error("{error}; a kernel that lies on {host} is written host:PATH")]
    Kernel {
        /// The machine.
        host: String,
        /// What was wrong with the file.
        error: Box<KernelError>,
    },
    /// Nobody has said that it may be rebooted.
    #[error("these variants need {host} to be rebooted; if that may be done, say so with --may-reboot")]
    NotAllowed {
        /// The machine.
        host: String,
    },
    /// The user there may not reboot it.
    #[error(
        "the user on {host} may not reboot it; log in as root, or let sudo work there without a password"
    )]
    NoPrivilege {
        /// The machine.
        host: String,
    },
    /// kexec cannot be used there.
    #[error(
        "kernels cannot be changed by kexec on {host}: {why}; boot entries, kernel=entry:NAME, need no kexec"
    )]
    NoKexec {
        /// The machine.
        host: String,
        /// Why not.
        why: &'static str,
    },
    /// A boot entry cannot be chosen there.
    #[error("{host} has neither bootctl nor grub-reboot, so no boot entry can be chosen for once")]
    NoEntries {
        /// The machine.
        host: String,
    },
    /// Boot arguments for a boot entry.
    #[error(
        "boot arguments cannot be added to the boot entry {entry}; put them into the entry, or use kexec with \
             kernel=host:PATH"
    )]
    AppendToEntry {
        /// The entry.
        entry: String,
    },
    /// A kernel is not where it should be on the machine.
    #[error("{host} has no kernel {what}; name its image with kernel=host:PATH")]
    NoImage {
        /// The machine.
        host: String,
        /// What was looked for.
        what: String,
    },
    /// It was told to reboot and did not.
    #[error("{host} was told to reboot {waited_s} s ago and still runs its old kernel")]
    StillUp {
        /// The machine.
        host: String,
        /// For how long, in seconds.
        waited_s: u64,
    },
    /// It went down and did not come back.
    #[error(
        "{host} has not come back for {waited_s} s after it was told to reboot; look at its console. {last}"
    )]
    NotBack {
        /// The machine.
        host: String,
        /// For how long, in seconds.
        waited_s: u64,
        /// What the last try to reach it said.
        last: String,
    },
    /// Another kernel came up than the one that was asked for.
    #[error("{host} was to boot {asked}, but what came up is another kernel: {differs}")]
    OtherKernel {
        /// The machine.
        host: String,
        /// What was asked for.
        asked: String,
        /// How it differs.
        differs: String,
    },
    /// The coordinator was told to stop.
    #[error("stopped")]
    Stopped,
}

impl SshError {
    /// Whether waiting helps nothing.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            SshError::Link { trouble, .. } => !trouble.may_pass(),
            SshError::Silent { .. } => false,
            _ => true,
        }
    }
}

/// Why ssh gave up, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The name means no machine.
    NoSuchHost,
    /// Nobody listens there.
    Refused,
    /// No packet comes back.
    Unreachable,
    /// The machine's key has never been seen here.
    UnknownKey,
    /// The machine's key is another than it was.
    ChangedKey,
    /// No key of ours lets us in.
    Login,
    /// The connection was there and broke.
    Lost,
    /// Something else.
    Other,
}

impl Trouble {
    /// What ssh means by what it said before it left with status 255.
    pub(crate) fn of(said: &str) -> Trouble {
        let says = |any: &[&str]| any.iter().any(|words| said.contains(words));
        // The order matters: what is told by one line is often followed by a more general one.
        if says(&["HOST IDENTIFICATION HAS CHANGED"]) {
            Trouble::ChangedKey
        } else if says(&["Host key verification failed"]) {
            Trouble::UnknownKey
        } else if says(&["Could not resolve hostname"]) {
            Trouble::NoSuchHost
        } else if says(&["Connection refused"]) {
            Trouble::Refused
        } else if says(&[
            "Permission denied (",
            "Too many authentication failures",
            "not permitted to log in",
        ]) {
            Trouble::Login
        } else if says(&[
            "not responding",
            "closed by",
            "Connection reset",
            "Broken pipe",
            "Connection aborted",
        ]) {
            Trouble::Lost
        } else if says(&["timed out", "No route to host", "is unreachable", "Host is down"]) {
            Trouble::Unreachable
        } else {
            Trouble::Other
        }
    }

    /// Whether it may pass by itself. While a machine starts, the network may not know its name, nor it know its users.
    fn may_pass(self) -> bool {
        !matches!(self, Trouble::UnknownKey | Trouble::ChangedKey)
    }

    /// What happened, and what to do.
    fn in_words(self, host: &str) -> String {
        match self {
            Trouble::NoSuchHost => {
                format!("no machine is known as {host}; look at the name and at ~/.ssh/config")
            }
            Trouble::Refused => {
                format!("{host} refuses connections; is sshd running there, on the port that ssh asks?")
            }
            Trouble::Unreachable => format!("{host} cannot be reached; is it up, and is the network?"),
            Trouble::UnknownKey => {
                format!(
                    "the host key of {host} is not known here; look at it and accept it once with `ssh {host}`"
                )
            }
            Trouble::ChangedKey => format!(
                "the host key of {host} is not the one that is known here; if the machine was installed anew, remove \
                 the old key with `ssh-keygen -R` and accept the new one with `ssh {host}`"
            ),
            Trouble::Login => format!(
                "{host} does not let this user in; kduel cannot type a password, so make `ssh -o BatchMode=yes {host} \
                 true` work first, with a key (`ssh-copy-id {host}`) that needs none or lies in an agent"
            ),
            Trouble::Lost => format!("the connection to {host} was lost"),
            Trouble::Other => format!("ssh cannot connect to {host}; try `ssh -o BatchMode=yes {host} true`"),
        }
    }
}

fn said_in_words(who: &str, said: &str) -> String {
    match said {
        "" => String::new(),
        said => format!("; {who}: {said}"),
    }
}

/// The end of what a program said, on one line and short enough for an error.
pub(crate) fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" | ");
    // Whatever comes from there must not move the cursor here.
    let printable: String = last.chars().filter(|letter| !letter.is_control()).collect();
    match printable.char_indices().nth_back(299) {
        Some((begin, _)) => printable[begin..].to_string(),
        None => printable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_has_a_meaning() {
        for (said, trouble) in [
            ("ssh: Could not resolve hostname nowhere: Name or service not known", Trouble::NoSuchHost),
            ("ssh: connect to host ::1 port 2: Connection refused", Trouble::Refused),
            ("ssh: connect to host 10.0.0.1 port 22: Connection timed out", Trouble::Unreachable),
            ("ssh: connect to host 10.0.0.1 port 22: No route to host", Trouble::Unreachable),
            (
                "No ED25519 host key is known for x and you have requested strict checking.\nHost key verification failed.",
                Trouble::UnknownKey,
            ),
            (
                "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.",
                Trouble::ChangedKey,
            ),
            ("root@box: Permission denied (publickey,password).", Trouble::Login),
            ("Timeout, server box not responding.", Trouble::Lost),
            ("Connection to box closed by remote host.", Trouble::Lost),
            ("Connection closed by 10.0.0.1 port 22", Trouble::Lost),
            ("client_loop: send disconnect: Broken pipe", Trouble::Lost),
            ("command-line: line 0: Bad configuration option: x", Trouble::Other),
            ("", Trouble::Other),
        ] {
            assert_eq!(Trouble::of(said), trouble, "{said}");
            let words = SshError::Link { host: "box".into(), trouble, said: said.into() }.to_string();
            assert!(words.contains("box"), "{words}");
        }
    }

    #[test]
    fn last_words_are_short_and_stay_on_their_line() {
        assert_eq!(last_words("a\nb\n\n c \r\nd\n"), "b | c | d");
        assert_eq!(last_words("\x1b[2Jboo"), "[2Jboo");
        assert_eq!(last_words(&"\u{e4}".repeat(1000)).chars().count(), 300);
        assert_eq!(last_words(""), "");
    }
}
