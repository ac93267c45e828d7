//! JSON documents.

use serde_json::Value;

/// Adds a member to an object.
pub(super) fn set(object: &mut Value, member: &str, value: impl Into<Value>) {
    if let Value::Object(members) = object {
        members.insert(member.to_owned(), value.into());
    }
}

/// A document that people read too.
pub(super) fn text(document: &Value) -> anyhow::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    Ok(text)
}
