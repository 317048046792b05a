//! The form of a line: `{"crc":"1a2b3c4d","seq":3,"record":{...}}`. The checksum is CRC-32 over the bytes of the
//! record as they stand; the sequence number is that of the line, from 1.

use crate::JournalError;
use crate::finite::check_finite;
use experiment::Record;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Line<'a> {
    crc: &'a str,
    seq: u64,
    #[serde(borrow)]
    record: &'a RawValue,
}

/// What is wrong with a line.
pub(crate) enum Fault {
    /// It is not as it was written.
    Damaged(String),
    /// It is as it was written, and this build does not understand it.
    Foreign(String),
}

/// The bytes of a line, newline included.
///
/// # Errors
/// When the record would not read back as it is.
pub(crate) fn encode(seq: u64, record: &Record) -> Result<Vec<u8>, JournalError> {
    check_finite(record)?;
    let body = serde_json::to_string(record)
        .map_err(|error| JournalError::NotFinite { what: format!("a part of the record ({error})") })?;
    let crc = crc32fast::hash(body.as_bytes());
    Ok(format!("{{\"crc\":\"{crc:08x}\",\"seq\":{seq},\"record\":{body}}}\n").into_bytes())
}

/// The sequence number and the record of a line, which is given without its newline.
pub(crate) fn decode(line: &[u8]) -> Result<(u64, Record), Fault> {
    let line: Line<'_> =
        serde_json::from_slice(line).map_err(|error| Fault::Damaged(format!("it is no record ({error})")))?;
    let body = line.record.get();
    let crc = format!("{:08x}", crc32fast::hash(body.as_bytes()));
    if line.crc != crc {
        return Err(Fault::Damaged(format!("its checksum is {} where {crc} is right", line.crc)));
    }
    let record = serde_json::from_str(body)
        .map_err(|error| Fault::Foreign(format!("the record means nothing here ({error})")))?;
    Ok((line.seq, record))
}
