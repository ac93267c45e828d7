//! Which class renders a bundle, where the spec names none: the one that recognises the content; of several, the one with the highest
//! priority.
//!
//! A release that is installed keeps its class while its content stays the same, unless a class with a higher priority recognises it: a
//! class that appears, is removed, or cannot be loaded for a while must not replace the objects of what runs.

use std::fmt;

use chandler_api::{BundleDeployment, ProvisionerInUse};

/// A class, and what it says about the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opinion {
    /// The name of the class.
    pub(crate) class: String,
    /// Its priority.
    pub(crate) priority: i32,
    /// Whether it is built in. The built-in classes come first, narrower formats before wider ones.
    pub(crate) is_builtin: bool,
    /// Its answer.
    pub(crate) answer: Answer,
}

/// What a class says about the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its component recognises this format.
    Recognised(String),
    /// Its component does not recognise the content.
    NotRecognised,
    /// Its component returned a format that it does not declare, which does not count.
    Undeclared(String),
    /// Its component declares no formats, so that it is not asked.
    DeclaresNone,
    /// The call failed.
    Failed {
        /// How.
        message: String,
        /// Whether another call may succeed.
        is_transient: bool,
    },
    /// Its component is being loaded for the first time.
    Loading,
    /// Its component could not be loaded.
    NotReady(String),
}

/// The provisioner of the installed release, where its content is the one in question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incumbent<'a> {
    provisioner: &'a ProvisionerInUse,
    /// The priority of its class; none where there is no such class any more.
    priority: Option<i32>,
}

/// The class that was chosen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Detected<'a> {
    /// Its name.
    pub(crate) class: &'a str,
    /// The format that it recognised.
    pub(crate) format: &'a str,
}

/// Why no class was chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Undecided {
    /// No class recognises the content.
    #[error(
        "no provisioner class recognises the content of the bundle ({}): correct the content, name a class in spec.provisionerClassName, or \
         create a ProvisionerClass that recognises it", list(.opinions)
    )]
    Unrecognised {
        /// What each class says.
        opinions: Vec<Opinion>,
    },
    /// No class recognises the content, and some that are not ready may.
    #[error(
        "no provisioner class that is ready recognises the content of the bundle ({}): name a class in spec.provisionerClassName, or find \
         out why these are not ready", list(.opinions)
    )]
    NotReady {
        /// What each class says.
        opinions: Vec<Opinion>,
    },
    /// Several classes have the highest priority.
    #[error(
        "several provisioner classes with priority {priority} recognise the content of the bundle: {}; name one of them in \
         spec.provisionerClassName, or raise spec.priority of a ProvisionerClass", names(.recognised)
    )]
    Ambiguous {
        /// Their priority.
        priority: i32,
        /// The classes and formats.
        recognised: Vec<String>,
    },
    /// Classes that are being loaded for the first time may outrank those that recognise the content.
    #[error("waiting until provisioner classes are loaded that may recognise the content of the bundle: {}", names(.0))]
    Loading(Vec<String>),
    /// The class of the installed release cannot be asked, and no class with a higher priority recognises the content.
    #[error(
        "provisioner class {class}, which rendered the installed release from the same content, {why}; the release stays installed; {}",
        continuing(*.is_gone, .recognised)
    )]
    IncumbentUnavailable {
        /// Its name.
        class: String,
        /// Why.
        why: String,
        /// The classes and formats that recognise the content.
        recognised: Vec<String>,
        /// Whether there is no such class any more.
        is_gone: bool,
    },
}

impl<'a> Incumbent<'a> {
    /// That of a BundleDeployment whose history is the record's, for content with this digest.
    pub(crate) fn of(
        deployment: &'a BundleDeployment,
        content: &str,
        priority: impl Fn(&str) -> Option<i32>,
    ) -> Option<Self> {
        let installed = deployment.status.as_ref()?.history.last()?;
        let provisioner = &installed.provisioner;
        (installed.content_digest == content).then(|| Self { provisioner, priority: priority(&provisioner.class) })
    }

    /// What its component said about the content, where the record has it for this very component.
    pub(crate) fn recorded(&self, class: &str, component: &str) -> Option<Answer> {
        let same = self.is_class(class) && self.provisioner.digest == component;
        self.provisioner.format.clone().filter(|_| same).map(Answer::Recognised)
    }

    /// Whether it is of this class.
    pub(crate) fn is_class(&self, class: &str) -> bool {
        self.provisioner.class == class
    }
}

impl Opinion {
    fn format(&self) -> Option<&str> {
        match &self.answer {
            Answer::Recognised(format) => Some(format),
            _ => None,
        }
    }

    /// Whether the class may recognise the content once it is ready.
    fn is_open(&self) -> bool {
        matches!(self.answer, Answer::Loading | Answer::NotReady(_))
    }

    fn detected(&self) -> Option<Detected<'_>> {
        Some(Detected { class: &self.class, format: self.format()? })
    }
}

/// Whether classes with a lower priority than these need not be asked.
pub(crate) fn suffices(opinions: &[Opinion]) -> bool {
    opinions.iter().any(|opinion| opinion.format().is_some())
}

/// The class that renders the content. Classes with a lower priority than the first that recognises it may be left out.
pub(crate) fn choose<'a>(opinions: &'a [Opinion], incumbent: Option<Incumbent<'_>>) -> Result<Detected<'a>, Undecided> {
    let highest = opinions.iter().filter(|opinion| opinion.format().is_some()).map(|opinion| opinion.priority).max();
    let outranked = |opinion: &Opinion| highest.is_some_and(|highest| highest > opinion.priority);
    if let Some(incumbent) = incumbent {
        let known = opinions.iter().find(|opinion| incumbent.is_class(&opinion.class));
        let stays = incumbent.priority.is_none_or(|priority| highest.is_none_or(|highest| highest <= priority));
        if let Some(detected) = known.filter(|_| stays).and_then(Opinion::detected) {
            return Ok(detected);
        }
        // A class that the spec named earlier was not detected: it holds nothing up.
        let held = stays && incumbent.provisioner.format.is_some();
        if let Some(why) = unavailable(known).filter(|_| held) {
            return Err(Undecided::IncumbentUnavailable {
                class: incumbent.provisioner.class.clone(),
                why,
                recognised: winners(opinions, highest).map(named).collect(),
                is_gone: incumbent.priority.is_none(),
            });
        }
    }
    let loading = opinions.iter().filter(|opinion| opinion.answer == Answer::Loading && !outranked(opinion));
    let loading: Vec<String> = loading.map(|opinion| opinion.class.clone()).collect();
    if !loading.is_empty() {
        return Err(Undecided::Loading(loading));
    }
    let mut chosen = winners(opinions, highest);
    match (chosen.next().and_then(Opinion::detected), highest) {
        (Some(first), Some(priority)) => {
            if chosen.next().is_none() {
                return Ok(first);
            }
            Err(Undecided::Ambiguous { priority, recognised: winners(opinions, highest).map(named).collect() })
        }
        _ if opinions.iter().any(Opinion::is_open) => Err(Undecided::NotReady { opinions: opinions.to_vec() }),
        _ => Err(Undecided::Unrecognised { opinions: opinions.to_vec() }),
    }
}

/// Those with the highest priority that recognise the content. Of the built-in classes the narrowest format counts, as on the command
/// line: a set, for example, may also be a plain bundle.
fn winners(opinions: &[Opinion], highest: Option<i32>) -> impl Iterator<Item = &Opinion> {
    let mut builtin = false;
    opinions.iter().filter(move |opinion| {
        let wins = Some(opinion.priority) == highest && opinion.format().is_some();
        wins && !(opinion.is_builtin && std::mem::replace(&mut builtin, true))
    })
}

/// Why the class of the installed release has no answer; none where it has one.
fn unavailable(known: Option<&Opinion>) -> Option<String> {
    match known.map(|known| &known.answer) {
        None => Some("does not exist any more".to_owned()),
        Some(Answer::Loading) => Some("is being loaded".to_owned()),
        Some(Answer::NotReady(message)) => Some(format!("is not ready: {message}")),
        Some(Answer::Failed { message, is_transient: true }) => {
            Some(format!("failed to look at the content: {message}"))
        }
        Some(_) => None,
    }
}

/// The most classes that a message names.
const NAMED: usize = 10;

fn named(opinion: &Opinion) -> String {
    format!("{} ({})", opinion.class, opinion.format().unwrap_or_default())
}

fn names(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// How it goes on without the class of the installed release.
fn continuing(is_gone: bool, recognised: &[String]) -> String {
    let first = if is_gone { "create the class again" } else { "wait until it is ready" };
    let others = match recognised {
        [] => String::new(),
        some => format!(": {}", names(some)),
    };
    format!("{first}, or name another class in spec.provisionerClassName{others}")
}

/// What each class says. What did not simply decline comes first, since it may need an action.
fn list(opinions: &[Opinion]) -> String {
    let declined = |opinion: &&Opinion| opinion.answer == Answer::NotRecognised;
    let mut words: Vec<String> =
        opinions.iter().filter(|opinion| !declined(opinion)).map(ToString::to_string).collect();
    let asked: Vec<String> = opinions.iter().filter(declined).map(|opinion| opinion.class.clone()).collect();
    if !asked.is_empty() {
        words.push(format!("asked: {}", names(&asked)));
    }
    let more = words.len().saturating_sub(NAMED);
    words.truncate(NAMED);
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    words.join("; ")
}

impl fmt::Display for Opinion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = &self.class;
        match &self.answer {
            Answer::Recognised(format) => write!(f, "{class} recognises {format}"),
            Answer::NotRecognised => write!(f, "{class} does not recognise it"),
            Answer::Undeclared(format) => {
                write!(f, "{class} returned the format {format:?}, which it does not declare")
            }
            Answer::DeclaresNone => write!(f, "{class} was not asked, since it declares no formats"),
            Answer::Failed { message, .. } => write!(f, "{class} failed: {message}"),
            Answer::Loading => write!(f, "{class} is being loaded"),
            Answer::NotReady(message) => write!(f, "{class} is not ready and may recognise it: {message}"),
        }
    }
}

#[cfg(test)]
mod tests;
