//! Installs a ConfigMap for each line `NAME COLOUR` of `lamps.txt`.

use chandler_sdk::{Content, Diagnostic, Facts, Failure, Location, Output, Provisioner, Request};
use serde_json::json;

const FILE: &str = "lamps.txt";

/// The provisioner.
#[derive(Debug)]
pub struct Lamps;

impl Provisioner for Lamps {
    const FACTS: Facts = Facts::new("lamps", "0.1.0").formats(&["lamps+v0"]);

    fn detect(content: &dyn Content) -> Option<String> {
        content.exists(FILE).then(|| "lamps+v0".to_owned())
    }

    fn provision(_: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        let unreadable = |error| Diagnostic::error("Unreadable", format!("cannot be read: {error}")).at(FILE);
        let bytes = content.read(FILE).map_err(|error| Failure::InvalidContent(vec![unreadable(error)]))?;
        let mut findings = Vec::new();
        for (line, text) in (1..).zip(String::from_utf8_lossy(&bytes).lines()) {
            let Some((name, colour)) = text.split_once(' ') else {
                let finding = Diagnostic::error("NoColour", format!("{text:?} has no colour"));
                findings.push(finding.at(FILE).position(line, 1).help("write `NAME COLOUR`"));
                continue;
            };
            let lamp = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name},
                "data": {"colour": colour},
            });
            output.emit_value(&lamp, None, Some(Location::file(FILE).starting_at(line, 1)))?;
        }
        if findings.is_empty() { Ok(()) } else { Err(Failure::InvalidContent(findings)) }
    }
}

chandler_sdk::export!(Lamps);

#[cfg(test)]
mod tests {
    use chandler_sdk::testing::{Bundle, run};

    use super::*;

    #[test]
    fn each_line_is_a_lamp() {
        let release = run::<Lamps>(&Bundle::new([(FILE, "north-head white\n")]), &Request::default()).unwrap();
        assert_eq!(release.objects[0].value["data"]["colour"], "white");
    }

    #[test]
    fn a_lamp_needs_a_colour() {
        let failure = run::<Lamps>(&Bundle::new([(FILE, "north-head\n")]), &Request::default()).unwrap_err();
        assert!(failure.to_string().contains("lamps.txt:1:1"), "{failure}");
    }
}
