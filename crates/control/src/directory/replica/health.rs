//! What is wrong with a directory server, and what of that makes it unfit.

/// Who uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Append,
    Check,
    Follow,
}

/// What went wrong when it was last tried.
#[derive(Clone, Debug, Default)]
pub struct Health {
    failure: Option<String>,
    append: Option<String>,
    check: Option<String>,
    follow: Option<String>,
}

impl Health {
    /// Keeps an error, or that there is none any more. Returns whether that is news.
    pub fn note(&mut self, part: Part, error: Option<String>) -> bool {
        let place = match part {
            Part::Append => &mut self.append,
            Part::Check => &mut self.check,
            Part::Follow => &mut self.follow,
        };
        let news = place.is_some() != error.is_some();
        *place = error;
        news
    }

    /// The server itself has failed: the first time is the cause.
    pub fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }

    /// Why it has failed, if it has.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Why the store is of no use now, as far as that is known.
    pub fn store_error(&self) -> Option<&str> {
        [&self.failure, &self.append, &self.check, &self.follow].into_iter().flatten().next().map(String::as_str)
    }

    /// Whether updates would be kept and shown.
    ///
    /// # Errors
    /// Why not, in one line.
    pub fn check(&self) -> Result<(), String> {
        match (&self.failure, &self.check, &self.follow) {
            (Some(why), ..) | (None, Some(why), _) => Err(why.clone()),
            (None, None, Some(why)) => Err(format!("not caught up: {why}")),
            (None, None, None) => Ok(()),
        }
    }
}
