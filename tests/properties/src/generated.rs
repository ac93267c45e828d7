//! The annotation with which a release requests generated values: parsed as documented, and filled only once.

use std::{collections::BTreeMap, io, sync::OnceLock};

use arbitrary::{Arbitrary, Unstructured};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_certificates::generated::{GENERATE, GeneratedSecrets};
use chandler_core::{Object, Release};
use chandler_expression::re2::Regex;
use serde_json::{Map, Value, json};

use crate::memory;

/// Thirty-two values of two kilobytes, in base64 of base64, several times at once.
const FIXED: usize = 4 << 20;
const PER_BYTE: usize = 200;

/// The relevant parts of an annotation.
#[derive(Debug, Arbitrary)]
struct Request {
    parts: Vec<Part>,
    given: Vec<u8>,
    live: Vec<(u8, Live)>,
}

#[derive(Debug, Arbitrary)]
enum Part {
    Wanted { key: Key, kind: u8, length: Option<Length>, padding: u8 },
    Text(String),
    Empty,
}

#[derive(Debug, Arbitrary)]
enum Key {
    Numbered(u8),
    Long(u16),
    Text(String),
}

#[derive(Debug, Arbitrary)]
enum Length {
    Number(u16),
    Signed(u8),
    Text(String),
}

/// The live value of a key.
#[derive(Debug, Arbitrary)]
enum Live {
    Bytes(Vec<u8>),
    Text(String),
    Long(u8),
    Number(i8),
}

const KINDS: &[&str] = &["password", "hex", "base64", "uuid", "Hex", "", "letters", "digits", "ascii", "strong"];

pub(crate) fn holds(input: &[u8]) {
    // The input as text, and as structured choices.
    let text = String::from_utf8_lossy(input);
    let mut lines = text.lines();
    let annotation = lines.next().unwrap_or_default();
    let given: Vec<String> = lines.next().unwrap_or_default().split(',').map(str::to_owned).collect();
    let live = lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.to_owned(), json!(value)));
    asks(input, annotation, &given, live.collect());
    let Ok(asked) = Request::arbitrary(&mut Unstructured::new(input)) else { return };
    let annotation: Vec<String> = asked.parts.iter().map(Part::text).collect();
    let given: Vec<String> = asked.given.iter().map(|number| Key::Numbered(*number).text()).collect();
    let live = asked.live.iter().map(|(number, live)| (Key::Numbered(*number).text(), live.value()));
    asks(input, &annotation.join(","), &given, live.collect());
}

/// A Secret with an annotation and given values, and the live Secret.
fn asks(input: &[u8], annotation: &str, given: &[String], live: Map<String, Value>) {
    let given: BTreeMap<&str, &str> = given.iter().map(|key| (key.as_str(), "eA==")).collect();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": given,
        "metadata": {"name": "s", "annotations": {GENERATE: annotation}}});
    let Ok(object) = Object::parse(secret.to_string().as_bytes(), 0, None) else { return };
    let release = Release::new(vec![object], Vec::new(), Vec::new());
    let expected = documented_format(annotation, &given);
    memory::bounded(input, FIXED, PER_BYTE, || match (GeneratedSecrets::of(&release, "ns"), expected) {
        (Ok(secrets), Some(wanted)) => filled(&secrets, &release, &given, &live, &wanted),
        (Err(error), None) => {
            let text = error.to_string();
            assert!(!text.trim().is_empty() && text.len() < 4 << 10, "{} bytes: {text}", text.len());
        }
        (Ok(_), None) => panic!("{annotation:?} is taken"),
        (Err(error), Some(_)) => panic!("{annotation:?} is refused: {error}"),
    });
}

/// The documented format: `KEY=KIND[:LENGTH]`, separated by commas, each key once, at most 32.
fn documented_format(annotation: &str, given: &BTreeMap<&str, &str>) -> Option<BTreeMap<String, Wanted>> {
    static PART: OnceLock<Regex> = OnceLock::new();
    let form =
        r"^([-._a-zA-Z0-9]{1,253})=(?:uuid|(password|letters|digits|ascii|strong|hex|base64)(?::\+?0*([0-9]{1,5}))?)$";
    let form = PART.get_or_init(|| Regex::new(form).expect("a pattern"));
    let mut wanted = BTreeMap::new();
    for part in annotation.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let found = form.captures(part)?;
        let key = found.get(1)?.as_str();
        let length = found.get(3).map_or(Some(32), |length| length.as_str().parse().ok())?;
        let (kind, least) = match found.get(2).map(|kind| kind.as_str()) {
            None => (Wanted::Uuid, 0),
            Some("password") => (Wanted::Password(length), 8),
            Some("letters") => (Wanted::Letters(length), 8),
            Some("digits") => (Wanted::Digits(length), 16),
            Some("ascii" | "strong") => (Wanted::Ascii(length), 8),
            Some("hex") => (Wanted::Hex(length), 16),
            Some(_) => (Wanted::Base64(length), 16),
        };
        let is_taken = given.contains_key(key) || key == "." || key.starts_with("..");
        if is_taken || !(least..=1024).contains(&length) || wanted.insert(key.to_owned(), kind).is_some() {
            return None;
        }
    }
    (wanted.len() <= 32).then_some(wanted)
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Password(usize),
    Letters(usize),
    Digits(usize),
    Ascii(usize),
    Hex(usize),
    Base64(usize),
    Uuid,
}

fn filled(
    secrets: &GeneratedSecrets,
    release: &Release,
    given: &BTreeMap<&str, &str>,
    live: &Map<String, Value>,
    wanted: &BTreeMap<String, Wanted>,
) {
    let in_cluster = json!({"data": live});
    let full = secrets.fill(release, &[Some(in_cluster)], &mut numbers()).expect("randomness");
    let value = Value::Object(full.objects()[0].value.clone());
    let data = value["data"].as_object().expect("data");
    let mut names: Vec<&str> = given.keys().copied().chain(wanted.keys().map(String::as_str)).collect();
    names.sort_unstable();
    assert_eq!(data.keys().map(String::as_str).collect::<Vec<_>>(), names, "other keys than those asked for");
    for (key, text) in given {
        assert_eq!(data[*key], **text, "what the release says is replaced");
    }
    for (key, wanted) in wanted {
        let bytes = STANDARD.decode(data[key].as_str().expect("text")).expect("base64");
        match live.get(key).filter(|live| is_usable(live)) {
            Some(live) => assert_eq!(data[key], *live, "what is in the cluster is replaced"),
            None => wanted.assert_form(&bytes),
        }
    }
    // Live values are kept: nothing is generated again, so no randomness is read.
    let mut none = |_: &mut [u8]| Err(io::Error::other("asked again"));
    let again = secrets.fill(release, &[Some(value.clone())], &mut none).expect("all that is wanted is there");
    assert_eq!(again.digest(), full.digest(), "another value when filled again");
}

fn is_usable(live: &Value) -> bool {
    let text = live.as_str().unwrap_or_default();
    text.len() <= 64 << 10 && STANDARD.decode(text).is_ok_and(|bytes| !bytes.is_empty())
}

/// Deterministic pseudo-random bytes.
fn numbers() -> impl FnMut(&mut [u8]) -> io::Result<()> {
    let mut state = 1_u64;
    move |bytes| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = state.to_be_bytes()[0];
        }
        Ok(())
    }
}

impl Wanted {
    fn assert_form(self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).expect("text");
        let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let fits = match self {
            Self::Password(length) => text.len() == length && text.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            Self::Letters(length) => text.len() == length && text.bytes().all(|byte| byte.is_ascii_alphabetic()),
            Self::Digits(length) => text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit()),
            Self::Ascii(length) => text.len() == length && text.bytes().all(|byte| byte.is_ascii_graphic()),
            Self::Hex(length) => text.len() == 2 * length && is_hex(text),
            Self::Base64(length) => STANDARD.decode(text).is_ok_and(|bytes| bytes.len() == length),
            Self::Uuid => {
                let parts: Vec<&str> = text.split('-').collect();
                let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
                lengths == [8, 4, 4, 4, 12]
                    && parts.iter().all(|part| is_hex(part))
                    && parts[2].starts_with('4')
                    && parts[3].starts_with(['8', '9', 'a', 'b'])
            }
        };
        assert!(fits, "{self:?} is {text:?}");
    }
}

impl Part {
    fn text(&self) -> String {
        match self {
            Self::Wanted { key, kind, length, padding } => {
                let padding = [" ", "", "\t", "\u{a0}"][usize::from(padding % 4)];
                let kind = KINDS[usize::from(*kind) % KINDS.len()];
                let length = length.as_ref().map(Length::text).unwrap_or_default();
                format!("{padding}{}={kind}{length}{padding}", key.text())
            }
            Self::Text(text) => text.clone(),
            Self::Empty => String::new(),
        }
    }
}

impl Key {
    fn text(&self) -> String {
        match self {
            Self::Numbered(number) => format!("k{}", number % 48),
            Self::Long(length) => "k".repeat(usize::from(length % 300)),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Length {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => format!(":{}", number % 1100),
            Self::Signed(number) => format!(":+{number}"),
            Self::Text(text) => format!(":{text}"),
        }
    }
}

impl Live {
    fn value(&self) -> Value {
        match self {
            Self::Bytes(bytes) => json!(STANDARD.encode(bytes)),
            Self::Text(text) => json!(text),
            Self::Long(length) => json!("QUFB".repeat((16 << 10) - 100 + usize::from(*length))),
            Self::Number(number) => json!(number),
        }
    }
}
