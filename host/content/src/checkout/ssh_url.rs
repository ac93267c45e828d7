//! The URL of a repository on an SSH server.

use std::fmt;

use reqwest::Url;

use super::RepositoryUrlError;

/// The port of SSH.
const PORT: u16 = 22;
/// The longest name of a user, and the longest path, in bytes.
const USER: usize = 64;
const PATH: usize = 1024;

/// `ssh://[user@]host[:port]/path`, or `user@host:path`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SshUrl {
    user: Option<String>,
    /// A URL of another scheme, whose host is normalized: in lower case, in ASCII, an address in its usual form.
    endpoint: Url,
    port: u16,
    /// As the server gets it: relative to the home directory of the user if it does not begin with a slash.
    path: String,
}

/// Whether a name may be a user name. The first character keeps it from looking like an option.
pub(super) fn is_user(name: &str) -> bool {
    name.len() <= USER
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}

impl SshUrl {
    /// Parses a URL for SSH. Returns `None` if the text is not one.
    pub(super) fn parse(text: &str) -> Option<Result<Self, RepositoryUrlError>> {
        let long = ["ssh://", "git+ssh://", "ssh+git://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        if let Some(rest) = long {
            return Some(Self::long(rest));
        }
        // As git does, `host:path` is for SSH if no slash is before the colon; here it needs a user, too.
        let (user, rest) = text.split_once('@').filter(|(user, _)| !user.contains(['/', ':']))?;
        if text.contains("://") {
            return None;
        }
        Some(Self::short(user, rest))
    }

    fn long(rest: &str) -> Result<Self, RepositoryUrlError> {
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => return Err(RepositoryUrlError::Password),
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        if path.contains(['%', '?', '#']) {
            return Err(RepositoryUrlError::Encoded);
        }
        // git: a home directory is not below the root.
        let path = if path.starts_with("/~") { path.get(1..).unwrap_or_default() } else { path };
        Self::new(user, place, path)
    }

    fn short(user: &str, rest: &str) -> Result<Self, RepositoryUrlError> {
        // The colons of an address of IPv6 are in brackets.
        let from = rest.find(']').unwrap_or(0);
        let colon = rest.get(from..).and_then(|rest| rest.find(':')).map(|at| at + from);
        let (place, path) = colon.map(|at| rest.split_at(at)).ok_or(RepositoryUrlError::Malformed)?;
        Self::new(Some(user), place, path.get(1..).unwrap_or_default())
    }

    fn new(user: Option<&str>, place: &str, path: &str) -> Result<Self, RepositoryUrlError> {
        if user.is_some_and(|user| !is_user(user)) {
            return Err(RepositoryUrlError::User);
        }
        let path = path.trim_end_matches('/');
        if path.is_empty() || path.len() > PATH || path.starts_with('-') || path.chars().any(char::is_control) {
            return Err(RepositoryUrlError::Path);
        }
        let is_plain = !place.starts_with('-') && !place.contains(['@', '/', '\\', '?', '#', '%']);
        let endpoint = Url::parse(&format!("https://{place}")).ok().filter(|_| is_plain && !place.is_empty());
        let endpoint = endpoint.filter(Url::has_host).ok_or(RepositoryUrlError::Malformed)?;
        // The URL omits the port of https, and SSH may use that port.
        let has_port = place.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.contains(']'));
        let port = if has_port { endpoint.port_or_known_default() } else { None }.unwrap_or(PORT);
        Ok(Self { user: user.map(str::to_owned), endpoint, port, path: path.to_owned() })
    }

    /// The user, if the URL names one.
    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// A URL with the host.
    pub(super) fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// The host, an address of IPv6 without brackets.
    pub(super) fn host(&self) -> &str {
        self.bracketed().trim_start_matches('[').trim_end_matches(']')
    }

    fn bracketed(&self) -> &str {
        self.endpoint.host_str().unwrap_or_default()
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The server as messages name it: `host` or `host:port`.
    pub(super) fn server(&self) -> String {
        let host = self.bracketed();
        if self.port == PORT { host.to_owned() } else { format!("{host}:{}", self.port) }
    }

    /// The origin with the user, and the path.
    pub(super) fn parts(&self) -> (String, String) {
        let user = self.user.as_deref().map(|user| format!("{user}@")).unwrap_or_default();
        (format!("ssh://{user}{}", self.server()), self.path.clone())
    }
}

impl fmt::Display for SshUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (origin, path) = self.parts();
        match (&self.user, path.chars().next()) {
            // In a URL, this would be a home directory.
            (Some(user), Some('/')) if path.starts_with("/~") => write!(f, "{user}@{}:{path}", self.server()),
            (_, Some('/')) => write!(f, "{origin}{path}"),
            (_, Some('~')) => write!(f, "{origin}/{path}"),
            // Only the short form has a relative path, and always a user.
            (user, _) => write!(f, "{}@{}:{path}", user.as_deref().unwrap_or_default(), self.server()),
        }
    }
}
