//! `runtime.Unknown`: the envelope of every object.

use serde_json::Value;

use crate::protobuf::{
    error::{Error, Fault},
    message::{self, Budget, text},
    table::Table,
    wire::{Reader, Wire},
};

/// The prefix of every body.
pub(crate) const PREFIX: &[u8] = b"k8s\0";

/// The envelope of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `apiVersion`; may be empty.
    pub api_version: &'a str,
    /// `kind`; may be empty.
    pub kind: &'a str,
    /// The object.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads the envelope of a body.
    ///
    /// # Errors
    /// When there is none, or it is malformed.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        if body.is_empty() {
            return Err(Error::Empty);
        }
        let mut reader = Reader::new(body.strip_prefix(PREFIX).ok_or(Error::Prefix)?);
        let mut envelope = Self::default();
        while let Some((number, wire)) = reader.next().map_err(Fault::here)? {
            match (number, wire) {
                (1, Wire::Bytes(bytes)) => envelope.read_type(bytes)?,
                (2, Wire::Bytes(bytes)) => envelope.raw = bytes,
                (1 | 2, other) => return Err(Fault::WrongType(other.wire_type()).here()),
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &'a [u8]) -> Result<(), Error> {
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.next().map_err(Fault::here)? {
            match number {
                1 => self.api_version = text(wire)?,
                2 => self.kind = text(wire)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads an object with its envelope; what the envelope leaves open is taken from the caller.
pub(crate) fn object(body: &[u8], api_version: &str, kind: &str, budget: &mut Budget) -> Result<Value, Error> {
    let envelope = Envelope::read(body)?;
    let or = |stated: &str, default: &str| if stated.is_empty() { default.to_owned() } else { stated.to_owned() };
    let (api_version, kind) = (or(envelope.api_version, api_version), or(envelope.kind, kind));
    if api_version.is_empty() || kind.is_empty() {
        return Err(Error::NoKind);
    }
    let Some(index) = Table::get().kind(&api_version, &kind) else {
        return Err(Error::UnknownKind { api_version, kind });
    };
    let mut object = message::value(index, envelope.raw, budget)?.unwrap_or_default();
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), kind.into());
    }
    Ok(object)
}
