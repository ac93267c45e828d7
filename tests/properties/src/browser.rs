//! Requests to servers on loopback: cross-origin and DNS rebinding requests of browsers are refused, by the rules of URLs.
//!
//! The URL parser here implements the standard that browsers follow; the code under test does not use it.

use arbitrary::{Arbitrary, Unstructured};
use chandler_core::{
    browser::{Foreign, Stated, refuse},
    text::is_deceptive,
};
use url::{Host, Url};

use crate::memory;

/// A few copies of the headers.
const FIXED: usize = 64 << 10;
const PER_BYTE: usize = 50;

/// The relevant parts of a request.
#[derive(Debug, Arbitrary)]
struct Request {
    host: Option<Authority>,
    origin: Option<Origin>,
    fetch_site: Option<Site>,
}

#[derive(Debug, Arbitrary)]
struct Authority {
    parts: Vec<Part>,
    port: Option<Port>,
}

/// A part of a name, of an address, or of neither.
#[derive(Debug, Arbitrary)]
enum Part {
    Known(u8),
    Octet(u8),
    Dot,
    Mark(u8),
    Other(char),
}

#[derive(Debug, Arbitrary)]
enum Port {
    Number(u16),
    Text(String),
}

#[derive(Debug, Arbitrary)]
enum Origin {
    /// The origin of the stated host, with this scheme.
    Same(u8),
    Of(u8, Authority),
    Text(String),
}

#[derive(Debug, Arbitrary)]
enum Site {
    Known(u8),
    Text(String),
}

/// The names of this machine, and parts of names that look like one.
const KNOWN: &[&str] = &[
    "localhost",
    "host.docker.internal",
    "host.containers.internal",
    "host.lima.internal",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "0x7f",
    "LocalHost",
    "attacker.example",
    "xn--",
    "%6c",
    "::1",
];
/// The number of leading names, which cannot be registered.
const OWN: usize = 8;
const MARKS: &[&str] = &["/", "\\", "@", "?", "#", ":", "[", "]", "%", " ", "\t", "-", "_", "\0", ",", ";"];
const SCHEMES: &[&str] = &["http://", "https://", "ws://", "file://", "", "x://", "HTTP://"];
const SITES: &[&str] = &["same-origin", "none", "same-site", "cross-site", "Same-Origin", ""];

pub(crate) fn holds(input: &[u8]) {
    // The input as text, and as structured choices.
    let text = String::from_utf8_lossy(input);
    let mut lines = text.lines().map(|line| Some(line).filter(|line| *line != "-"));
    let mut line = || lines.next().flatten();
    stated(Stated { host: line(), origin: line(), fetch_site: line() });
    let Ok(request) = Request::arbitrary(&mut Unstructured::new(input)) else { return };
    let host = request.host.as_ref().map(Authority::text);
    let origin = request.origin.as_ref().map(|origin| origin.text(host.as_deref()));
    let fetch_site = request.fetch_site.as_ref().map(|site| match site {
        Site::Known(number) => pick(SITES, *number),
        Site::Text(text) => text,
    });
    stated(Stated { host: host.as_deref(), origin: origin.as_deref(), fetch_site });
}

fn stated(stated: Stated<'_>) {
    let size = [stated.host, stated.origin, stated.fetch_site].into_iter().flatten().collect::<String>();
    match memory::bounded(size.as_bytes(), FIXED, PER_BYTE, || refuse(stated)) {
        Ok(()) => assert_own(stated),
        Err(error) => assert_explained(&error),
    }
    if let Some(host) = stated.host {
        as_browsers_state_it(host);
    }
}

/// Asserts that an accepted request was sent to this machine, and not by a page of another origin.
fn assert_own(stated: Stated<'_>) {
    let site = stated.fetch_site;
    assert!(matches!(site, None | Some("same-origin" | "none")), "accepted from another site: {stated:?}");
    let Some(host) = stated.host else {
        return assert_eq!(stated.origin, None, "answered, from an origin that nothing is known of");
    };
    if let Ok(url) = Url::parse(&format!("http://{host}/")) {
        assert!(leads_here(&url), "{host:?} is answered, and leads to {url}");
        assert!(
            url.username().is_empty() && url.path() == "/" && url.query().is_none(),
            "{host:?} is more than a host"
        );
    }
    let Some(origin) = stated.origin else { return };
    let authority = origin.split_once("://").map(|(_, authority)| authority.to_ascii_lowercase());
    assert_eq!(authority, Some(host.to_ascii_lowercase()), "accepted from another origin: {origin:?}");
    if let (Ok(origin), Ok(url)) = (Url::parse(&format!("http://{}/", authority.unwrap_or_default())), to(host)) {
        assert_eq!(origin.origin(), url.origin(), "answered, from another origin");
    }
}

/// Asserts that a browser's request for this host is accepted if and only if the host is this machine.
fn as_browsers_state_it(host: &str) {
    let Ok(url) = to(host) else { return };
    let Some(name) = url.host_str() else { return };
    let stated_host = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
    let origin = url.origin().ascii_serialization();
    for origin in [None, Some(origin.as_str())] {
        let stated = Stated { host: Some(&stated_host), origin, fetch_site: Some("same-origin") };
        // The standard allows some characters in names that host names cannot have.
        let is_odd = name.contains(|c: char| !c.is_ascii_alphanumeric() && !"-_.:[]".contains(c));
        let is_answered = refuse(stated).is_ok();
        assert!(is_answered == leads_here(&url) || (is_odd && !is_answered), "{stated:?}, of {url}");
    }
}

fn to(host: &str) -> Result<Url, url::ParseError> {
    Url::parse(&format!("http://{host}/"))
}

/// Whether a URL always leads to this machine: loopback addresses, and names that cannot be rebound.
fn leads_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            KNOWN.iter().take(OWN).any(|own| *own == name) || name.ends_with(".localhost")
        }
        None => false,
    }
}

fn assert_explained(error: &Foreign) {
    let text = error.to_string();
    assert!(!text.contains(is_deceptive) && text.len() < 2 << 10, "{text:?}");
}

impl Authority {
    fn text(&self) -> String {
        let mut text: String = self.parts.iter().take(20).map(Part::text).collect();
        if let Some(port) = &self.port {
            text.push(':');
            text.push_str(&match port {
                Port::Number(number) => number.to_string(),
                Port::Text(port) => port.clone(),
            });
        }
        text
    }
}

impl Part {
    fn text(&self) -> String {
        match self {
            Self::Known(number) => pick(KNOWN, *number).to_owned(),
            Self::Octet(number) => number.to_string(),
            Self::Dot => ".".to_owned(),
            Self::Mark(number) => pick(MARKS, *number).to_owned(),
            Self::Other(c) => c.to_string(),
        }
    }
}

impl Origin {
    fn text(&self, host: Option<&str>) -> String {
        match self {
            Self::Same(scheme) => format!("{}{}", pick(SCHEMES, *scheme), host.unwrap_or_default()),
            Self::Of(scheme, authority) => format!("{}{}", pick(SCHEMES, *scheme), authority.text()),
            Self::Text(text) => text.clone(),
        }
    }
}

fn pick<'a>(known: &[&'a str], number: u8) -> &'a str {
    known[usize::from(number) % known.len()]
}
