//! What comes back from the scripts: lines of `key=value`, and what kduel and other programs had to say there.

use super::script::ANSWER;
use std::collections::BTreeMap;

/// What a machine answered to a [`Script`](super::script::Script).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    fields: BTreeMap<String, String>,
    /// What kduel said there, sentence by sentence: what it has put back, what it has ended.
    pub(crate) remarks: Vec<String>,
    /// What others said.
    pub(crate) others: String,
}

/// One life of a kernel, by its own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Life {
    /// The random id of the boot.
    pub(crate) boot: String,
    /// `uname -r`.
    pub(crate) release: String,
    /// `uname -v`.
    pub(crate) build: String,
    /// The boot arguments.
    pub(crate) command_line: String,
}

/// What a run leaves written on a machine before it takes the machine away from its first kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// The first kernel, as it ran then.
    pub(crate) first: Life,
    /// The id of the boot that kduel saw last.
    pub(crate) boot: String,
    /// The release of the kernel that was asked for next, where it is known.
    pub(crate) next_release: String,
}

/// Whether the files that an agent needs are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parcels {
    Absent,
    Torn,
    Whole,
}

impl Answer {
    /// Reads what came after the answer's own first line; none if that never came.
    pub(crate) fn read(text: &str) -> Option<Answer> {
        let mut lines = text.lines().skip_while(|line| line.trim_end() != ANSWER);
        lines.next()?;
        let mut answer = Answer::default();
        for line in lines.map(str::trim_end).filter(|line| !line.is_empty()) {
            match (line.strip_prefix("kduel: "), line.split_once('=')) {
                (Some(remark), _) => answer.remarks.push(remark.into()),
                (None, Some((key, value))) if is_key(key) => {
                    answer.fields.insert(key.into(), value.trim().into());
                }
                _ => answer.others.extend([line, "\n"]),
            }
        }
        Some(answer)
    }

    /// The value of a key, unless it is empty.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.fields.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a key is `yes`.
    pub(crate) fn says_yes(&self, key: &str) -> bool {
        self.get(key) == Some("yes")
    }

    /// The boot that it is in.
    pub(crate) fn life(&self) -> Option<Life> {
        Some(Life { boot: self.get("boot")?.into(), ..self.kernel("")? })
    }

    /// What an earlier run has left written, if it is whole.
    pub(crate) fn left(&self) -> Option<Left> {
        Some(Left {
            first: Life { boot: self.get("first_boot")?.into(), ..self.kernel("first_")? },
            boot: self.get("left_in_boot")?.into(),
            next_release: self.get("next_release").unwrap_or_default().into(),
        })
    }

    /// The state of a parcel.
    pub(crate) fn parcel(&self) -> Option<Parcels> {
        match self.get("parcel")? {
            "absent" => Some(Parcels::Absent),
            "torn" => Some(Parcels::Torn),
            "whole" => Some(Parcels::Whole),
            _ => None,
        }
    }

    /// The programs that are missing.
    pub(crate) fn lacks(&self) -> Vec<String> {
        self.get("lacks").unwrap_or_default().split_whitespace().map(str::to_string).collect()
    }

    fn kernel(&self, prefix: &str) -> Option<Life> {
        let get = |key: &str| self.get(&format!("{prefix}{key}"));
        Some(Life {
            boot: String::new(),
            release: get("release")?.into(),
            build: get("build")?.into(),
            command_line: get("command_line").unwrap_or_default().into(),
        })
    }
}

impl Left {
    /// The text that [`Answer::left`] reads.
    pub(crate) fn text(&self) -> String {
        let Left { first, boot, next_release } = self;
        format!(
            "first_boot={}\nfirst_release={}\nfirst_build={}\nfirst_command_line={}\nleft_in_boot={boot}\n\
             next_release={next_release}\n",
            first.boot, first.release, first.build, first.command_line
        )
    }

    /// This, if the kernel that runs now is one that kduel has booted: neither the first one, nor one that somebody has
    /// booted since.
    pub(crate) fn abandoned_in(self, now: &Life) -> Option<Left> {
        let ours = now.boot == self.boot || now.release == self.next_release;
        (ours && self.first.differs_from(now).is_some()).then_some(self)
    }
}

impl Life {
    /// How another kernel differs from this one; none where they are the same in another boot.
    pub(crate) fn differs_from(&self, other: &Life) -> Option<String> {
        let mut differences = Vec::new();
        for (name, ours, theirs) in [
            ("uname -r", &self.release, &other.release),
            ("uname -v", &self.build, &other.build),
            ("its command line", &self.command_line, &other.command_line),
        ] {
            if ours.split_whitespace().ne(theirs.split_whitespace()) {
                differences.push(format!("{name} is `{theirs}` and not `{ours}`"));
            }
        }
        (!differences.is_empty()).then(|| differences.join(", "))
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Welcome to box!\nboot=fake\nkduel-host\nsystem=Linux\nboot=b1\nrelease=6.12\nbuild=#1 SMP\n\
                        command_line=root=/dev/vda quiet\nparcel=torn\nkduel: put back x to `1`\nsh: 1: oops\n";

    #[test]
    fn an_answer_begins_at_its_own_line() {
        let answer = Answer::read(TEXT).unwrap();
        let life = answer.life().unwrap();
        assert_eq!(
            (life.boot.as_str(), life.release.as_str(), life.build.as_str()),
            ("b1", "6.12", "#1 SMP")
        );
        assert_eq!(life.command_line, "root=/dev/vda quiet");
        assert_eq!(answer.parcel(), Some(Parcels::Torn));
        assert_eq!(answer.remarks, ["put back x to `1`"]);
        assert_eq!(answer.others, "sh: 1: oops\n");
        assert_eq!(Answer::read("Welcome\nboot=b1\n"), None);
        assert_eq!(Answer::read(""), None);
        assert_eq!(Answer::read("kduel-host\n").unwrap().life(), None);
    }

    #[test]
    fn what_a_run_leaves_can_be_read_again_and_only_by_whom_it_concerns() {
        let life = |boot: &str, release: &str| Life {
            boot: boot.into(),
            release: release.into(),
            build: "#1".into(),
            command_line: "a=b c".into(),
        };
        let left = Left { first: life("b0", "6.12"), boot: "b1".into(), next_release: "7.3".into() };
        let text = format!("kduel-host\n{}", left.text());
        assert_eq!(Answer::read(&text).unwrap().left().unwrap(), left);
        let abandoned = |boot, release| left.clone().abandoned_in(&life(boot, release)).is_some();
        assert!(abandoned("b1", "6.11"), "it was seen in this boot");
        assert!(abandoned("b2", "7.3"), "it was to boot this when kduel was killed");
        assert!(!abandoned("b3", "6.14"), "somebody else has booted it");
        assert!(!abandoned("b1", "6.12"), "it never left its first kernel");
        let torn = Answer::read(&text[..text.len() - 40]).unwrap();
        assert_eq!(torn.left(), None);
    }

    #[test]
    fn kernels_differ_in_words() {
        let life = Answer::read(TEXT).unwrap().life().unwrap();
        let again = Life { boot: "b2".into(), command_line: "root=/dev/vda  quiet".into(), ..life.clone() };
        assert_eq!(life.differs_from(&again), None);
        let other = Life { release: "7.3".into(), command_line: "root=/dev/vda".into(), ..life.clone() };
        let words = life.differs_from(&other).unwrap();
        assert_eq!(
            words,
            "uname -r is `7.3` and not `6.12`, its command line is `root=/dev/vda` and not `root=/dev/vda quiet`"
        );
    }
}
