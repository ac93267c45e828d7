//! Names whose values are secrets.

/// Parts of names whose values are secrets.
const PARTS: [&str; 19] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "token",
    "secret",
    "apikey",
    "privatekey",
    "accesskey",
    "signingkey",
    "encryptionkey",
    "credential",
    "authorization",
    "cookie",
    "bearer",
    "jwt",
    "sessionid",
    "dockerconfig",
    "connectionstring",
];
/// Ends of such names that are too short to be looked for everywhere.
const ENDS: [&str; 3] = ["pwd", "pass", "auth"];
/// Ends of names that say where a secret is, or something else about it.
const HARMLESS: [&str; 9] =
    ["name", "namespace", "ref", "seconds", "pullsecret", "pullsecrets", "path", "policy", "count"];

/// The path of a Receiver, which is all that some of its senders prove.
const WEBHOOK_PATH: &str = "webhookpath";

/// Whether the value of a member, a variable, a header or a flag with this name is a secret.
pub(super) fn is_telling(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let is_secret = PARTS.iter().any(|part| plain.contains(part)) || ENDS.iter().any(|end| plain.ends_with(end));
    plain == WEBHOOK_PATH || is_secret && !HARMLESS.iter().any(|end| plain.ends_with(end))
}
