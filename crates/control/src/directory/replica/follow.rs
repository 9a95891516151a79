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
    /// The table is not to be trusted: until it is replaced, it is to be loaded anew.
    repair: bool,
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
        match self.state {
            _ if self.repair => Todo::Load,
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
        let newer = revision > shown || (revision == shown && self.repair);
        self.repair &= !newer;
        newer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_not_to_be_trusted_is_loaded_until_that_succeeds() {
        let mut follow = Follow::default();
        follow.opened();
        follow.repair();
        assert_eq!(follow.todo(7), Todo::Load);
        assert_eq!(follow.todo(7), Todo::Load, "the store could not be read");
        assert!(!follow.loaded(6, 7), "what is shown has not reached the store that was read");
        assert_eq!(follow.todo(7), Todo::Load);
        assert!(follow.loaded(7, 7));
        assert_eq!(follow.todo(7), Todo::Follow { after: 7 });
    }

    #[test]
    fn who_lags_behind_a_compaction_loads_what_is_newer() {
        let mut follow = Follow::default();
        assert_eq!(follow.todo(3), Todo::Follow { after: 3 });
        follow.opened();
        assert_eq!(follow.todo(3), Todo::Read);
        follow.gone();
        assert_eq!(follow.todo(3), Todo::Load);
        assert!(!follow.loaded(3, 3), "no news");
        assert_eq!(follow.todo(3), Todo::Follow { after: 3 });
        follow.gone();
        assert!(follow.loaded(9, 3));
    }
}
