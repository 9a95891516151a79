//! More than one key or value that is not known: what a reader stopped at is taken out of the text, and the rest is read again.

use super::{LoadError, parse};

/// More are not looked for: a file of another format has one in each line.
const MOST: usize = 50;

/// The first mistake, at which reading stopped, and those like it behind it. Rules about the whole are not looked at, because they
/// may be broken by what was taken out.
pub(super) fn with_others(first: LoadError, text: &str, source_name: &str) -> Vec<LoadError> {
    let mut lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let mut mistakes = vec![first];
    while mistakes.len() < MOST {
        let last = mistakes.last().expect("the first is there");
        if !take_out(&mut lines, last) {
            break;
        }
        let rest: Vec<String> = lines.iter().map(|line| line.iter().collect()).collect();
        match parse(&rest.join("\n"), source_name) {
            // What is taken out may be what is missed then; and the same place again would never end.
            Err(next) if is_about_one_entry(&next) && !mistakes.iter().any(|known| known.place() == next.place()) => {
                mistakes.push(next);
            }
            _ => break,
        }
    }
    mistakes
}

fn is_about_one_entry(mistake: &LoadError) -> bool {
    let message = mistake.message();
    ["unknown ", "`", "invalid "].iter().any(|start| message.starts_with(start)) && !message.ends_with(" there twice")
}

/// Blanks the entry that a mistake is about, key and value; places of all others stay. False where it cannot be told which that is.
fn take_out(lines: &mut [Vec<char>], mistake: &LoadError) -> bool {
    let (line, column) = mistake.line_and_column();
    let (Some(line), Some(column)) = (line.checked_sub(1), column.checked_sub(1)) else { return false };
    let (line, column) = (line as usize, column as usize);
    let Some(text) = lines.get(line).filter(|text| column < text.len()) else { return false };
    let (begin, end) = entry(text, column);
    let is_whole_line = text[..begin].iter().all(|letter| *letter == ' ') && end == text.len();
    let indent = begin;
    lines[line][begin..end].fill(' ');
    if is_whole_line {
        // What stands further in below belongs to it.
        let blank = |text: &[char]| text.iter().all(|letter| letter.is_whitespace());
        let further = |text: &[char]| text.iter().take_while(|letter| **letter == ' ').count() > indent;
        for text in lines[line + 1..].iter_mut().take_while(|text| blank(text) || further(text)) {
            text.fill(' ');
        }
    }
    true
}

/// Where the entry around a column of a line begins and ends: between commas or brackets, where it is in some, with the comma behind
/// it; else the whole line.
fn entry(text: &[char], column: usize) -> (usize, usize) {
    let marks = marks(text);
    // Where an entry began in each of the brackets that are open, from outside to inside.
    let mut open: Vec<usize> = Vec::new();
    for (at, mark) in marks.iter().take_while(|(at, _)| *at < column) {
        match mark {
            '{' | '[' => open.push(at + 1),
            ',' => {
                open.pop();
                open.push(at + 1);
            }
            _ => {
                open.pop();
            }
        }
    }
    let Some(begin) = open.pop() else {
        return (text.iter().take_while(|letter| **letter == ' ').count(), text.len());
    };
    let mut depth = 0usize;
    for (at, mark) in marks.into_iter().filter(|(at, _)| *at >= begin) {
        match mark {
            '{' | '[' => depth += 1,
            ',' if depth == 0 => return (begin, at + 1),
            '}' | ']' if depth == 0 => return (begin, at),
            '}' | ']' => depth -= 1,
            _ => {}
        }
    }
    (begin, text.len())
}

/// Brackets of a line, and commas in them, which are in no quotes.
fn marks(text: &[char]) -> Vec<(usize, char)> {
    let (mut marks, mut quote, mut depth) = (Vec::new(), None, 0usize);
    for (at, letter) in text.iter().copied().enumerate() {
        match (quote, letter) {
            (Some(end), _) => quote = if letter == end { None } else { quote },
            (None, '"' | '\'') => quote = Some(letter),
            (None, '{' | '[') => {
                depth += 1;
                marks.push((at, letter));
            }
            (None, '}' | ']') if depth > 0 => {
                depth -= 1;
                marks.push((at, letter));
            }
            (None, ',') if depth > 0 => marks.push((at, letter)),
            _ => {}
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_what_stands_between_commas_and_brackets_or_the_line() {
        for (text, at, wanted) in [
            ("  t: {role: tor, image: frr}", "image", " image: frr"),
            ("  t: {role: tr, image: frr}", "tr", "role: tr,"),
            ("  - {endpoints: [\"a,b:c\", \"d:e\"], mtu: x}", "x", " mtu: x"),
            ("  - {endpoints: [\"a:c\"], mtu: 1}", "[", "endpoints: [\"a:c\"],"),
            ("  mtu: many", "many", "mtu: many"),
            ("  - mtu: many", "many", "- mtu: many"),
        ] {
            let letters: Vec<char> = text.chars().collect();
            let (begin, end) = entry(&letters, text.find(at).unwrap());
            assert_eq!(letters[begin..end].iter().collect::<String>(), wanted, "{text}");
        }
    }
}
