//! Output in a locale without UTF-8.

use crate::support::{cache, command};

#[test]
fn signs_are_ascii_in_a_locale_that_has_nothing_else() {
    let help = |locale: &str| {
        let output = command(&cache()).args(["explain", "--help"]).env("LC_ALL", locale).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(help("C.UTF-8").contains('\u{2713}'));
    let ascii = help("C");
    assert!(ascii.is_ascii() && ascii.contains("Signs: + done"), "{ascii}");
}
