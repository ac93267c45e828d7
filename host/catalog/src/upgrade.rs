//! What would be installed next.

use std::sync::Arc;

use chandler_resolver::{
    Change, Dependencies, Installed, Member, Policy, Problem, Required, ResolveError, Source, resolve,
};
use serde::Serialize;

use crate::{Index, IndexCatalogs};

/// The bundle that the next step of an upgrade within one catalog leads to, dependencies aside, or `None` if the installed bundle stays.
///
/// # Errors
/// If the version of the installed bundle is malformed, or the index cannot be read.
pub fn next(index: &Arc<Index>, installed: Installed, channels: &[String]) -> Result<Option<String>, ResolveError> {
    let catalogs =
        IndexCatalogs::new().with(Source { name: "catalog".to_owned(), ..Source::default() }, Arc::clone(index));
    let member = upgraded(&catalogs, installed, channels)?;
    Ok(member.and_then(|member| member.steps.into_iter().next()).map(|step| step.name))
}

/// A newer version of an installed bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Newer {
    /// The version.
    pub version: String,
    /// The catalog that has it.
    pub catalog: String,
    /// The image of its bundle.
    pub image: String,
    /// The versions of the steps that lead to it, in order. The last one is the version.
    pub steps: Vec<String>,
}

/// The newest version that the upgrades of the catalogs lead to, dependencies aside, or `None` if the installed bundle stays.
///
/// # Errors
/// If the version of the installed bundle is malformed, the choice is ambiguous, or an index cannot be read.
pub fn newest(catalogs: &IndexCatalogs, installed: Installed) -> Result<Option<Newer>, ResolveError> {
    let member = upgraded(catalogs, installed, &[])?;
    Ok(member.filter(|member| member.change == Change::Upgrade).map(|member| Newer {
        version: member.version,
        catalog: member.catalog.unwrap_or_default(),
        image: member.image,
        steps: member.steps.into_iter().map(|step| step.version).collect(),
    }))
}

/// The resolver's choice for the package of an installed bundle, dependencies aside, or `None` if it refuses. Without channels, the
/// installed bundle's channels are used.
fn upgraded(
    catalogs: &IndexCatalogs,
    installed: Installed,
    channels: &[String],
) -> Result<Option<Member>, ResolveError> {
    let package = installed.package.clone();
    let required = Required { package: package.clone(), channels: channels.to_vec(), ..Required::default() };
    let policy = Policy { dependencies: Dependencies::Ignore, ..Policy::default() };
    let problem = Problem {
        required: vec![required],
        installed: vec![installed],
        catalogs: catalogs.sources(),
        policy,
        ..Problem::default()
    };
    let answer = resolve(&problem, catalogs)?;
    Ok(answer.decision().and_then(|decision| decision.member(&package)).cloned())
}
