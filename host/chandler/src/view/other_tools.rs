//! Verbs and options of other tools that this command does not have: tips by their meaning. By spelling, `template` is close to `delete`.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Verbs, each with what does the same here.
pub(crate) const VERBS: &[(&[&str], &str)] = &[
    (&["rm", "remove"], "`chandler delete NAME` deletes a BundleDeployment, with a preview"),
    (
        &["describe", "show", "info"],
        "`chandler status NAME` shows the state of a BundleDeployment, `chandler get NAME` its values and objects",
    ),
    (&["search"], "`chandler catalog search TEXT` searches the catalogs of the cluster"),
    (&["logs"], "`chandler status NAME` shows what is wrong and where; `kubectl logs` prints the logs of Pods"),
    (&["template"], "`chandler render BUNDLE` prints the objects of a bundle"),
    (&["repo"], "`chandler catalog add NAME CATALOG` adds a catalog to the cluster; a bundle in a registry needs none"),
    (&["pause"], "`chandler suspend NAME` suspends a BundleDeployment, `chandler resume NAME` resumes it"),
    (
        &["update"],
        "`chandler upgrade NAME [BUNDLE]` changes a BundleDeployment; `chandler outdated` lists newer versions",
    ),
];

/// Options, each with what does the same here.
pub(crate) const OPTIONS: &[(&[&str], &str)] = &[
    (
        &["--atomic", "--rollback-on-failure"],
        "the installed release stays until the new one is healthy; with `rollout: {onFailure: Rollback}` in the spec, a failed one is rolled back",
    ),
    (
        &["--reuse-values"],
        "the configuration in the spec is kept, and the given one merged over it; --reset-config drops it",
    ),
    (
        &["--set-file"],
        "--config FILE reads a file with configuration; --values-from takes a value from a ConfigMap or a Secret",
    ),
    (&["--all-namespaces", "-A"], "BundleDeployments have no namespace: all are listed without an option"),
];

/// The option for the version of a package.
const VERSION: &str = "--version";
/// The commands that install a package.
const OF_PACKAGES: [&str; 2] = ["install", "upgrade"];

/// Replaces the suggestions of an error by a tip, if the user wrote a verb or an option of another tool. `arguments` begin with the program.
pub fn with_tip(mut error: clap::Error, arguments: &[String]) -> clap::Error {
    let given = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.split('=').next().unwrap_or_default().to_owned()),
        _ => None,
    };
    // A verb of another tool below a command, such as `catalog rm`, has another meaning.
    let first = arguments.get(1).map(String::as_str).unwrap_or_default();
    let (suggested, tip) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let verb = given(ContextKind::InvalidSubcommand).filter(|verb| verb == first);
            (ContextKind::SuggestedSubcommand, verb.and_then(|verb| find(VERBS, &verb)))
        }
        ErrorKind::UnknownArgument => {
            let option = given(ContextKind::InvalidArg).unwrap_or_default();
            let tip = match option.as_str() {
                VERSION if OF_PACKAGES.contains(&first) => {
                    Some("name the version with the package, such as `PACKAGE@1.2.3`, or with the tag of the image")
                }
                option => find(OPTIONS, option),
            };
            (ContextKind::SuggestedArg, tip)
        }
        _ => return error,
    };
    if let Some(tip) = tip {
        error.remove(suggested);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn find(table: &[(&[&str], &'static str)], word: &str) -> Option<&'static str> {
    table.iter().find(|(words, _)| words.contains(&word)).map(|(_, tip)| *tip)
}
