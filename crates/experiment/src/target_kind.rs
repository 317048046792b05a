use crate::AskError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where trials run. Written `local`, `vm` or `ssh:HOST`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TargetKind {
    /// On this machine.
    Local,
    /// In a virtual machine that boots the variant's kernel afresh for every block.
    Vm,
    /// On another machine, over ssh.
    Ssh {
        /// What ssh takes: `host`, `user@host` or a name of its configuration.
        host: String,
    },
}

impl TargetKind {
    /// Reads the value of `--target`.
    ///
    /// # Errors
    /// When it names no target that this build has, or no host that ssh would take for one.
    pub fn parse(text: &str) -> Result<TargetKind, AskError> {
        match text.split_once(':') {
            None if text == "local" => Ok(TargetKind::Local),
            None if text == "vm" => Ok(TargetKind::Vm),
            // ssh would take a leading `-` for an option.
            Some(("ssh", host))
                if !host.is_empty()
                    && !host.starts_with('-')
                    && !host.contains(|c: char| c.is_control() || c.is_whitespace()) =>
            {
                Ok(TargetKind::Ssh { host: host.into() })
            }
            _ => Err(AskError::Target(text.into())),
        }
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetKind::Local => f.write_str("local"),
            TargetKind::Vm => f.write_str("vm"),
            TargetKind::Ssh { host } => write!(f, "ssh:{host}"),
        }
    }
}

impl TryFrom<String> for TargetKind {
    type Error = AskError;

    fn try_from(text: String) -> Result<TargetKind, AskError> {
        TargetKind::parse(&text)
    }
}

impl From<TargetKind> for String {
    fn from(target: TargetKind) -> String {
        target.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_survive_a_round_trip_and_options_are_no_hosts() {
        for text in ["local", "vm", "ssh:root@box", "ssh:[fe80::1]"] {
            let target = TargetKind::parse(text).unwrap();
            assert_eq!(target.to_string(), text);
            let json = serde_json::to_string(&target).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<TargetKind>(&json).unwrap(), target);
        }
        for text in ["", "vm:", "ssh", "ssh:", "ssh:-oProxyCommand=x", "ssh:a b", "moon"] {
            let error = TargetKind::parse(text).unwrap_err().to_string();
            assert!(error.contains("ssh:HOST"), "{error}");
        }
        assert!(serde_json::from_str::<TargetKind>("\"moon\"").is_err());
    }
}
