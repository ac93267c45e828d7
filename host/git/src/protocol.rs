//! Requests, and what the server can.
//!
//! Source: gitprotocol-v2 and gitprotocol-http, of git's documentation.

use gix_packetline::blocking_io::encode::{data_to_write, delim_to_write, flush_to_write};

use crate::{CommitId, GitError, Revision, error::text, lines};

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
/// The most bytes of a first response.
pub const ADVERTISEMENT_BYTES: u64 = 64 << 10;
/// The most bytes of a list of refs.
pub const REFS_BYTES: u64 = 16 << 20;

/// What a server can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether it sends a commit without those before it.
    pub shallow: bool,
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
        let (mut lists, mut fetches, mut shallow) = (false, false, false);
        for line in lines {
            let (name, value) = line.split_at(line.iter().position(|byte| *byte == b'=').unwrap_or(line.len()));
            let value = value.get(1..).unwrap_or_default();
            match name {
                b"ls-refs" => lists = true,
                b"fetch" => {
                    fetches = true;
                    shallow = value.split(|byte| *byte == b' ').any(|feature| feature == b"shallow");
                }
                b"object-format" if value != b"sha1" => return Err(GitError::ObjectFormat(text(value))),
                _ => {}
            }
        }
        if lists && fetches { Ok(Self { shallow }) } else { Err(GitError::Version) }
    }
}

/// The request for the refs that a revision may be.
pub fn list(revision: &Revision) -> Vec<u8> {
    let mut arguments = vec!["peel".to_owned()];
    arguments.extend(revision.prefix().map(|prefix| format!("ref-prefix {prefix}")));
    request("ls-refs", &arguments)
}

/// The request for a commit with all its files, and without those before it where the server can.
pub fn fetch(commit: CommitId, capabilities: Capabilities) -> Vec<u8> {
    let mut arguments = vec!["no-progress".to_owned(), "ofs-delta".to_owned()];
    if capabilities.shallow {
        arguments.push("deepen 1".to_owned());
    }
    arguments.extend([format!("want {commit}"), "done".to_owned()]);
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
        let full =
            ["version 2", "agent=git/2.39", "ls-refs=unborn", "fetch=shallow wait-for-done", "object-format=sha1"];
        assert_eq!(of(&full), Ok(Capabilities { shallow: true }));
        assert_eq!(of(&["version 2", "ls-refs", "fetch"]), Ok(Capabilities { shallow: false }));
        assert_eq!(of(&["version 1", "ls-refs", "fetch"]), Err(GitError::Version));
        assert_eq!(of(&["version 2", "ls-refs"]), Err(GitError::Version));
        let sha256 = of(&["version 2", "ls-refs", "fetch", "object-format=sha256"]);
        assert_eq!(sha256, Err(GitError::ObjectFormat("sha256".to_owned())));
        assert_eq!(Capabilities::parse(b"<html>"), Err(GitError::Version));
    }

    #[test]
    fn requests_have_the_form_of_the_specification() {
        let commit: CommitId = "0123456789012345678901234567890123456789".parse().unwrap();
        let text = String::from_utf8(fetch(commit, Capabilities { shallow: true })).unwrap();
        let agent = concat!("agent=chandler/", env!("CARGO_PKG_VERSION"), "\n");
        let head = format!("{:04x}{agent}0017object-format=sha1\n0001", agent.len() + 4);
        assert_eq!(
            text,
            format!(
                "0012command=fetch\n{head}0010no-progress\n000eofs-delta\n000ddeepen 1\n0032want {commit}\n0009done\n0000"
            )
        );
        let text = String::from_utf8(list(&Revision::Branch("main".to_owned()))).unwrap();
        assert_eq!(text, format!("0014command=ls-refs\n{head}0009peel\n001fref-prefix refs/heads/main\n0000"));
    }
}
