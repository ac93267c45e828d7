//! The meaning of a scalar: the tables of go-yaml v2 (`resolve.go`).

use base64::{Engine as _, alphabet, engine::general_purpose::GeneralPurpose, engine::general_purpose::PAD};

use crate::{Kind, number};

/// The prefix of the tags of the standard YAML types.
const CORE: &str = "tag:yaml.org,2002:";

/// The resolved scalar.
pub(crate) enum Scalar {
    /// A value.
    Kind(Kind),
    /// The merge key `<<`.
    Merge,
}

/// A plain scalar without a tag. The error is a message.
pub(crate) fn plain(text: &str) -> Result<Scalar, String> {
    let kind = match text.as_bytes().first() {
        None | Some(b'~' | b'n' | b'N' | b'y' | b'Y' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') => word(text),
        Some(b'<') if text == "<<" => return Ok(Scalar::Merge),
        Some(b'.' | b'+' | b'-' | b'0'..=b'9') => return numeric(text).map(Scalar::Kind),
        Some(_) => None,
    };
    Ok(Scalar::Kind(kind.unwrap_or_else(|| Kind::String(text.into()))))
}

/// The words of YAML 1.1 with a special meaning.
fn word(text: &str) -> Option<Kind> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Kind::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Kind::Bool(false),
        _ => return None,
    })
}

fn numeric(text: &str) -> Result<Kind, String> {
    match text {
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf"
        | "-.INF" => Err(not_finite(text)),
        _ => Ok(number::resolve(text).unwrap_or_else(|| Kind::String(text.into()))),
    }
}

fn not_finite(text: &str) -> String {
    format!("{text} is not a number that JSON can represent")
}

/// A scalar with a tag. The error is a message.
pub(crate) fn tagged(text: &str, handle: &str, suffix: &str) -> Result<Kind, String> {
    let tag = format!("{handle}{suffix}");
    let Some(name) = tag.strip_prefix("!!").or_else(|| tag.strip_prefix(CORE)) else {
        // A custom tag, or `!`: text.
        return Ok(Kind::String(text.into()));
    };
    let plain = || match plain(text) {
        Ok(Scalar::Kind(kind)) => Ok(kind),
        Ok(Scalar::Merge) => Ok(Kind::String(text.into())),
        Err(message) => Err(message),
    };
    let wrong = || format!("cannot decode {text:?} as a !!{name}");
    match name {
        "binary" => binary(text).ok_or_else(wrong),
        "null" => matches!(plain()?, Kind::Null).then_some(Kind::Null).ok_or_else(wrong),
        "bool" => plain().and_then(|kind| if matches!(kind, Kind::Bool(_)) { Ok(kind) } else { Err(wrong()) }),
        "int" => {
            plain().and_then(|kind| if matches!(kind, Kind::Int(_) | Kind::UInt(_)) { Ok(kind) } else { Err(wrong()) })
        }
        "float" => plain().and_then(|kind| {
            if matches!(kind, Kind::Int(_) | Kind::UInt(_) | Kind::Float(_)) { Ok(kind) } else { Err(wrong()) }
        }),
        _ => Ok(Kind::String(text.into())),
    }
}

/// Base64 with white space; the decoded bytes must be text, since JSON has no bytes.
fn binary(text: &str) -> Option<Kind> {
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, PAD);
    let packed: String = text.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(packed).ok()?;
    Some(Kind::String(String::from_utf8(bytes).ok()?.into()))
}
