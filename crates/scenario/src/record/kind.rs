//! A kind of rows as data: its file, its columns and what they mean, and how its rows become text and come back.

use super::Records;

/// A kind of rows: a list of [`Records`], and a file of a run folder.
#[derive(Clone, Copy, Debug)]
pub struct RowKind {
    /// Name of the list, and of the file without its ending.
    pub name: &'static str,
    /// What one row is.
    pub about: &'static str,
    /// Its columns, in their order.
    pub columns: &'static [Column],
    pub(super) cells: fn(&Records) -> Cells<'_>,
    pub(super) push: fn(&mut Records, &[&str]) -> Option<()>,
    pub(super) clear: fn(&mut Records),
}

/// A column of a kind of rows, or of all.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name, the unit last.
    pub name: &'static str,
    /// What its cells hold: `whole number`, `number`, `text`, and whether they may be empty.
    pub holds: &'static str,
    /// What it means.
    pub about: &'static str,
}

/// Rows as text, one after another.
pub type Cells<'a> = Box<dyn Iterator<Item = Vec<String>> + 'a>;

impl RowKind {
    /// Its file in `records/`.
    pub fn file(&self) -> String {
        format!("{}.csv", self.name)
    }

    /// All rows of this kind as text.
    pub fn cells<'a>(&self, records: &'a Records) -> Cells<'a> {
        (self.cells)(records)
    }

    /// Adds the row that these cells are; `None` if they are none.
    pub fn push(&self, records: &mut Records, cells: &[&str]) -> Option<()> {
        (self.push)(records, cells)
    }

    /// Whether rows of this kind stay where only `kinds` are read: the kinds themselves, and always facts.
    pub fn stays_beside(&self, kinds: &[Self]) -> bool {
        kinds.contains(self) || *self == super::FACTS
    }
}

impl PartialEq for RowKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Records {
    /// Drops the rows of every kind but these; facts stay.
    pub fn keep(&mut self, kinds: &[RowKind]) {
        for kind in RowKind::ALL.iter().filter(|kind| !kind.stays_beside(kinds)) {
            (kind.clear)(self);
        }
    }
}

/// The one declaration of every kind of rows: `list: Row { column: Cell, .. }`, each with its documentation; `list: Row: Copy`
/// where rows may be copied. It yields the structs with their [`RowKind`], [`Records`], and [`RowKind::ALL`].
macro_rules! rows {
    ($(
        $(#[doc = $about:literal])+
        $list:ident: $Row:ident $(: $More:ident)? { $($(#[doc = $means:literal])+ $column:ident: $Cell:ty,)+ }
    )+) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
            $(#[derive($More)])?
            pub struct $Row { $($(#[doc = $means])+ pub $column: $Cell,)+ }

            impl $Row {
                /// These rows as a kind.
                pub const KIND: RowKind = RowKind {
                    name: stringify!($list),
                    about: concat!($($about),+).trim_ascii(),
                    columns: &[$(Column {
                        name: stringify!($column),
                        holds: <$Cell as Cell>::HOLDS,
                        about: concat!($($means),+).trim_ascii(),
                    }),+],
                    cells: |records| Box::new(records.$list.iter().map(|row| vec![$(row.$column.write()),+])),
                    push: |records, cells| {
                        let [$($column),+] = cells else { return None };
                        records.$list.push($Row { $($column: Cell::read($column)?),+ });
                        Some(())
                    },
                    clear: |records| records.$list = Vec::new(),
                };
            }
        )+

        /// Everything that one run yields.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Records {
            $($(#[doc = $about])+ pub $list: Vec<$Row>,)+
            /// Anything else worth keeping: name and value, for instance `link_selftest.server-tor.got_bps`.
            pub facts: Vec<(String, f64)>,
        }

        impl RowKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$($Row::KIND,)+ FACTS];
        }
    };
}
