//! Requests, and what the server can.
//!
//! Source: gitprotocol-v2 and gitprotocol-http, of git's documentation.

use gix_hash::ObjectId;
use gix_packetline::blocking_io::encode::{data_to_write, delim_to_write, flush_to_write};

use crate::{CommitId, FileId, GitError, Revision, error::text, lines};

/// The value of the header `Git-Protocol`, which asks for version 2.
pub const VERSION: &str = "version=2";
/// What follows the URL of a repository in the first request.
pub const ADVERTISEMENT: &str = "/info/refs?service=git-upload-pack";
/// The content type of the response to the first request.
pub const ADVERTISEMENT_TYPE: &str = "application/x-git-upload-pack-advertisement";
/// What follows the URL of a repository in all others.
pub const UPLOAD_PACK: &str = "/git-upload-pack";
/// The content type of these requests.
pub const REQUEST_TYPE: &str = "application/x-git-upload-pack-request";
/// The variable of the environment that asks for version 2 over SSH. Many servers ignore it (`AcceptEnv` of sshd).
pub const VERSION_VARIABLE: &str = "GIT_PROTOCOL";
/// The most bytes of a first response.
pub const ADVERTISEMENT_BYTES: u64 = 64 << 10;
/// The most bytes of a list of refs.
pub const REFS_BYTES: u64 = 16 << 20;

/// What a server can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether it sends a commit without those before it.
    pub shallow: bool,
    /// Whether it sends directories without their files. Such a server also sends single files.
    pub filter: bool,
}

impl Capabilities {
    /// Reads the response to the first request.
    ///
    /// # Errors
    /// The server speaks an older version, or the repository has another object format.
    pub fn parse(response: &[u8]) -> Result<Self, GitError> {
        // Servers of other things answer too, with a page.
        let lines = lines::all(response).map_err(|error| match error {
            GitError::Server(_) => error,
            _ => GitError::Version,
        })?;
        let mut lines = lines.iter().map(Vec::as_slice);
        if !lines.any(|line| line == b"version 2") {
            return Err(GitError::Version);
        }
        let (mut lists, mut fetches) = (false, false);
        let mut capabilities = Self { shallow: false, filter: false };
        for line in lines {
            let (name, value) = line.split_at(line.iter().position(|byte| *byte == b'=').unwrap_or(line.len()));
            let value = value.get(1..).unwrap_or_default();
            match name {
                b"ls-refs" => lists = true,
                b"fetch" => {
                    fetches = true;
                    let has = |wanted: &[u8]| value.split(|byte| *byte == b' ').any(|feature| feature == wanted);
                    capabilities = Self { shallow: has(b"shallow"), filter: has(b"filter") };
                }
                b"object-format" if value != b"sha1" => return Err(GitError::ObjectFormat(text(value))),
                _ => {}
            }
        }
        if lists && fetches { Ok(capabilities) } else { Err(GitError::Version) }
    }
}

/// Whether a first response that begins so is one of version 0 or 1: it lists all refs.
pub fn is_old(response: &[u8]) -> bool {
    let line = response.get(4..).unwrap_or_default();
    let is_ref = line.get(..41).is_some_and(|word| {
        word.split_last().is_some_and(|(end, id)| *end == b' ' && id.iter().all(u8::is_ascii_hexdigit))
    });
    is_ref || line.starts_with(b"version 1")
}

/// The command that serves a repository over SSH, for the shell of the server. The path is quoted as git quotes it (`sq_quote_buf`
/// of quote.c): some servers take the command apart themselves, and expect this form.
pub fn upload_pack(path: &str) -> String {
    let mut command = "git-upload-pack '".to_owned();
    for character in path.chars() {
        match character {
            '\'' | '!' => command.extend(["'\\", character.encode_utf8(&mut [0; 4]), "'"]),
            other => command.push(other),
        }
    }
    command.push('\'');
    command
}

/// The request for the refs that a revision may be.
pub fn list(revision: &Revision) -> Vec<u8> {
    let mut arguments = vec!["peel".to_owned()];
    arguments.extend(revision.prefix().map(|prefix| format!("ref-prefix {prefix}")));
    request("ls-refs", &arguments)
}

/// The request for a commit with all its directories, and without the commits before it where the server can. Where it can filter, the
/// files are left out: [`files`] requests those that are wanted.
pub fn commit(commit: CommitId, capabilities: Capabilities) -> Vec<u8> {
    let mut arguments = Vec::new();
    if capabilities.shallow {
        arguments.push("deepen 1".to_owned());
    }
    if capabilities.filter {
        arguments.push("filter blob:none".to_owned());
    }
    fetch(arguments, [commit.0])
}

/// The request for files. Any object may be requested in this version of the protocol (gitprotocol-v2, "want").
pub fn files(files: &[FileId]) -> Vec<u8> {
    fetch(Vec::new(), files.iter().map(|file| file.0))
}

fn fetch(mut arguments: Vec<String>, objects: impl IntoIterator<Item = ObjectId>) -> Vec<u8> {
    arguments.extend(["no-progress".to_owned(), "ofs-delta".to_owned()]);
    arguments.extend(objects.into_iter().map(|object| format!("want {object}")));
    arguments.push("done".to_owned());
    request("fetch", &arguments)
}

fn request(command: &str, arguments: &[String]) -> Vec<u8> {
    let mut request = Vec::new();
    let agent = concat!("agent=chandler/", env!("CARGO_PKG_VERSION"), "\n");
    // Writing into memory fails only for lines over 64 KiB; names of refs are shorter by the rules of the API.
    let _ = data_to_write(format!("command={command}\n").as_bytes(), &mut request);
    let _ = data_to_write(agent.as_bytes(), &mut request);
    let _ = data_to_write(b"object-format=sha1\n", &mut request);
    let _ = delim_to_write(&mut request);
    for argument in arguments {
        let _ = data_to_write(format!("{argument}\n").as_bytes(), &mut request);
    }
    let _ = flush_to_write(&mut request);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_version_2_is_spoken() {
        let of = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|line| format!("{:04x}{line}\n", line.len() + 5)).collect();
            Capabilities::parse(format!("001e# service=git-upload-pack\n0000{}0000", lines.concat()).as_bytes())
        };
        for (fetch, shallow, filter) in [
            ("fetch=shallow wait-for-done filter", true, true),
            ("fetch=filtered shallow", true, false),
            ("fetch", false, false),
        ] {
            let lines = ["version 2", "agent=git/2.39", "ls-refs=unborn", fetch, "object-format=sha1"];
            assert_eq!(of(&lines), Ok(Capabilities { shallow, filter }));
        }
        assert_eq!(of(&["version 1", "ls-refs", "fetch"]), Err(GitError::Version));
        assert_eq!(of(&["version 2", "ls-refs"]), Err(GitError::Version));
        let sha256 = of(&["version 2", "ls-refs", "fetch", "object-format=sha256"]);
        assert_eq!(sha256, Err(GitError::ObjectFormat("sha256".to_owned())));
        assert_eq!(Capabilities::parse(b"<html>"), Err(GitError::Version));
    }

    #[test]
    fn older_versions_are_recognized() {
        let id = "0123456789012345678901234567890123456789";
        for (response, expected) in [
            (format!("00f0{id} HEAD\0multi_ack"), true),
            (format!("00f0{} capabilities^{{}}\0multi_ack", "0".repeat(40)), true),
            ("000eversion 1\n".to_owned(), true),
            ("000eversion 2\n".to_owned(), false),
            (id.to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(is_old(response.as_bytes()), expected, "{response}");
        }
    }

    #[test]
    fn paths_are_one_argument() {
        for (path, expected) in [
            ("/a/b.git", "git-upload-pack '/a/b.git'"),
            ("~/a b", "git-upload-pack '~/a b'"),
            ("/'; id #", "git-upload-pack '/'\\''; id #'"),
            ("/a!b", "git-upload-pack '/a'\\!'b'"),
            ("/$(id)`id`", "git-upload-pack '/$(id)`id`'"),
        ] {
            assert_eq!(upload_pack(path), expected);
        }
    }

    #[test]
    fn requests_have_the_form_of_the_specification() {
        let id: CommitId = "0123456789012345678901234567890123456789".parse().unwrap();
        let text = String::from_utf8(commit(id, Capabilities { shallow: true, filter: true })).unwrap();
        let agent = concat!("agent=chandler/", env!("CARGO_PKG_VERSION"), "\n");
        let head = format!("{:04x}{agent}0017object-format=sha1\n0001", agent.len() + 4);
        assert_eq!(
            text,
            format!(
                "0012command=fetch\n{head}000ddeepen 1\n0015filter blob:none\n0010no-progress\n000eofs-delta\n0032want {id}\n0009done\n0000"
            )
        );
        let text = String::from_utf8(files(&[FileId(id.0), FileId(id.0)])).unwrap();
        let wants = format!("0032want {id}\n").repeat(2);
        assert_eq!(text, format!("0012command=fetch\n{head}0010no-progress\n000eofs-delta\n{wants}0009done\n0000"));
        let text = String::from_utf8(list(&Revision::Branch("main".to_owned()))).unwrap();
        assert_eq!(text, format!("0014command=ls-refs\n{head}0009peel\n001fref-prefix refs/heads/main\n0000"));
    }
}
