//! An experiment in one word, for the footer of a report: `kd1:` and its compressed TOML in base64.

use crate::{Experiment, TomlError, from_toml, to_toml};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use std::io::Read as _;
use thiserror::Error;

const PREFIX: &str = "kd1:";

/// The largest experiment that is unpacked: what is larger is no experiment.
const LARGEST_BYTES: u64 = 1 << 20;

/// What is wrong with a packed experiment.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PackError {
    /// The text holds none.
    #[error("no packed experiment is in the text; it begins with `kd1:`")]
    Absent,
    /// It has been cut or changed.
    #[error("the packed experiment is damaged: {0}; copy the whole footer, over all its lines")]
    Damaged(String),
    /// It unpacks to something that is no experiment of this version.
    #[error("the packed experiment is not understood by this version: {0}")]
    Toml(#[from] TomlError),
}

/// Packs an experiment, with its seed, into one word.
pub fn pack(experiment: &Experiment) -> String {
    let toml = to_toml(experiment);
    let mut packed = Vec::new();
    // Reading from memory into memory cannot fail.
    let _ = DeflateEncoder::new(toml.as_bytes(), Compression::best()).read_to_end(&mut packed);
    format!("{PREFIX}{}", STANDARD_NO_PAD.encode(packed))
}

/// Finds the packed experiment in a text, such as a footer that a mail has folded into several quoted lines, and
/// unpacks it.
///
/// # Errors
/// When there is none, or it is damaged.
pub fn unpack(text: &str) -> Result<Experiment, PackError> {
    let start = text.find(PREFIX).ok_or(PackError::Absent)? + PREFIX.len();
    let mut word = String::new();
    for (number, line) in text[start..].lines().enumerate() {
        // A folded line may be quoted and carries the footer's own mark; an empty one ends the footer.
        let line = if number == 0 { line } else { line.trim_start_matches(['>', ' ', '-', '\t']) };
        let line = line.trim();
        if line.is_empty() || !line.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/') {
            break;
        }
        word.push_str(line);
    }
    let damaged = |why: String| PackError::Damaged(why);
    let packed = STANDARD_NO_PAD.decode(word).map_err(|error| damaged(error.to_string()))?;
    let mut toml = String::new();
    DeflateDecoder::new(packed.as_slice())
        .take(LARGEST_BYTES)
        .read_to_string(&mut toml)
        .map_err(|error| damaged(error.to_string()))?;
    Ok(from_toml(&toml)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Variant};

    #[test]
    fn a_footer_survives_a_mail() {
        let mut experiment = Experiment::new(
            vec![Entry::of("hackbench")],
            vec![Variant::parse("a").unwrap(), Variant::parse("b:sysctl.kernel.x=1").unwrap()],
        );
        experiment.seed = Some(42);
        let packed = pack(&experiment);
        assert_eq!(unpack(&packed).unwrap(), experiment);
        let (head, tail) = packed.split_at(60);
        let mail = format!("> -- kduel reproduce {head}\n> --   {tail}\n>\n> Thanks");
        assert_eq!(unpack(&mail).unwrap(), experiment);
        assert!(matches!(unpack("nothing"), Err(PackError::Absent)));
        assert!(matches!(unpack(&packed[..40]), Err(PackError::Damaged(_) | PackError::Toml(_))));
    }
}
