//! An estimate of the memory of JSON once it is parsed, from its bytes.
//!
//! A parser that does not know the type of a value allocates for each list and each object, and for each of their members. `[0],` takes 176 bytes,
//! and `{"":0},` as a map takes 640: a node of a B-tree. Typical objects take ten to fifteen times their bytes.

/// The first allocation of a list that is not empty, in bytes.
const LIST: usize = 176;
/// The first allocation of an object that is not empty, in bytes.
const OBJECT: usize = 640;
/// A further member of a list or an object, or the name of a member, in bytes. Lists grow to twice their length.
const MEMBER: usize = 64;
/// The copies of each byte: the answer, and the texts in it.
const COPIES: usize = 2;

/// Estimates the memory of a text that comes in pieces. Text that is not JSON counts as well: a parser reads it until the error.
#[derive(Debug, Default)]
pub struct Estimate {
    place: Place,
    /// What the list or object takes that has just begun, unless it is empty.
    begun: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
    #[default]
    Structure,
    Text,
    /// After a backslash in a text.
    Escape,
}

impl Estimate {
    /// The bytes that this further piece of the text takes.
    pub fn next(&mut self, piece: &[u8]) -> usize {
        let parsed: usize = piece.iter().map(|byte| self.byte(*byte)).sum();
        parsed.saturating_add(piece.len().saturating_mul(COPIES))
    }

    fn byte(&mut self, byte: u8) -> usize {
        match (self.place, byte) {
            (Place::Text, b'"') | (Place::Escape, _) => {
                self.place = if matches!(self.place, Place::Text) { Place::Structure } else { Place::Text };
                0
            }
            (Place::Text, b'\\') => {
                self.place = Place::Escape;
                0
            }
            (Place::Text, _) | (Place::Structure, b' ' | b'\t' | b'\r' | b'\n') => 0,
            (Place::Structure, b']' | b'}') => {
                self.begun = 0;
                0
            }
            (Place::Structure, _) => self.structure(byte),
        }
    }

    /// A byte of the structure that ends nothing.
    fn structure(&mut self, byte: u8) -> usize {
        let begun = std::mem::take(&mut self.begun);
        let own = match byte {
            b'"' => {
                self.place = Place::Text;
                0
            }
            b'[' => {
                self.begun = LIST;
                0
            }
            b'{' => {
                self.begun = OBJECT;
                0
            }
            b',' | b':' => MEMBER,
            _ => 0,
        };
        begun + own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(text: &str) -> usize {
        Estimate::default().next(text.as_bytes()) - COPIES * text.len()
    }

    #[test]
    fn structure_counts_and_text_does_not() {
        for (text, expected) in [
            ("", 0),
            ("12", 0),
            ("[]", 0),
            ("{ }", 0),
            ("[0]", LIST),
            ("[0,1]", LIST + MEMBER),
            ("[[[]]]", 2 * LIST),
            (r#"{"a":0}"#, OBJECT + MEMBER),
            (r#"{"a":{},"b":[]}"#, OBJECT + 3 * MEMBER),
            (r#""[0],{\"[0],\\""#, 0),
            (r#"["\\",1]"#, LIST + MEMBER),
            // Not JSON.
            ("]]]}", 0),
            ("[,,", LIST + 2 * MEMBER),
        ] {
            assert_eq!(structure(text), expected, "{text}");
        }
    }

    #[test]
    fn pieces_count_like_the_whole() {
        let text = br#"{"a":["x\\",{"b":[1,2,[]]}],"c\"":{}}"#;
        let whole = Estimate::default().next(text);
        for at in 0..text.len() {
            let (one, other) = text.split_at(at);
            let mut estimate = Estimate::default();
            assert_eq!(estimate.next(one) + estimate.next(other), whole, "{at}");
        }
    }
}
