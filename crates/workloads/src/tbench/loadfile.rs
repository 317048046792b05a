//! Loads as text: one operation on a line, in the form of dbench's client.txt.

use super::operation::{Kind, LARGEST_MESSAGE_BYTES, Operation};
use crate::Failure;
use experiment::did_you_mean;
use std::fmt::Write as _;
use std::fs;
use std::str::SplitAsciiWhitespace;

/// The operations of the file at `path`.
///
/// # Errors
/// When it cannot be read, has a line that is no operation, or has nothing that moves bytes of files.
pub fn read(path: &str) -> Result<Vec<Operation>, Failure> {
    let bytes = fs::read(path)
        .map_err(|error| Failure::Refused(format!("the loadfile {path} cannot be read: {error}")))?;
    // Paths may hold any bytes, of which only the number counts.
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    let mut operations = Vec::with_capacity(bytes.len() / 48);
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong =
            |why: String| Failure::Refused(format!("line {} of the loadfile {path}: {why}", index + 1));
        let operation = parse(line).map_err(wrong)?;
        if operation.exchange().is_none() {
            return Err(wrong(format!("its message has more than {LARGEST_MESSAGE_BYTES} bytes")));
        }
        operations.push(operation);
    }
    let moves_bytes = |one: &Operation| matches!(one.kind, Kind::ReadX | Kind::WriteX) && one.size > 0;
    match operations.iter().any(moves_bytes) {
        true => Ok(operations),
        false => Err(Failure::Refused(format!(
            "the loadfile {path} has no ReadX or WriteX of any bytes, so that there is no throughput"
        ))),
    }
}

/// What stands behind the word of an operation, in this order: paths in quotes, then numbers, then a status. The size is
/// one of the numbers.
struct Form {
    paths: usize,
    numbers: usize,
    /// Which of the numbers is the size, from 0.
    size: Option<usize>,
}

fn form(kind: Kind) -> Form {
    let (paths, numbers, size) = match kind {
        Kind::Deltree | Kind::Mkdir | Kind::Rmdir => (1, 0, None),
        Kind::Unlink | Kind::QueryPath => (1, 1, None),
        Kind::NtCreateX => (1, 3, None),
        Kind::Rename => (2, 0, None),
        Kind::Close | Kind::Flush | Kind::QueryFs => (0, 1, None),
        Kind::QueryFile | Kind::SetFile => (0, 2, None),
        Kind::LockX | Kind::UnlockX => (0, 3, None),
        Kind::FindFirst => (1, 3, Some(2)),
        // A handle, an offset, the bytes to write, the bytes written.
        Kind::WriteX => (0, 4, Some(2)),
        // Likewise; it is the bytes read that the answer carries.
        Kind::ReadX => (0, 4, Some(3)),
    };
    Form { paths, numbers, size }
}

fn parse(line: &str) -> Result<Operation, String> {
    let (word, mut rest) = line.trim_start().split_once(' ').unwrap_or((line.trim(), ""));
    let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word);
    let kind = kind.ok_or_else(|| {
        let hint = did_you_mean(word, Kind::ALL.iter().map(|kind| kind.word()));
        format!("unknown operation `{}`; {hint}", word.escape_debug())
    })?;
    let form = form(kind);
    let mut path = 0;
    for _ in 0..form.paths {
        let quoted = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let Some((name, behind)) = quoted else { return Err(format!("{word} needs a path in quotes")) };
        // It is sent with a dot before it, which stands for the directory of the load.
        path += 1 + name.chars().count() as u32;
        rest = behind;
    }
    let mut words = rest.split_ascii_whitespace();
    let mut size = 0;
    for place in 0..form.numbers {
        let value = number(&mut words).ok_or_else(|| {
            format!("{word} needs {} numbers before its status, each below 2^64", form.numbers)
        })?;
        if form.size == Some(place) {
            size = u32::try_from(value).unwrap_or(u32::MAX);
        }
    }
    match (words.next(), words.next()) {
        (Some(_status), None) => Ok(Operation { kind, path, size }),
        (None, _) => Err(format!("{word} needs a status at its end")),
        (_, Some(more)) => Err(format!("nothing may follow the status of {word}, but `{more}` does")),
    }
}

/// The next word as a number, decimal or with 0x before it.
fn number(words: &mut SplitAsciiWhitespace) -> Option<u64> {
    let word = words.next()?;
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// `operations` as text, for an original that is to replay them. Paths are made up, of the same length.
pub fn write(operations: &[Operation]) -> String {
    let mut text = String::with_capacity(operations.len() * 60);
    for Operation { kind, path, size } in operations {
        let form = form(*kind);
        text.push_str(kind.word());
        let mut length = *path as usize;
        for nth in (1..=form.paths).rev() {
            let share = length / nth;
            length -= share;
            // The dot that is sent before it does not stand in the file.
            let _ = write!(text, " \"\\{}\"", "f".repeat(share.saturating_sub(2)));
        }
        for place in 0..form.numbers {
            // Reads and writes say twice how much.
            let is_size = form.size.is_some() && place >= 2;
            let _ = write!(text, " {}", if is_size { *size } else { 1 });
        }
        text.push_str(" NT_STATUS_OK\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tbench::deck;
    use std::path::Path;

    fn read_text(text: &[u8]) -> Result<Vec<Operation>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let path = file.path().to_str().unwrap();
        read(path).map_err(|error| error.to_string().replace(path, "FILE"))
    }

    #[test]
    fn every_operation_is_read_as_the_original_sends_it() {
        // Request and answer as strace shows them of tbench 4.00.
        let lines = [
            ("Deltree \"\\clients\\client1\" NT_STATUS_OK", (0, 0)),
            ("Mkdir \"\\clients\" NT_STATUS_OK", (61, 39)),
            ("NTCreateX \"\\clients\\client1\\filler.000\" 0x40 0x2 9938 NT_STATUS_OK", (130, 87)),
            ("WriteX 9938 65534 1 1 NT_STATUS_OK", (60, 55)),
            ("WriteX 9938 0 65536 65536 NT_STATUS_OK", (65_595, 55)),
            ("ReadX 9938 0 61440 61440 NT_STATUS_OK", (59, 61_499)),
            ("ReadX 9938 0 4096 100 NT_STATUS_OK", (59, 159)),
            ("WriteX 9938 0 4096 100 NT_STATUS_OK", (4_155, 55)),
            ("FIND_FIRST \"\\clients\\client1\\*\" 260 1366 11 NT_STATUS_OK", (97, 1_029)),
            ("Rename \"\\clients\\client1\\a\" \"\\clients\\client1\\bb\" NT_STATUS_OK", (125, 39)),
            ("Unlink \"\\clients\\client1\\a\" 0x6 NT_STATUS_OK", (81, 39)),
            ("QUERY_PATH_INFORMATION \"\\clients\\client1\\~dmtmp\" 1004 NT_STATUS_OK", (103, 71)),
            ("QUERY_FS_INFORMATION 1 NT_STATUS_OK", (59, 71)),
            ("QUERY_FILE_INFORMATION 9938 258 NT_STATUS_OK", (59, 71)),
            ("SET_FILE_INFORMATION 9938 258 NT_STATUS_OK", (71, 47)),
            ("LockX 9938 0 10 NT_STATUS_OK", (51, 39)),
            ("UnlockX 9938 0 10 NT_STATUS_OK", (51, 39)),
            ("Flush 9938 NT_STATUS_OK", (41, 39)),
            ("Rmdir \"\\clients\\client1\" NT_STATUS_OK", (77, 39)),
            ("Close 9938 NT_STATUS_OK", (47, 39)),
        ];
        let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
        let read = read_text(text.as_bytes()).unwrap();
        assert_eq!(read.len(), lines.len());
        for (operation, (line, messages)) in read.iter().zip(lines) {
            let exchange = operation.exchange().unwrap();
            assert_eq!((exchange.request, exchange.answer), messages, "{line}");
        }
    }

    #[test]
    fn wrong_lines_are_errors_with_their_number() {
        for (line, wanted) in [
            ("Frobnicate 1 NT_STATUS_OK", "unknown operation `Frobnicate`; known are: Deltree, "),
            ("Closed 1 NT_STATUS_OK", "unknown operation `Closed`; did you mean `Close`?"),
            ("Close", "Close needs 1 numbers"),
            ("Close NT_STATUS_OK", "Close needs 1 numbers"),
            ("Close 1", "Close needs a status"),
            ("Close 1 NT_STATUS_OK 7", "nothing may follow the status of Close, but `7` does"),
            ("NTCreateX 0x1 0x2 1 NT_STATUS_OK", "NTCreateX needs a path in quotes"),
            ("Rename \"\\a\" NT_STATUS_OK", "Rename needs a path in quotes"),
            ("Unlink \"\\a 6 NT_STATUS_OK", "Unlink needs a path in quotes"),
            ("WriteX 1 0 69942 69942 NT_STATUS_OK", "more than 70000 bytes"),
            ("ReadX 1 0 1 99999999999 NT_STATUS_OK", "more than 70000 bytes"),
            ("ReadX 1 0 -1 -1 NT_STATUS_OK", "ReadX needs 4 numbers"),
            ("\x1f\u{8b}", "unknown operation"),
        ] {
            let text = format!("ReadX 1 0 1 1 NT_STATUS_OK\n\n{line}\n");
            let error = read_text(text.as_bytes()).unwrap_err();
            assert!(error.starts_with("line 3 of the loadfile FILE: ") && error.contains(wanted), "{error}");
        }
        assert!(read_text(b"ReadX 1 0 69941 69941 NT_STATUS_OK").is_ok());
    }

    #[test]
    fn a_load_without_payload_and_a_missing_file_are_errors() {
        for text in ["", "Close 1 NT_STATUS_OK\n", "WriteX 1 0 0 0 NT_STATUS_OK\n"] {
            assert!(read_text(text.as_bytes()).unwrap_err().contains("no ReadX or WriteX"));
        }
        assert!(read("/nowhere/client.txt").unwrap_err().to_string().contains("/nowhere/client.txt"));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let deck = deck::shuffled(5);
        assert!(read_text(write(&deck).as_bytes()).unwrap() == deck);
    }

    #[test]
    fn debians_client_txt_has_the_counts_and_totals_of_the_deck() {
        let path = "/usr/share/dbench/client.txt";
        if !Path::new(path).exists() {
            println!("skipped: {path} of the package dbench is not there");
            return;
        }
        let figures = |operations: Vec<Operation>| {
            let mut figures = [(0_u64, 0_u64); Kind::COUNT];
            for operation in operations {
                let (count, payload) = &mut figures[operation.kind as usize];
                *count += 1;
                *payload += u64::from(operation.exchange().unwrap().payload);
            }
            figures
        };
        assert_eq!(figures(read(path).unwrap()), figures(deck::shuffled(1)));
    }
}
