//! Fields of built-in types that are serialised even when empty.

use std::{collections::HashMap, sync::OnceLock};

use crate::schema::model::{Presence, Scalar, Shape};

/// Made by `examples/generate_presence.rs`; its header explains the marks.
static TABLE: &str = include_str!("generated/presence-v1.36.txt");

/// The marks of each type.
fn table() -> &'static HashMap<&'static str, &'static str> {
    static DECODED: OnceLock<HashMap<&'static str, &'static str>> = OnceLock::new();
    DECODED.get_or_init(|| {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_once(' ')).collect()
    })
}

/// Marks the fields of the built-in type with this name.
pub(crate) fn mark(definition: &str, shape: &mut Shape) {
    let Shape::Object { properties, required, .. } = shape else { return };
    for (name, property) in properties.iter_mut() {
        property.presence = if required.contains(name) { Presence::Written } else { Presence::Omitted };
    }
    for mark in table().get(definition).into_iter().flat_map(|marks| marks.split(' ')) {
        let Some((sign, name)) = mark.split_at_checked(1) else { continue };
        let Some(property) = properties.get_mut(name) else { continue };
        property.presence = match sign {
            "+" => Presence::Written,
            "*" => Presence::Pointer,
            "&" => Presence::Null,
            _ => Presence::Omitted,
        };
    }
    // Versions of kinds are written by the server itself.
    for name in ["apiVersion", "kind"] {
        if let Some(property) = properties.get_mut(name).filter(|property| is_text(&property.shape)) {
            property.presence = Presence::AsIs;
        }
    }
}

fn is_text(shape: &Shape) -> bool {
    matches!(shape, Shape::Scalar(Scalar::String { .. }))
}
