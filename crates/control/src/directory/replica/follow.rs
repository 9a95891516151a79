//! Where the table's next records come from.

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Begin to follow the log after this revision, and read on.
    Follow {
        /// That of the table.
        after: u64,
    },
    /// Read on.
    Read,
    /// Load the snapshot, and apply what came after it.
    Load,
}

/// How the log is followed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Follow {
    state: State,
    /// The table is not to be trusted: it is to be loaded anew.
    repair: bool,
    /// What is loaded now is for that.
    repairing: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    Open,
    /// Records that are wanted are gone.
    Gone,
}

impl Follow {
    /// What is to be done, for a table at this revision.
    pub fn todo(&mut self, shown: u64) -> Todo {
        self.repairing = std::mem::take(&mut self.repair);
        if self.repairing {
            self.state = State::Closed;
            return Todo::Load;
        }
        match self.state {
            State::Closed => Todo::Follow { after: shown },
            State::Open => Todo::Read,
            State::Gone => Todo::Load,
        }
    }

    /// The log is followed now.
    pub fn opened(&mut self) {
        self.state = State::Open;
    }

    /// The records that come next are gone.
    pub fn gone(&mut self) {
        self.state = State::Gone;
    }

    /// The table was found to differ from what the store holds.
    pub fn repair(&mut self) {
        self.repair = true;
    }

    /// A table was loaded. Returns whether it replaces the one that is shown; if not, whoever compacted has not finished, or
    /// what the store holds has not reached us yet: a little later it is tried again.
    pub fn loaded(&mut self, revision: u64, shown: u64) -> bool {
        self.state = State::Closed;
        let newer = revision > shown || (revision == shown && self.repairing);
        self.repair |= self.repairing && !newer;
        newer
    }
}
