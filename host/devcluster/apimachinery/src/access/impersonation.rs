//! Impersonation: the headers `Impersonate-*` and the permissions that they need.
//!
//! Kubernetes 1.36 knows several modes (KEP-5284). The constrained ones need two permissions: to impersonate that user with the
//! verb `impersonate:<mode>`, and to do the request at hand so, with the verb `impersonate-on:<mode>:<verb>`. The old one
//! needs the verb `impersonate` alone. Modes are tried in order; if none fits, the first denial is returned.

use std::collections::BTreeMap;

use crate::access::{
    attributes::{Attributes, ResourceAttributes},
    authorize::Decision,
    quote::quote,
    user::{
        ANONYMOUS, AUTHENTICATED, MASTERS, NODE_NAME_KEY, NODES, UNAUTHENTICATED, User, service_account_groups,
        split_node, split_service_account,
    },
};

const AUTHENTICATION: &str = "authentication.k8s.io";
const EXTRA_PREFIX: &str = "impersonate-extra-";
/// From this many groups or values on, one permission for all of them is tried first.
const MANY: usize = 4;

/// The impersonated attribute, without a user name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requested {0} without impersonating a user name")]
pub struct NoUserName(String);

/// A denial: these attributes were requested and not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The missing permission.
    pub attributes: Box<Attributes>,
    /// Why, besides that; often empty.
    pub reason: String,
}

/// The mode of an impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As the node on which a ServiceAccount's Pod runs.
    AssociatedNode,
    /// As any node.
    ArbitraryNode,
    /// As a ServiceAccount.
    ServiceAccount,
    /// As any other user.
    UserInfo,
    /// Any user, with the verb `impersonate`.
    Legacy,
}

impl Mode {
    const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo, Self::Legacy];

    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    /// Whether the mode is for that user.
    fn fits(self, requestor: &User, wanted: &User) -> bool {
        let (node, account) = (split_node(&wanted.name), split_service_account(&wanted.name));
        match self {
            Self::AssociatedNode => {
                let own = requestor.extra.get(NODE_NAME_KEY).map(Vec::as_slice);
                wanted.is_only_a_name()
                    && split_service_account(&requestor.name).is_some()
                    && matches!((own, node), (Some([own]), Some(node)) if own == node)
            }
            Self::ArbitraryNode => wanted.is_only_a_name() && node.is_some(),
            Self::ServiceAccount => wanted.is_only_a_name() && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }
}

/// Reads the headers; `None` without impersonation. Header names are expected in lower case.
///
/// # Errors
/// When there is something to impersonate and no user's name.
pub fn wanted<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Option<User>, NoUserName> {
    let mut user = User::default();
    let mut anything = false;
    for (name, value) in headers {
        match name {
            "impersonate-user" if user.name.is_empty() => value.clone_into(&mut user.name),
            "impersonate-uid" if user.uid.is_empty() => value.clone_into(&mut user.uid),
            "impersonate-group" => user.groups.push(value.to_owned()),
            _ => match name.strip_prefix(EXTRA_PREFIX) {
                Some(key) => user.extra.entry(unescape(key)).or_default().push(value.to_owned()),
                None => continue,
            },
        }
        anything = true;
    }
    match (user.name.is_empty(), anything && !user.is_only_a_name()) {
        (false, _) => Ok(Some(user)),
        (true, true) => Err(NoUserName(go_syntax(&user))),
        (true, false) => Ok(None),
    }
}

/// Decodes `%xx`; malformed sequences stay unchanged.
fn unescape(text: &str) -> String {
    let decode = || {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte == b'%' {
                let (digits, tail) = rest.split_first_chunk::<2>()?;
                let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = tail;
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8(bytes).ok()
    };
    decode().unwrap_or_else(|| text.to_owned())
}

/// A user without a name as Go's `%#v` shows it, which the refusal is made with.
fn go_syntax(user: &User) -> String {
    let list = |texts: &[String]| {
        let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let entries: Vec<String> =
            user.extra.iter().map(|(key, values)| format!("{}:{}", quote(key), list(values))).collect();
        format!("map[string][]string{{{}}}", entries.join(", "))
    };
    format!("&user.DefaultInfo{{Name:\"\", UID:{}, Groups:{groups}, Extra:{extra}}}", quote(&user.uid))
}

/// Decides whether a request may impersonate, and which user it is then made as. `first` is the mode that last let this
/// requestor through and is tried before the others.
///
/// # Errors
/// If no mode permits the requestor; the refusal comes from the mode that is tried first.
pub fn impersonate(
    authorize: &dyn Fn(&User, &Attributes) -> Decision,
    requestor: &User,
    wanted: &User,
    request: &Attributes,
    first: Option<Mode>,
) -> Result<(User, Mode), Refused> {
    let rest = Mode::ALL.into_iter().filter(|mode| Some(*mode) != first);
    let modes = first.into_iter().chain(rest).filter(|mode| mode.fits(requestor, wanted));
    let mut refused = None;
    for mode in modes {
        match (Attempt { authorize, requestor, mode }).run(wanted, request) {
            Ok(user) => return Ok((user, mode)),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    // The old mode applies to every user, so there is a denial.
    Err(refused.unwrap_or_else(|| Refused { attributes: Box::new(request.clone()), reason: String::new() }))
}

struct Attempt<'a> {
    authorize: &'a dyn Fn(&User, &Attributes) -> Decision,
    requestor: &'a User,
    mode: Mode,
}

impl Attempt<'_> {
    fn run(&self, wanted: &User, request: &Attributes) -> Result<User, Refused> {
        if self.constrained() {
            self.check(&request.with_verb(format!("impersonate-on:{}:{}", self.mode.name(), request.verb())))?;
        }
        let mut user = wanted.clone();
        self.check_name(wanted, &mut user)?;
        if !wanted.uid.is_empty() {
            self.check(&Attributes::Resource(self.attributes(AUTHENTICATION, "uids", &wanted.uid)))?;
        }
        self.check_groups(&wanted.groups)?;
        self.check_extra(&wanted.extra)?;
        if user.name == ANONYMOUS {
            add_group(&mut user, UNAUTHENTICATED);
        } else if !user.is_in(UNAUTHENTICATED) {
            add_group(&mut user, AUTHENTICATED);
        }
        Ok(user)
    }

    fn constrained(&self) -> bool {
        self.mode != Mode::Legacy
    }

    fn attributes(&self, group: &str, resource: &str, name: &str) -> ResourceAttributes {
        let verb =
            if self.constrained() { format!("impersonate:{}", self.mode.name()) } else { "impersonate".to_owned() };
        ResourceAttributes {
            namespace: String::new(),
            verb,
            group: group.to_owned(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
            subresource: String::new(),
            name: name.to_owned(),
        }
    }

    /// The API group of users and groups.
    fn group(&self) -> &'static str {
        if self.constrained() { AUTHENTICATION } else { "" }
    }

    fn check_name(&self, wanted: &User, user: &mut User) -> Result<(), Refused> {
        let mut attributes = self.attributes(self.group(), "users", &wanted.name);
        if let (true, Some(node)) = (self.constrained(), split_node(&wanted.name)) {
            "nodes".clone_into(&mut attributes.resource);
            // Which node it is was checked against the requestor's own.
            let name = if self.mode == Mode::AssociatedNode { "*" } else { node };
            name.clone_into(&mut attributes.name);
            user.groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, name)) = split_service_account(&wanted.name) {
            "serviceaccounts".clone_into(&mut attributes.resource);
            namespace.clone_into(&mut attributes.namespace);
            name.clone_into(&mut attributes.name);
            if wanted.groups.is_empty() {
                user.groups = service_account_groups(namespace);
            }
        }
        self.check(&Attributes::Resource(attributes))
    }

    fn check_groups(&self, groups: &[String]) -> Result<(), Refused> {
        let attributes = |name: &str| Attributes::Resource(self.attributes(self.group(), "groups", name));
        if self.constrained() {
            if groups.iter().any(String::is_empty) {
                let reason = "impersonating the empty string group is not allowed".to_owned();
                return Err(Refused { attributes: Box::new(attributes("")), reason });
            }
            if groups.iter().any(|group| group == MASTERS) {
                let reason = "impersonating the system:masters group is not allowed".to_owned();
                return Err(Refused { attributes: Box::new(attributes(MASTERS)), reason });
            }
            if groups.len() >= MANY && self.check(&attributes("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.check(&attributes(group)))
    }

    fn check_extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), Refused> {
        let attributes = |key: &str, name: &str| {
            let attributes = self.attributes(AUTHENTICATION, "userextras", name);
            Attributes::Resource(ResourceAttributes { subresource: key.to_owned(), ..attributes })
        };
        if self.constrained() {
            if let Some(reason) = malformed(extra) {
                return Err(Refused { attributes: Box::new(attributes("", "")), reason });
            }
            let values: usize = extra.values().map(Vec::len).sum();
            if values >= MANY && self.check(&attributes("*", "*")).is_ok() {
                return Ok(());
            }
        }
        let values = extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        values.into_iter().try_for_each(|(key, value)| self.check(&attributes(key, value)))
    }

    fn check(&self, attributes: &Attributes) -> Result<(), Refused> {
        let Decision { allowed, reason } = (self.authorize)(self.requestor, attributes);
        if allowed { Ok(()) } else { Err(Refused { attributes: Box::new(attributes.clone()), reason }) }
    }
}

/// The errors of extra values, for the constrained modes: keys are paths behind a domain, as in `example.com/scope`.
fn malformed(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".to_owned());
        }
        let well_formed = key.split_once('/').is_some_and(|(domain, path)| {
            !domain.is_empty()
                && domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
                && !path.is_empty()
                && path.bytes().all(|byte| byte.is_ascii_graphic())
        });
        if !well_formed {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            return Some(format!(
                "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {}: {detail}",
                quote(key)
            ));
        }
        if key.to_lowercase() != *key {
            return Some(format!("impersonating a non-lowercase key in extra is not allowed: {}", quote(key)));
        }
        let empty = values.iter().any(String::is_empty);
        empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
    })
}

fn add_group(user: &mut User, group: &str) {
    if !user.is_in(group) {
        user.groups.push(group.to_owned());
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Self::Legacy { "legacy" } else { self.name() })
    }
}
