use serde::Serialize;

/// How well a machine can do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As well as duels want it.
    Ok,
    /// It can, and something about it costs truth or comfort.
    Limited,
    /// It cannot.
    No,
    /// It could not be found out.
    Unknown,
}

/// What closes a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Remedy {
    /// A command for a shell. It needs root unless it runs a program of the user.
    Command(String),
    /// A sentence, where no command can do it.
    Advice(String),
}

/// What a machine can do in one respect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The ability, in a word or two.
    pub ability: &'static str,
    /// How well the machine has it.
    pub state: State,
    /// What was seen that says so, in clauses.
    pub seen: String,
    /// What closes the gap; absent where there is none, or where nothing can be done from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl Finding {
    fn new(ability: &'static str, state: State, seen: impl Into<String>) -> Finding {
        Finding { ability, state, seen: seen.into(), remedy: None }
    }

    /// The machine has the ability.
    pub(super) fn ok(ability: &'static str, seen: impl Into<String>) -> Finding {
        Finding::new(ability, State::Ok, seen)
    }

    /// The machine has it within limits.
    pub(super) fn limited(ability: &'static str, seen: impl Into<String>) -> Finding {
        Finding::new(ability, State::Limited, seen)
    }

    /// The machine does not have it.
    pub(super) fn no(ability: &'static str, seen: impl Into<String>) -> Finding {
        Finding::new(ability, State::No, seen)
    }

    /// It could not be found out, for the reason that `seen` gives.
    pub(super) fn unknown(ability: &'static str, seen: impl Into<String>) -> Finding {
        Finding::new(ability, State::Unknown, seen)
    }

    /// What only a machine that runs can show, asked of a tree of files.
    pub(super) fn of_a_tree(ability: &'static str) -> Finding {
        Finding::unknown(ability, "not tried: only the machine itself can show it, and these are its files")
    }

    /// With the command that closes the gap.
    pub(super) fn command(mut self, command: impl Into<String>) -> Finding {
        self.remedy = Some(Remedy::Command(command.into()));
        self
    }

    /// With a sentence that says how to close the gap.
    pub(super) fn advice(mut self, sentence: impl Into<String>) -> Finding {
        self.remedy = Some(Remedy::Advice(sentence.into()));
        self
    }
}
