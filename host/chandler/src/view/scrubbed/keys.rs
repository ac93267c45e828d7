//! Private keys in texts.

use chandler_values::redaction::HIDDEN;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const MARK: &str = "-----";
const LABEL: &str = "PRIVATE KEY";
/// The largest key, in bytes.
const LARGEST: usize = 16 << 10;
/// The least length in bytes of a word that is a line of a key, if other words are in the same line.
const LINE: usize = 16;

/// The text without private keys. Of a key without an end, the lines are hidden that look like a key.
pub(super) fn without_keys(text: &str) -> String {
    let (mut result, mut rest) = (String::new(), text);
    while let Some((before, block)) = rest.split_once(BEGIN) {
        result.push_str(before);
        let label = block.lines().next().unwrap_or_default().split_once(MARK).map(|(label, _)| label);
        match label {
            Some(label) if label.contains(LABEL) => {
                let body = block.get(label.len() + MARK.len()..).unwrap_or_default();
                result.push_str(HIDDEN);
                rest = body.get(closed(body).unwrap_or_else(|| open(body))..).unwrap_or_default();
            }
            _ => {
                result.push_str(BEGIN);
                rest = block;
            }
        }
    }
    result + rest
}

/// The end of a key with its last line.
fn closed(body: &str) -> Option<usize> {
    let at = body.find(END)?;
    let label = body.get(at + END.len()..)?;
    let length = label.find(MARK)?;
    let is_end = at <= LARGEST && !body.get(..at)?.contains(BEGIN) && label.get(..length)?.contains(LABEL);
    is_end.then_some(at + END.len() + length + MARK.len())
}

/// The end of what may be a key that was cut off. A line break may be written as `\\n`.
fn open(body: &str) -> usize {
    let (mut passed, mut end) = (0, 0);
    for (number, line) in body.split_inclusive('\n').flat_map(|line| line.split_inclusive("\\n")).enumerate() {
        let content = line.trim_end_matches("\\n").trim();
        let last = content.rsplit(char::is_whitespace).next().unwrap_or_default();
        let is_first = number == 0 && content.is_empty();
        let is_header = content.starts_with("Proc-Type:") || content.starts_with("DEK-Info:");
        let is_key = is_base64(content) || last.len() >= LINE && is_base64(last);
        if !(is_first
            || is_header
            || number > 0 && content.is_empty()
            || is_key && !(number == 0 && content.len() < LINE))
        {
            break;
        }
        if !content.is_empty() {
            end = passed + line.trim_end_matches("\\n").trim_end_matches(['\r', '\n']).len();
        }
        passed += line.len();
    }
    end
}

fn is_base64(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}
