//! What replacing a CustomResourceDefinition would break: `crd_diff OLD.json NEW.json [OLD.json NEW.json ...]`.
//!
//! One JSON document for each pair.

#![expect(clippy::print_stdout, reason = "its purpose")]

use std::{env, error::Error, fs};

use chandler_crd_upgrade::{Policy, compare};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (pairs, rest) = arguments.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return Err("usage: crd_diff OLD.json NEW.json [OLD.json NEW.json ...]".into());
    }
    let read = |path: &str| -> Result<Value, Box<dyn Error>> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
    for [old, new] in pairs {
        println!("{}", serde_json::to_string(&compare(&read(old)?, &read(new)?, &Policy::default()))?);
    }
    Ok(())
}
