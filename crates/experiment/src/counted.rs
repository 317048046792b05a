use std::fmt::Display;

/// A number with its noun: `1 block`, `20 blocks`, `2 processes`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str) -> String {
    let ending = match (count == N::from(1), one.ends_with('s')) {
        (true, _) => "",
        (false, true) => "es",
        (false, false) => "s",
    };
    format!("{count} {one}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let words = [counted(0_usize, "trial"), counted(1_u32, "trial"), counted(2_u64, "more process")];
        assert_eq!(words, ["0 trials", "1 trial", "2 more processes"]);
    }
}
