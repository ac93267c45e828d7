//! Which class renders a bundle, where the spec names none.
//!
//! Of a new installation it is the class that recognises the content; of several, the one with the highest priority. An installed release
//! keeps the class in its record, whatever other classes say: a class that appears, is removed, or cannot be loaded for a while must not
//! replace the objects of what runs. Only a name in the spec changes that.

use std::fmt;

use chandler_api::{BundleDeployment, BundleWarning, ProvisionerInUse};

/// The code of the warning about classes with a higher priority.
const OUTRANKED: &str = "HigherPriorityClass";

/// A class, and what it says about the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opinion {
    /// The name of the class.
    pub class: String,
    /// Its priority.
    pub priority: i32,
    /// Whether it is built in. The built-in classes come first, narrower formats before wider ones.
    pub is_builtin: bool,
    /// Its answer.
    pub answer: Answer,
}

/// What a class says about the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
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

/// The provisioner of the installed release, from the record.
#[derive(Clone, Copy, Debug)]
pub struct Incumbent<'a> {
    provisioner: &'a ProvisionerInUse,
    /// Whether the content in question is the installed release's.
    same_content: bool,
}

/// What the class of the installed release says about the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Own {
    /// There is no such class any more.
    Gone,
    /// It can be used, and need not be asked: the content is the installed release's.
    Unasked,
    /// Its answer.
    Answered(Answer),
}

/// The class that was chosen.
#[derive(Debug, PartialEq, Eq)]
pub struct Detected<'a> {
    /// Its name.
    pub class: &'a str,
    /// The format that it recognised.
    pub format: &'a str,
}

/// Why no class was chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
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
    /// The class of the installed release is missing or cannot be used.
    #[error(
        "provisioner class {class}, which rendered the installed release, {why}; the release stays installed; {}",
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
    /// The class of the installed release does not recognise the new content.
    #[error(
        "the new content cannot be rendered: provisioner class {class}, which rendered the installed release, {why}; the release stays \
         installed; correct the content, or name the class that renders it in spec.provisionerClassName{}", alternatives(.recognised)
    )]
    IncumbentDeclines {
        /// Its name.
        class: String,
        /// What it says.
        why: String,
        /// The classes and formats that recognise the content.
        recognised: Vec<String>,
    },
}

impl<'a> Incumbent<'a> {
    /// The installed release of a BundleDeployment whose history is the record's, for content with this digest.
    pub fn of(deployment: &'a BundleDeployment, content: &str) -> Option<Self> {
        let installed = deployment.status.as_ref()?.history.last()?;
        Some(Self { provisioner: &installed.provisioner, same_content: installed.content_digest == content })
    }

    /// The name of its class.
    pub fn class(&self) -> &'a str {
        &self.provisioner.class
    }

    /// Whether its component need not be asked: what is installed is not in question, whatever a newer component would say.
    pub fn is_settled(&self) -> bool {
        self.same_content
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
pub fn suffices(opinions: &[Opinion]) -> bool {
    opinions.iter().any(|opinion| opinion.format().is_some())
}

/// The class that renders the content of a new installation. Classes with a lower priority than the first that recognises it may be left
/// out.
pub fn choose(opinions: &[Opinion]) -> Result<Detected<'_>, Undecided> {
    let highest = highest(opinions);
    let outranked = |opinion: &Opinion| highest.is_some_and(|highest| highest > opinion.priority);
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
            Err(Undecided::Ambiguous { priority, recognised: recognised(opinions) })
        }
        _ if opinions.iter().any(Opinion::is_open) => Err(Undecided::NotReady { opinions: opinions.to_vec() }),
        _ => Err(Undecided::Unrecognised { opinions: opinions.to_vec() }),
    }
}

/// The format of the content under the class that an installed release keeps; `None` if its author named the class. `others` are opinions
/// of other classes, which only errors name.
pub fn keep(incumbent: Incumbent<'_>, own: &Own, others: &[Opinion]) -> Result<Option<String>, Undecided> {
    let (class, recorded) = (incumbent.class().to_owned(), &incumbent.provisioner.format);
    let unavailable = |why: String| Undecided::IncumbentUnavailable {
        class: class.clone(),
        why,
        recognised: recognised(others),
        is_gone: *own == Own::Gone,
    };
    match own {
        Own::Gone => Err(unavailable("does not exist any more".to_owned())),
        Own::Unasked => Ok(recorded.clone()),
        Own::Answered(Answer::Recognised(format)) => Ok(Some(format.clone())),
        Own::Answered(Answer::Loading) => Err(unavailable("is being loaded".to_owned())),
        Own::Answered(Answer::NotReady(message)) => Err(unavailable(format!("is not ready: {message}"))),
        Own::Answered(Answer::Failed { message, is_transient: true }) => {
            Err(unavailable(format!("failed to look at the content: {message}")))
        }
        // Its author named it, so that it was never asked.
        Own::Answered(_) if recorded.is_none() => Ok(None),
        Own::Answered(answer) => {
            let (why, recognised) = (answer.to_string(), recognised(others));
            Err(Undecided::IncumbentDeclines { class, why, recognised })
        }
    }
}

/// A warning that classes with a higher priority than the installed release's recognise its content; `None` if none does.
pub fn outranked(class: &str, higher: &[Opinion]) -> Option<BundleWarning> {
    let recognised = recognised(higher);
    let first = winners(higher, highest(higher)).next()?;
    Some(BundleWarning {
        code: OUTRANKED.to_owned(),
        message: format!(
            "provisioner classes with a higher priority recognise the content, too: {}; the installed release keeps class {class}, which \
             rendered it, unless spec.provisionerClassName names another one, such as {}",
            names(&recognised),
            first.class
        ),
    })
}

fn highest(opinions: &[Opinion]) -> Option<i32> {
    opinions.iter().filter(|opinion| opinion.format().is_some()).map(|opinion| opinion.priority).max()
}

/// The classes with the highest priority that recognise the content, with the formats.
fn recognised(opinions: &[Opinion]) -> Vec<String> {
    winners(opinions, highest(opinions)).map(named).collect()
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

/// How it continues without the class of the installed release.
fn continuing(is_gone: bool, recognised: &[String]) -> String {
    let first = if is_gone { "create the class again" } else { "wait until it is ready" };
    format!("{first}, or name another class in spec.provisionerClassName{}", alternatives(recognised))
}

/// The classes to name instead.
fn alternatives(recognised: &[String]) -> String {
    match recognised {
        [] => String::new(),
        some => format!(": {}", names(some)),
    }
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
        write!(f, "{} {}", self.class, self.answer)
    }
}

/// What follows the name of the class.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recognised(format) => write!(f, "recognises {format}"),
            Self::NotRecognised => f.write_str("does not recognise it"),
            Self::Undeclared(format) => write!(f, "returned the format {format:?}, which it does not declare"),
            Self::DeclaresNone => f.write_str("was not asked, since it declares no formats"),
            Self::Failed { message, .. } => write!(f, "failed: {message}"),
            Self::Loading => f.write_str("is being loaded"),
            Self::NotReady(message) => write!(f, "is not ready and may recognise it: {message}"),
        }
    }
}

#[cfg(test)]
mod tests;
