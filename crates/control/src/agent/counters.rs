//! What an agent counts, reason by reason.

use crate::counted;

counted! {
    /// Why a frame of the host was not delivered.
    pub enum DropReason {
        /// Its destination is not in the AA block.
        OutsideBlock = "outside_block",
        /// Its destination is this host.
        OwnAa = "own_aa",
        /// The directory knows no such AA.
        Unknown = "unknown",
        /// The directory refuses to say where the AA is.
        Refused = "refused",
        /// No server gave a valid answer in time.
        NoAnswer = "no_answer",
        /// A newer frame to the same AA took its place while both waited.
        QueueAa = "queue_aa",
        /// A newer frame took its place while both waited.
        QueueTotal = "queue_total",
        /// Too many look-ups are under way.
        LookupsFull = "lookups_full",
        /// Longer than the path; the host was told so by ICMP.
        TooBig = "too_big",
    }
}

counted! {
    /// Why a datagram, or one entry of it, was ignored.
    pub enum IgnoreReason {
        /// Not a directory datagram.
        Malformed = "malformed",
        /// Not from a configured server.
        WrongSource = "wrong_source",
        /// The tag does not verify.
        BadTag = "bad_tag",
        /// A kind that servers do not send.
        WrongKind = "wrong_kind",
        /// Of another service.
        WrongService = "wrong_service",
        /// Answers no question of ours that is still remembered, or not by the server that was asked.
        WrongRequest = "wrong_request",
        /// Its AAs are not those of the question.
        WrongEntries = "wrong_entries",
        /// The second answer to a question, or a correction of what is not cached: nothing new in it.
        NothingNew = "nothing_new",
        /// Older than what is known already.
        Older = "older",
        /// The server is behind a revision that this agent has seen.
        Behind = "behind",
        /// The server has no time.
        Overloaded = "overloaded",
        /// A status without a meaning here.
        Meaningless = "meaningless",
    }
}

counted! {
    /// What else happened.
    pub enum Event {
        /// A frame missed the data path's map.
        Miss = "miss",
        /// A frame was handed back for delivery.
        Released = "released",
        /// A look-up began.
        Lookup = "lookup",
        /// A question was repeated on other servers.
        Retry = "retry",
        /// A question was not repeated yet: too little is answered.
        RetryDeferred = "retry_deferred",
        /// A datagram was sent.
        DatagramSent = "datagram_sent",
        /// A datagram of a server came with a right tag.
        Heard = "heard",
        /// A mapping was put in force.
        Installed = "installed",
        /// A mapping was confirmed unchanged.
        Confirmed = "confirmed",
        /// A mapping was replaced by a newer one.
        Replaced = "replaced",
        /// A server corrected a mapping unasked.
        Corrected = "corrected",
        /// A mapping was withdrawn.
        Removed = "removed",
        /// An entry made room for another.
        Evicted = "evicted",
        /// A mapping found in the data path at start.
        Adopted = "adopted",
        /// A mapping could not be confirmed in time and stayed in force.
        Unconfirmed = "unconfirmed",
    }
}
