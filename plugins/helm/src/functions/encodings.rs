//! Base64 and base32, digests, JSON and YAML.

use chandler_go_template::{Call, Function, FunctionError, Map, Type, Value};
use sha2::{Digest as _, Sha256, Sha512};

use crate::{json, yaml};

use super::{Result, any, bytes, made, text, toml};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Any, String};
    Some(match name {
        "toYaml" => Function::new(&[Any], |call, a| or_nothing(call, yaml::write(&any(a, 0)).map(trimmed))),
        "mustToYaml" => Function::new(&[Any], |call, a| must(call, yaml::write(&any(a, 0)).map(trimmed))),
        "toYamlPretty" => {
            Function::new(&[Any], |call, a| or_nothing(call, yaml::write_pretty(&any(a, 0)).map(trimmed)))
        }
        "fromYaml" => Function::new(&[String], |call, a| {
            call.charge(bytes(a, 0).len().saturating_mul(4))?;
            let read = yaml::read(&text(a, 0)).map_err(|error| error.to_string());
            Ok(object(read.and_then(|value| is_map(value, true))))
        }),
        "fromYamlArray" => Function::new(&[String], |call, a| {
            call.charge(bytes(a, 0).len().saturating_mul(4))?;
            let read = yaml::read(&text(a, 0)).map_err(|error| error.to_string());
            Ok(array(read.and_then(|value| is_list(value, true))))
        }),
        "toJson" => Function::new(&[Any], |call, a| or_nothing(call, json::write(&any(a, 0), None, true))),
        "mustToJson" => Function::new(&[Any], |call, a| must(call, json::write(&any(a, 0), None, true))),
        "toPrettyJson" => Function::new(&[Any], |call, a| or_nothing(call, json::write(&any(a, 0), Some("  "), true))),
        "mustToPrettyJson" => Function::new(&[Any], |call, a| must(call, json::write(&any(a, 0), Some("  "), true))),
        "toRawJson" | "mustToRawJson" => {
            Function::new(&[Any], |call, a| must(call, json::write(&any(a, 0), None, false)))
        }
        "fromJson" => Function::new(&[String], |call, a| {
            call.charge(bytes(a, 0).len().saturating_mul(4))?;
            Ok(object(json::read(&text(a, 0)).and_then(|value| is_map(value, false))))
        }),
        "fromJsonArray" => Function::new(&[String], |call, a| {
            call.charge(bytes(a, 0).len().saturating_mul(4))?;
            Ok(array(json::read(&text(a, 0)).and_then(|value| is_list(value, false))))
        }),
        "mustFromJson" => Function::new(&[String], |call, a| {
            call.charge(bytes(a, 0).len().saturating_mul(4))?;
            json::read(&text(a, 0)).map_err(FunctionError::new)
        }),
        "toToml" => Function::new(&[Any], |call, a| {
            let text = toml::write(&any(a, 0)).unwrap_or_else(|error| error);
            made(call, text)
        }),
        "mustToToml" => Function::new(&[Any], |call, a| must(call, toml::write(&any(a, 0)))),
        "fromToml" => Function::new(&[String], |call, a| {
            call.charge(bytes(a, 0).len().saturating_mul(4))?;
            match toml::read(&text(a, 0)) {
                Ok(map) => Ok(object(Ok(map))),
                Err(toml::Unread::Invalid(error)) => Ok(object(Err(error))),
                Err(toml::Unread::Date) => Err(FunctionError::Refused {
                    function: "fromToml".to_owned(),
                    reason: "the TOML has a date, which this renderer does not read; write it as a string".to_owned(),
                }),
            }
        }),
        "b64enc" => Function::new(&[String], |call, a| {
            use base64::Engine as _;
            made(call, base64::engine::general_purpose::STANDARD.encode(bytes(a, 0)))
        }),
        "b64dec" => Function::new(&[String], |call, a| match decode(bytes(a, 0), 4, base64_digit) {
            Ok(decoded) => made(call, decoded),
            Err(at) => made(call, format!("illegal base64 data at input byte {at}")),
        }),
        "b32enc" => Function::new(&[String], |call, a| made(call, base32(bytes(a, 0)))),
        "b32dec" => Function::new(&[String], |call, a| match decode(bytes(a, 0), 8, base32_digit) {
            Ok(decoded) => made(call, decoded),
            Err(at) => made(call, format!("illegal base32 data at input byte {at}")),
        }),
        "sha256sum" => Function::new(&[String], |call, a| {
            call.charge(bytes(a, 0).len())?;
            made(call, hex(&Sha256::digest(bytes(a, 0))))
        }),
        "sha512sum" => Function::new(&[String], |call, a| {
            call.charge(bytes(a, 0).len())?;
            made(call, hex(&Sha512::digest(bytes(a, 0))))
        }),
        "sha1sum" => Function::new(&[String], |call, a| {
            call.charge(bytes(a, 0).len())?;
            made(call, hex(&sha1(bytes(a, 0))))
        }),
        "adler32sum" => Function::new(&[String], |call, a| {
            let (mut low, mut high) = (1_u32, 0_u32);
            for byte in bytes(a, 0) {
                low = (low + u32::from(*byte)) % 65_521;
                high = (high + low) % 65_521;
            }
            made(call, ((high << 16) | low).to_string())
        }),
        _ => return None,
    })
}

/// Helm removes one line feed at the end.
fn trimmed(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// A text; empty if the value cannot be written in this form, as Helm does.
fn or_nothing(call: &mut Call<'_>, written: std::result::Result<String, String>) -> Result {
    made(call, written.unwrap_or_default())
}

fn must(call: &mut Call<'_>, written: std::result::Result<String, String>) -> Result {
    let text = written.map_err(FunctionError::new)?;
    made(call, text)
}

/// What Go's decoder of JSON calls a value of another type than asked for.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Int(..) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::List(_) => "array",
        _ => "object",
    }
}

fn wrong(value: &Value, wanted: &str, yaml: bool) -> String {
    let place = if yaml { "error unmarshaling JSON: while decoding JSON: " } else { "" };
    format!("{place}json: cannot unmarshal {} into Go value of type {wanted}", kind(value))
}

fn is_map(value: Value, yaml: bool) -> std::result::Result<Map, String> {
    match value {
        Value::Map(map) => Ok(map),
        Value::Nil => Ok(Map::new()),
        other => Err(wrong(&other, "map[string]interface {}", yaml)),
    }
}

fn is_list(value: Value, yaml: bool) -> std::result::Result<Value, String> {
    match value {
        Value::List(_) => Ok(value),
        Value::Nil => Ok(Value::list(Vec::new())),
        other => Err(wrong(&other, "[]interface {}", yaml)),
    }
}

/// A map, or one that has the error, as Helm gives.
fn object(read: std::result::Result<Map, String>) -> Value {
    Value::Map(read.unwrap_or_else(|error| [("Error", Value::from(error))].into_iter().collect()))
}

/// A list, or one that has the error, as Helm gives.
fn array(read: std::result::Result<Value, String>) -> Value {
    read.unwrap_or_else(|error| Value::list(vec![Value::from(error)]))
}

fn base64_digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

fn base32_digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'2'..=b'7' => byte - b'2' + 26,
        _ => return None,
    })
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32(from: &[u8]) -> String {
    let mut out = String::with_capacity(from.len() * 2);
    for chunk in from.chunks(5) {
        let mut bits = 0_u64;
        for at in 0..5 {
            bits = (bits << 8) | u64::from(chunk.get(at).copied().unwrap_or_default());
        }
        let used = (chunk.len() * 8).div_ceil(5);
        for at in 0..8 {
            let digit = usize::try_from((bits >> (35 - 5 * at)) & 31).unwrap_or_default();
            out.push(if at < used { char::from(BASE32.get(digit).copied().unwrap_or(b'=')) } else { '=' });
        }
    }
    out
}

/// Decodes blocks of `size` digits with padding; line breaks do not count. The error is the place where Go finds the data wrong.
fn decode(from: &[u8], size: usize, digit: impl Fn(u8) -> Option<u8>) -> std::result::Result<Vec<u8>, usize> {
    let bits_per_digit = if size == 4 { 6 } else { 5 };
    let mut input = from.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r')).peekable();
    let mut out = Vec::with_capacity(from.len());
    loop {
        let Some((start, _)) = input.peek().copied() else { return Ok(out) };
        let (mut bits, mut count) = (0_u64, 0_usize);
        let mut padding = None;
        while count < size {
            let Some((at, byte)) = input.next() else {
                // Go blames the first digit of the block that is incomplete; of base32 the end of the data.
                return Err(if size == 4 { from.len().saturating_sub(count) } else { start });
            };
            if let Some(value) = digit(*byte) {
                bits = (bits << bits_per_digit) | u64::from(value);
                count += 1;
            } else if *byte == b'=' {
                padding = Some(at);
                break;
            } else {
                return Err(at);
            }
        }
        let Some(at) = padding else {
            let length = size * bits_per_digit / 8;
            out.extend_from_slice(bits.to_be_bytes().get(8 - length..).unwrap_or_default());
            continue;
        };
        let allowed = if size == 4 { matches!(count, 2 | 3) } else { matches!(count, 2 | 4 | 5 | 7) };
        if !allowed {
            return Err(at);
        }
        for _ in count + 1..size {
            match input.next() {
                Some((_, b'=')) => {}
                Some((at, _)) => return Err(at),
                None => return Err(from.len()),
            }
        }
        let length = count * bits_per_digit / 8;
        bits <<= (size - count) * bits_per_digit;
        let whole = size * bits_per_digit / 8;
        out.extend_from_slice(bits.to_be_bytes().get(8 - whole..8 - whole + length).unwrap_or_default());
        return match input.next() {
            Some((at, _)) => Err(at),
            None => Ok(out),
        };
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS.get(usize::from(value)).copied().unwrap_or(b'0'));
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// SHA-1, which protects nothing here: charts name things by it.
fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut message = bytes.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_be_bytes());
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in message.chunks_exact(64) {
        let mut words: Vec<u32> = block
            .chunks_exact(4)
            .map(|word| word.iter().fold(0, |value, byte| (value << 8) | u32::from(*byte)))
            .collect();
        for at in 16..80_usize {
            let word = |back: usize| words.get(at - back).copied().unwrap_or_default();
            words.push((word(3) ^ word(8) ^ word(14) ^ word(16)).rotate_left(1));
        }
        let mut round = state;
        for (at, word) in words.iter().enumerate() {
            let [first, x, y, z, last] = round;
            let (mixed, constant) = match at {
                0..20 => ((x & y) | (!x & z), 0x5a82_7999),
                20..40 => (x ^ y ^ z, 0x6ed9_eba1),
                40..60 => ((x & y) | (x & z) | (y & z), 0x8f1b_bcdc),
                _ => (x ^ y ^ z, 0xca62_c1d6_u32),
            };
            let next = [mixed, last, constant, *word].into_iter().fold(first.rotate_left(5), u32::wrapping_add);
            round = [next, first, x.rotate_left(30), y, z];
        }
        for (sum, value) in state.iter_mut().zip(round) {
            *sum = sum.wrapping_add(value);
        }
    }
    let mut out = [0; 20];
    for (bytes, word) in out.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    out
}
