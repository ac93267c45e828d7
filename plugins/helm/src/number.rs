//! Floating-point numbers as Go writes them.

use chandler_go_template::{fixed_float, general_float};

/// `strconv.FormatFloat(value, 'g', -1, 64)`, which is `%v`: with an exponent below 1e-04 and from 1e+06 on.
pub(crate) fn general(value: f64) -> String {
    general_float(value, None)
}

/// A number in JSON as encoding/json writes it; nothing for what JSON cannot express.
pub(crate) fn json(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return Some(fixed_float(value, None));
    }
    let text = format!("{value:e}");
    Some(if text.contains("e-") { text } else { text.replace('e', "e+") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_in_go() {
        for (value, text, in_json) in [
            (1e6, "1e+06", "1000000"),
            (12_345_678.0, "1.2345678e+07", "12345678"),
            (1.5, "1.5", "1.5"),
            (100_000.0, "100000", "100000"),
            (-0.0, "-0", "-0"),
            (1e-5, "1e-05", "0.00001"),
            (1e-7, "1e-07", "1e-7"),
            (1.25e21, "1.25e+21", "1.25e+21"),
            (1e20, "1e+20", "100000000000000000000"),
        ] {
            assert_eq!((general(value), json(value)), (text.to_owned(), Some(in_json.to_owned())));
        }
        assert_eq!(
            (general(f64::NAN), general(f64::NEG_INFINITY), json(f64::INFINITY)),
            ("NaN".into(), "-Inf".into(), None)
        );
    }
}
