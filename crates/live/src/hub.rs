//! Between who looks at a lab and who reads: the last looks, numbered, and questions for all of it.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::{oneshot, watch};
use weft_experiment::page::document::Document;

/// Looks that a slow reader may be behind: ten seconds.
const KEPT_MOST: usize = 100;

/// The lab that is shown.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Shown {
    pub(crate) lab: String,
    /// Whether people may change it.
    pub(crate) may_change: bool,
    /// Whether its servers can be taken to other racks.
    pub(crate) servers_move: bool,
}

/// All that a page begins with.
#[derive(Debug, Serialize)]
pub(crate) struct Beginning {
    #[serde(flatten)]
    pub(crate) shown: Shown,
    /// The number of the first look that is not in the document.
    pub(crate) next: u64,
    pub(crate) document: Document,
}

pub(crate) type Question = oneshot::Sender<Beginning>;

/// What a reader gets next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Looks, as JSON, each with its number.
    Looks(Vec<(u64, Arc<str>)>),
    /// Others than the reader knows: it begins again.
    Others,
    /// The lab is no more.
    Gone,
}

pub(crate) struct Hub {
    inner: Mutex<Inner>,
    questions: Sender<Question>,
    asked: Mutex<Receiver<Question>>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Inner {
    shown: Option<Shown>,
    /// The number of the look after the last one.
    next: u64,
    looks: VecDeque<Arc<str>>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        let (questions, asked) = channel();
        Self { inner: Mutex::default(), questions, asked: Mutex::new(asked), changed: watch::Sender::new(()) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lab is shown from now on, or none.
    pub(crate) fn show(&self, shown: Option<Shown>) {
        let mut inner = self.inner();
        inner.shown = shown;
        inner.looks.clear();
        // A hole: readers of the lab before do not take looks at this one for its next.
        inner.next += 1;
        drop(inner);
        self.changed.send_replace(());
    }

    /// One more look at it; its number.
    pub(crate) fn push(&self, look: String) {
        let mut inner = self.inner();
        inner.looks.push_back(look.into());
        inner.next += 1;
        if inner.looks.len() > KEPT_MOST {
            inner.looks.pop_front();
        }
        drop(inner);
        self.changed.send_replace(());
    }

    pub(crate) fn shown(&self) -> Option<Shown> {
        self.inner().shown.clone()
    }

    pub(crate) fn next(&self) -> u64 {
        self.inner().next
    }

    /// Looks from this number on; none if there are no more yet.
    pub(crate) fn news(&self, from: u64) -> Option<News> {
        let inner = self.inner();
        if inner.shown.is_none() {
            return Some(News::Gone);
        }
        let first = inner.next - inner.looks.len() as u64;
        if from < first || from > inner.next {
            return Some(News::Others);
        }
        let later = inner.looks.iter().enumerate().skip((from - first) as usize);
        let looks: Vec<_> = later.map(|(place, look)| (first + place as u64, Arc::clone(look))).collect();
        (!looks.is_empty()).then_some(News::Looks(looks))
    }

    /// Tells when there is something new.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Asks for the beginning of a page; whoever looks at the lab answers with its next look.
    pub(crate) fn ask(&self) -> oneshot::Receiver<Beginning> {
        let (question, answer) = oneshot::channel();
        // The other end is in this very struct.
        let _ = self.questions.send(question);
        answer
    }

    /// The questions so far.
    pub(crate) fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).try_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(news: Option<News>) -> Vec<u64> {
        match news {
            Some(News::Looks(looks)) => looks.into_iter().map(|(number, _)| number).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn readers_get_each_look_once_and_are_told_when_they_missed_some() {
        let hub = Hub::new();
        assert_eq!(hub.news(0), Some(News::Gone));
        let lab = |name: &str| Some(Shown { lab: name.to_owned(), may_change: true, servers_move: true });
        hub.show(lab("a"));
        let next = hub.next();
        assert_eq!(hub.news(next), None);
        hub.push("1".to_owned());
        hub.push("2".to_owned());
        assert_eq!(numbers(hub.news(next)), [next, next + 1]);
        assert_eq!(numbers(hub.news(next + 1)), [next + 1]);
        assert_eq!((hub.news(next + 2), hub.news(next + 3)), (None, Some(News::Others)));
        (0..KEPT_MOST).for_each(|_| hub.push("3".to_owned()));
        assert_eq!((hub.news(next + 1), numbers(hub.news(next + 2)).len()), (Some(News::Others), KEPT_MOST));
        let end = hub.next();
        hub.show(lab("b"));
        hub.push("4".to_owned());
        assert_eq!(hub.news(end), Some(News::Others), "another lab");
        hub.show(None);
        assert_eq!(hub.news(hub.next()), Some(News::Gone));
    }
}
