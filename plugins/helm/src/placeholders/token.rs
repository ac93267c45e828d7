//! The form of a placeholder: letters and digits, so that quoting and encoding as YAML, JSON or a URL leave it as it is.

/// The beginning of each placeholder.
const BEGIN: &str = "Chgen";
/// How many digits its number has.
const DIGITS: usize = 4;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment<'t> {
    /// Text without placeholders.
    Text(&'t str),
    /// The placeholder of this number.
    Placeholder(usize),
}

/// A placeholder.
pub(super) fn write(salt: &str, id: usize) -> String {
    format!("{BEGIN}{salt}N{id:0DIGITS$}Z")
}

/// The parts of a text. Placeholders have numbers below `count`.
pub(super) fn segments<'t>(text: &'t str, salt: &str, count: usize) -> Vec<Segment<'t>> {
    let begin = format!("{BEGIN}{salt}N");
    let (mut segments, mut from) = (Vec::new(), 0);
    for at in memchr::memmem::find_iter(text.as_bytes(), begin.as_bytes()) {
        let digits = at + begin.len();
        let number =
            text.get(digits..digits + DIGITS).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(id) = number.and_then(|number| number.parse::<usize>().ok()).filter(|id| *id < count) else {
            continue;
        };
        if text.as_bytes().get(digits + DIGITS) != Some(&b'Z') {
            continue;
        }
        if let Some(before) = text.get(from..at).filter(|before| !before.is_empty()) {
            segments.push(Segment::Text(before));
        }
        segments.push(Segment::Placeholder(id));
        from = digits + DIGITS + 1;
    }
    if let Some(rest) = text.get(from..).filter(|rest| !rest.is_empty()) {
        segments.push(Segment::Text(rest));
    }
    segments
}

/// Whether a text without placeholders contains a part of one, or one in other letters.
pub(super) fn is_damaged(text: &str, salt: &str) -> bool {
    let text = text.to_ascii_lowercase();
    memchr::memmem::find(text.as_bytes(), salt.as_bytes()).is_some()
}
