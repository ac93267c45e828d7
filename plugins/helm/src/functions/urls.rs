//! URLs and paths.

use chandler_go_template::{Function, FunctionError, Map, Type, Value};

use super::{Result, made, map, text};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Map as Dict, String};
    Some(match name {
        "base" | "osBase" => Function::new(&[String], |call, a| made(call, base(&text(a, 0)))),
        "dir" | "osDir" => Function::new(&[String], |call, a| {
            let path = text(a, 0);
            let directory = path.rfind('/').map_or("", |at| path.get(..=at).unwrap_or_default());
            made(call, clean(directory))
        }),
        "clean" | "osClean" => Function::new(&[String], |call, a| made(call, clean(&text(a, 0)))),
        "ext" | "osExt" => Function::new(&[String], |call, a| {
            let path = text(a, 0);
            let name = path.rsplit('/').next().unwrap_or_default();
            made(call, name.rfind('.').map_or("", |at| name.get(at..).unwrap_or_default()))
        }),
        "isAbs" | "osIsAbs" => Function::new(&[String], |_, a| Ok(Value::Bool(text(a, 0).starts_with('/')))),
        "urlParse" => Function::new(&[String], |call, a| -> Result {
            call.charge(text(a, 0).len().saturating_mul(4))?;
            let parsed =
                Url::parse(&text(a, 0)).map_err(|error| FunctionError::new(format!("unable to parse url: {error}")))?;
            let hostname = parsed.hostname().to_owned();
            Ok(Value::Map(
                [
                    ("scheme", Value::from(parsed.scheme)),
                    ("host", Value::from(parsed.host)),
                    ("hostname", Value::from(hostname)),
                    ("path", Value::from(parsed.path)),
                    ("query", Value::from(parsed.query)),
                    ("opaque", Value::from(parsed.opaque)),
                    ("fragment", Value::from(parsed.fragment)),
                    ("userinfo", Value::from(parsed.userinfo.unwrap_or_default())),
                ]
                .into_iter()
                .collect::<Map>(),
            ))
        }),
        "urlJoin" => Function::new(&[Dict], |call, a| -> Result {
            let part = |key: &str| -> std::result::Result<std::string::String, FunctionError> {
                match map(a, 0).and_then(|map| map.get(key)) {
                    None => Ok(std::string::String::new()),
                    Some(Value::String(text)) => Ok(text.text().into_owned()),
                    Some(other) => Err(FunctionError::new(format!(
                        "unable to parse {key} key, must be of type string, but {} found",
                        other.kind()
                    ))),
                }
            };
            let userinfo = part("userinfo")?;
            let url = Url {
                scheme: part("scheme")?,
                host: part("host")?,
                path: part("path")?,
                query: part("query")?,
                opaque: part("opaque")?,
                fragment: part("fragment")?,
                userinfo: (!userinfo.is_empty()).then_some(userinfo),
            };
            made(call, url.join())
        }),
        _ => return None,
    })
}

/// `path.Base`.
fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { "/" } else { trimmed.rsplit('/').next().unwrap_or(trimmed) }
}

/// `path.Clean`.
pub(crate) fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, joined) => format!("/{joined}"),
        (false, joined) if joined.is_empty() => ".".to_owned(),
        (false, joined) => joined,
    }
}

/// A URL as net/url splits it.
#[derive(Debug, Default)]
struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
    opaque: String,
    fragment: String,
    userinfo: Option<String>,
}

impl Url {
    fn hostname(&self) -> &str {
        if let Some(inner) = self.host.strip_prefix('[') {
            return inner.split(']').next().unwrap_or_default();
        }
        match self.host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => &self.host,
        }
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        let wrong = |what: &str| format!("parse {text:?}: {what}");
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err(wrong("net/url: invalid control character in URL"));
        }
        let mut url = Self::default();
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        url.fragment = unescape(fragment).ok_or_else(|| wrong("invalid URL escape"))?;
        let rest = match scheme(rest) {
            Scheme::Some(scheme, rest) => {
                url.scheme = scheme.to_ascii_lowercase();
                rest
            }
            Scheme::None => rest,
            Scheme::Missing => return Err(wrong("missing protocol scheme")),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        query.clone_into(&mut url.query);
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|first| first.contains(':')) {
                return Err(wrong("first path segment in URL cannot contain colon"));
            }
        }
        let path = match rest.strip_prefix("//").filter(|_| !rest.starts_with("///")) {
            Some(after) => {
                let (authority, path) = after.find('/').map_or((after, ""), |at| after.split_at(at));
                url.authority(authority).map_err(|what| wrong(&what))?;
                path
            }
            None if rest.starts_with("///") && !url.scheme.is_empty() => rest.get(2..).unwrap_or_default(),
            None => rest,
        };
        url.path = unescape(path).ok_or_else(|| wrong("invalid URL escape"))?;
        Ok(url)
    }

    fn authority(&mut self, text: &str) -> std::result::Result<(), String> {
        let host = match text.rsplit_once('@') {
            Some((userinfo, host)) => {
                let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
                if !userinfo.bytes().all(valid) {
                    return Err("net/url: invalid userinfo".to_owned());
                }
                self.userinfo = Some(match userinfo.split_once(':') {
                    Some((user, password)) => format!("{}:{}", escaped_user(user), escaped_user(password)),
                    None => escaped_user(userinfo),
                });
                host
            }
            None => text,
        };
        if host.starts_with('[') {
            let Some((_, port)) = host.rsplit_once(']') else { return Err("missing ']' in host".to_owned()) };
            check_port(port)?;
        } else if let Some(at) = host.rfind(':') {
            check_port(host.get(at..).unwrap_or_default())?;
        }
        if let Some(bad) = host.chars().find(|c| matches!(c, ' ' | '\\' | '^' | '`' | '{' | '|' | '}')) {
            return Err(format!("invalid character {:?} in host name", bad.to_string()));
        }
        self.host = unescape(host).ok_or("invalid URL escape")?;
        Ok(())
    }

    fn join(&self) -> String {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            out.push_str(&self.scheme);
            out.push(':');
        }
        if self.opaque.is_empty() {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.userinfo.is_some() {
                if !self.host.is_empty() || !self.path.is_empty() || self.userinfo.is_some() {
                    out.push_str("//");
                }
                if let Some(userinfo) = &self.userinfo {
                    out.push_str(userinfo);
                    out.push('@');
                }
                out.push_str(&escape(&self.host, b"!$&'()*+,;=:[]<>\""));
            }
            let path = escape(&self.path, b"$&+,/:;=@");
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                out.push('/');
            }
            if out.is_empty() && path.split('/').next().is_some_and(|first| first.contains(':')) {
                out.push_str("./");
            }
            out.push_str(&path);
        } else {
            out.push_str(&self.opaque);
        }
        if !self.query.is_empty() {
            out.push('?');
            out.push_str(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push('#');
            out.push_str(&escape(&self.fragment, b"$&+,/:;=?@!()*"));
        }
        out
    }
}

enum Scheme<'a> {
    Some(&'a str, &'a str),
    None,
    Missing,
}

fn scheme(text: &str) -> Scheme<'_> {
    for (at, character) in text.char_indices() {
        match character {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Scheme::Missing,
            ':' => return Scheme::Some(text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default()),
            _ => return Scheme::None,
        }
    }
    Scheme::None
}

fn check_port(port: &str) -> std::result::Result<(), String> {
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok(()),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(()),
        _ => Err(format!("invalid port {port:?} after host")),
    }
}

fn escaped_user(text: &str) -> String {
    escape(&unescape(text).unwrap_or_default(), b"$&+,;=")
}

fn escape(text: &str, kept: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            crate::append(&mut out, format_args!("%{byte:02X}"));
        }
    }
    out
}

/// Decodes `%41`; nothing if an escape is incomplete.
fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?].map(|digit| char::from(digit).to_digit(16));
                let [Some(high), Some(low)] = digits else { return None };
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}
