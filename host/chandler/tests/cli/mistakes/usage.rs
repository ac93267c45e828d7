//! Mistakes on the command line.

use super::{Messages, mistake};

const BUNDLE: &str = "tests/fixtures/registry/harbour-operator.v0.1.0";

#[test]
fn a_wrong_command_line_names_the_argument() {
    let mut messages = Messages::new();
    messages.check(vec![
        mistake("a mistyped command", &["staus", "x"], "unrecognized subcommand", "'staus'", "'status'"),
        mistake(
            "a verb of another tool",
            &["template", BUNDLE],
            "unrecognized subcommand",
            "'template'",
            "chandler render BUNDLE",
        ),
        mistake(
            "an option of another tool",
            &["upgrade", "x", "--reuse-values"],
            "unexpected argument",
            "--reuse-values",
            "--reset-config",
        ),
        mistake("no name", &["status"], "required arguments were not provided", "<NAME>", "--help"),
        mistake("no bundle", &["render"], "required arguments were not provided", "<BUNDLE>", "--help"),
        mistake(
            "a mistyped option",
            &["render", BUNDLE, "--outptu", "json"],
            "unexpected argument",
            "--outptu",
            "--output",
        ),
        mistake("an unknown format", &["render", BUNDLE, "-o", "xml"], "invalid value", "--output", "yaml"),
        mistake(
            "no name of a namespace",
            &["render", BUNDLE, "--namespace", "My_NS"],
            "is not a valid name",
            "--namespace",
            "a-z",
        ),
        mistake(
            "no name of a BundleDeployment",
            &["render", BUNDLE, "--name", "Shop"],
            "is not a valid name",
            "--name",
            "a-z",
        ),
        mistake(
            "no version of Kubernetes",
            &["render", BUNDLE, "--kubernetes-version", "latest"],
            "is not a Kubernetes version",
            "--kubernetes-version",
            "write `1.36`",
        ),
        mistake(
            "two bundles to compare",
            &["diff", BUNDLE, "./new"],
            "is a bundle, and so is \"./new\"",
            BUNDLE,
            "chandler diff NAME NEW_BUNDLE",
        ),
        mistake(
            "no duration",
            &["status", "x", "--watch", "--timeout", "5d"],
            "is not a duration",
            "--timeout",
            "write `90s`",
        ),
        mistake(
            "a timeout of nothing",
            &["status", "x", "--timeout", "5m"],
            "required arguments were not provided",
            "--watch",
            "--help",
        ),
        mistake(
            "no level of the log",
            &["--log-level", "x=loud", "crds"],
            "is not a log level",
            "x=loud",
            "write `error`",
        ),
        mistake("dev without a bundle", &["dev"], "required arguments were not provided", "--bundle", "--help"),
        mistake(
            "no address",
            &["dev", "--keep", "--bind", "localhost"],
            "is not an address",
            "--bind",
            "write `127.0.0.1`",
        ),
        mistake(
            "no account",
            &["rbac", &format!("./{BUNDLE}")],
            "requires --service-account",
            "a bundle",
            "--service-account NAME",
        ),
        mistake("no revision", &["rollback", "x", "--to", "first"], "invalid value", "--to", "--help"),
        mistake("a kind of something else", &["explain", "pod/x"], "unknown kind", "pod", "resolution/NAME"),
        mistake("a mistyped kind", &["status", "resolutoin/x"], "unknown kind", "resolutoin", "--help"),
        mistake(
            "a kind that cannot be rolled back",
            &["rollback", "po/x"],
            "is about BundleDeployments and Resolutions",
            "po/x",
            "chandler explain platformoperator/x",
        ),
        mistake("a kind without a name", &["history", "resolution/"], "is not a valid name", "resolution/", "a-z"),
        mistake("no way to treat CRDs", &["delete", "x", "--crds", "yes"], "invalid value", "--crds", "Keep"),
    ]);
    insta::assert_snapshot!("mistakes.usage", messages.finish());
}
