//! Which name somebody meant who wrote one that is not there.

/// The names that are one slip of the pen away, else those that contain what was written, else the nearest in spelling; none if nothing is
/// near.
pub(super) fn meant<'a>(written: &str, known: &[&'a str]) -> Vec<&'a str> {
    /// Shorter texts are in too many names.
    const SHORTEST_PART: usize = 3;
    let distance = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or(name);
        [name, last].map(|name| strsim::damerau_levenshtein(written, name)).into_iter().min().unwrap_or(usize::MAX)
    };
    let nearest = known.iter().map(|name| distance(name)).min().unwrap_or(usize::MAX);
    let containing: Vec<&str> = known.iter().copied().filter(|name| name.contains(written)).collect();
    if nearest > 1 && written.len() >= SHORTEST_PART && !containing.is_empty() {
        return containing;
    }
    let near = nearest <= (written.len() / 4).max(1);
    known.iter().copied().filter(|name| near && distance(name) == nearest).collect()
}

/// ``did you mean `a` or `b`?``; `None` where nothing is near.
pub(super) fn did_you_mean(written: &str, known: &[&str]) -> Option<String> {
    question(&meant(written, known))
}

/// A question such as "did you mean `a` or `b`?"; `None` where no name is near.
pub(super) fn question(meant: &[&str]) -> Option<String> {
    /// More are no help.
    const MOST: usize = 6;
    let names: Vec<String> = meant.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    let others = if meant.len() > MOST { ", or another with this part" } else { "" };
    (!names.is_empty()).then(|| format!("did you mean {}{others}?", names.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] =
        ["vl2/fig09-shuffle", "vl2/fig14-lookup", "vl2/fig14-update", "vl2/smoke", "leaf-spine/queues"];

    #[test]
    fn slips_of_the_pen_and_parts_of_names_are_understood() {
        for (written, names) in [
            ("vl2/fig9-shuffle", &["vl2/fig09-shuffle"][..]),
            ("fig09-shufle", &["vl2/fig09-shuffle"]),
            ("smoke", &["vl2/smoke"]),
            ("fig14", &["vl2/fig14-lookup", "vl2/fig14-update"]),
            ("leafspine/queues", &["leaf-spine/queues"]),
        ] {
            assert_eq!(meant(written, &KNOWN), names, "{written}");
        }
        assert_eq!(did_you_mean("smoek", &KNOWN).as_deref(), Some("did you mean `vl2/smoke`?"));
        assert_eq!(meant("wants", &["paper_wants", "want"]), ["want"]);
        let many: Vec<String> = (1..10).map(|number| format!("fig{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let question = did_you_mean("fig", &many).unwrap_or_default();
        assert!(question.ends_with("`fig6`, or another with this part?"), "{question}");
    }

    #[test]
    fn what_is_far_from_everything_is_not_guessed() {
        for written in ["vl2/fig99", "nonsense", "", "v", "my-plan.toml"] {
            assert_eq!(did_you_mean(written, &KNOWN), None, "{written}");
        }
    }
}
