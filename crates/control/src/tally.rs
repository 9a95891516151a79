//! Counters by reason: an enum names the reasons, a [`Tally`] holds one number for each.

use std::marker::PhantomData;

/// An enum whose variants are counted. Made by [`counted!`](crate::counted).
pub trait Counted: Copy + 'static {
    /// Every variant, in order.
    const ALL: &'static [Self];

    /// Its place in [`Self::ALL`].
    fn index(self) -> usize;

    /// Its name in a status report: lower case with underscores.
    fn name(self) -> &'static str;
}

/// Defines an enum of reasons and implements [`Counted`](crate::tally::Counted) for it.
#[macro_export]
macro_rules! counted {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $crate::tally::Counted for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn index(self) -> usize {
                self as usize
            }

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

/// One count for each variant of `C`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally<C> {
    counts: Vec<u64>,
    of: PhantomData<C>,
}

impl<C: Counted> Default for Tally<C> {
    fn default() -> Self {
        Self { counts: vec![0; C::ALL.len()], of: PhantomData }
    }
}

impl<C: Counted> Tally<C> {
    /// Counts one.
    pub fn add(&mut self, what: C) {
        self.counts[what.index()] += 1;
    }

    /// How many there were.
    pub fn get(&self, what: C) -> u64 {
        self.counts[what.index()]
    }

    /// The sum of all.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Name and count of every variant, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        C::ALL.iter().map(|what| (what.name(), self.get(*what)))
    }

    /// Adds the counts of another tally.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }
}
