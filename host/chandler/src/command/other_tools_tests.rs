//! The tips for verbs and options of other tools, against the real command line.

use clap::{CommandFactory as _, Parser as _};

use super::Arguments;
use crate::view::other_tools::{OPTIONS, VERBS, with_tip};

/// The tips of the error about a command line.
fn tips(line: &str) -> String {
    let arguments: Vec<String> = std::iter::once("chandler").chain(line.split(' ')).map(str::to_owned).collect();
    let error = Arguments::try_parse_from(&arguments).unwrap_err();
    let text = with_tip(error, &arguments).render().to_string();
    let tips = text.lines().filter_map(|line| line.trim_start().strip_prefix("tip: "));
    tips.collect::<Vec<_>>().join("\n")
}

#[test]
fn verbs_and_options_of_other_tools_get_one_tip_each() {
    for (words, tip) in VERBS {
        for word in *words {
            assert_eq!(tips(&format!("{word} x")), *tip, "{word}");
            assert!(Arguments::command().find_subcommand(word).is_none(), "{word} is a command of our own");
        }
    }
    assert!(!tips("template x").contains("delete"));
    for (words, tip) in OPTIONS.iter().filter(|(words, _)| !words.contains(&"-A")) {
        for word in *words {
            assert_eq!(tips(&format!("upgrade x ./y {word}=z")), *tip, "{word}");
        }
    }
    for option in ["-A", "--all-namespaces"] {
        assert!(tips(&format!("list {option}")).contains("no namespace"), "{option}");
    }
    assert!(tips("install prometheus --version 1.2.3").contains("PACKAGE@1.2.3"));
}

#[test]
fn other_mistakes_keep_their_suggestions() {
    assert!(tips("staus x").contains("'status'"));
    assert!(tips("render x --outptu json").contains("--output"));
    assert!(!tips("catalog rm").contains("BundleDeployment"));
}

#[test]
fn the_tips_name_commands_and_options_that_exist() {
    let root = Arguments::command();
    for tip in VERBS.iter().chain(OPTIONS).map(|(_, tip)| *tip) {
        for command in tip.split('`').skip(1).step_by(2).filter_map(|command| command.strip_prefix("chandler ")) {
            let mut known = &root;
            for word in command.split(' ').take_while(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())) {
                known = known.find_subcommand(word).unwrap_or_else(|| panic!("{command}"));
            }
        }
    }
    let upgrade = root.find_subcommand("upgrade").unwrap();
    for option in ["reset-config", "config", "values-from"] {
        assert!(upgrade.get_arguments().any(|argument| argument.get_long() == Some(option)), "{option}");
    }
}
