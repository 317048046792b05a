//! Words as a shell splits them.

use crate::Failure;

/// Splits a text into words: blanks separate them, `'…'` quotes everything, `"…"` everything but `\"` and
/// `\\`, and `\` the next character.
///
/// # Errors
/// When a quote is never closed or nothing follows a backslash.
pub fn split(text: &str) -> Result<Vec<String>, Failure> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err(unclosed('\'', text)),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('"') => break,
                        Some('\\') => match letters.next() {
                            Some(c @ ('"' | '\\')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                            None => return Err(unclosed('"', text)),
                        },
                        Some(c) => word.push(c),
                        None => return Err(unclosed('"', text)),
                    }
                }
            }
            '\\' => match letters.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => return Err(Failure::Refused(format!("this ends in a backslash: {text}"))),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

fn unclosed(quote: char, text: &str) -> Failure {
    Failure::Refused(format!("a {quote} is never closed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        let words = |command: &str| split(command).unwrap();
        assert_eq!(words("  fio  --name=a\tb\n"), ["fio", "--name=a", "b"]);
        assert_eq!(
            words(r#"a 'b  "c' "d 'e\" \\ \n" f\ g '' h"i"'j'"#),
            ["a", "b  \"c", "d 'e\" \\ \\n", "f g", "", "hij"]
        );
        assert!(words("").is_empty());
        for broken in ["a 'b", "a \"b", "a \"b\\", "a\\"] {
            assert!(split(broken).is_err(), "{broken}");
        }
    }
}
