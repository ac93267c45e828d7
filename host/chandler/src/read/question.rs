//! A question for the resolver, from what the user writes.

use chandler_catalog::IndexCatalogs;
use chandler_resolver::{
    CatalogError, Catalogs as _, Installed, Problem, Required, ResolveError, version::VersionRelease,
};

use super::catalogs::unknown_package;
use crate::{CommandError, view::invocation::quoted};

/// A package and the versions that are asked for: `PACKAGE` or `PACKAGE@RANGE`.
pub fn required(text: &str) -> Result<Required, CommandError> {
    let (package, range) = match text.split_once('@') {
        Some((package, range)) if range.trim().is_empty() => {
            return Err(CommandError::usage(format!("{text} has no range after the @")).hint(format!(
                "write `{package}` for any version, or a range: `{package}@1.2.0`, `{package}@'>=1.2, <2'`"
            )));
        }
        Some((package, range)) => (package, range),
        None => (text, ""),
    };
    if package.is_empty() {
        return Err(CommandError::usage(format!("{text:?} names no package"))
            .hint("write `PACKAGE` or `PACKAGE@RANGE`, such as `prometheus@'>=0.50'`"));
    }
    Ok(Required { package: package.to_owned(), range: range.to_owned(), ..Required::default() })
}

/// Chooses the channels of the packages: `CHANNEL` for all, `PACKAGE=CHANNEL` for one.
pub fn choose_channels(required: &mut [Required], channels: &[String]) -> Result<(), CommandError> {
    for text in channels {
        let Some((package, channel)) = text.split_once('=') else {
            for it in &mut *required {
                it.channels.push(text.clone());
            }
            continue;
        };
        let Some(one) = required.iter_mut().find(|it| it.package == package) else {
            return Err(CommandError::usage(format!("--channel {text}: package {package} is not asked for"))
                .hint("name it before the flags, or write the channel alone for all packages"));
        };
        one.channels.push(channel.to_owned());
    }
    Ok(())
}

/// A bundle that is installed, as `PACKAGE@VERSION`. Its name is the name of the catalog's bundle of this version.
pub fn installed(text: &str, catalogs: &IndexCatalogs) -> Result<Installed, CommandError> {
    let wrong = || {
        CommandError::usage(format!("--installed {text}: this is not PACKAGE@VERSION"))
            .hint("write the package and the version that is installed, such as `prometheus@0.56.0`")
    };
    let (package, written) = text.split_once('@').filter(|(package, _)| !package.is_empty()).ok_or_else(wrong)?;
    let version = VersionRelease::parse(written, None).map_err(|error| wrong().because(&error))?;
    let mut found = None;
    for source in catalogs.sources() {
        let read = catalogs.package(&source.name, package).map_err(|error| unreadable(&error))?;
        let bundles = read.iter().flat_map(|package| package.bundles.values());
        found = found.or(bundles.filter(|it| it.version.as_ref() == Some(&version)).map(|it| it.name.clone()).next());
    }
    Ok(Installed {
        package: package.to_owned(),
        // The name that most authors give.
        name: found.unwrap_or_else(|| format!("{package}.v{written}")),
        version: written.to_owned(),
        ..Installed::default()
    })
}

/// Fails if no catalog has a package that is asked for.
pub fn check_packages(problem: &Problem, catalogs: &IndexCatalogs) -> Result<(), CommandError> {
    for required in &problem.required {
        let mut known = false;
        for source in &problem.catalogs {
            known |= catalogs.package(&source.name, &required.package).map_err(|error| unreadable(&error))?.is_some();
        }
        if !known && !problem.installed.iter().any(|installed| installed.package == required.package) {
            return Err(unknown_package(&required.package, catalogs));
        }
    }
    Ok(())
}

/// A catalog that cannot be read.
pub fn unreadable(error: &CatalogError) -> CommandError {
    CommandError::failed("the question cannot be answered")
        .because(error)
        .hint("`chandler catalog lint DIR` prints everything that is wrong in a catalog")
}

/// A question without an answer.
pub fn unanswered(error: &ResolveError) -> CommandError {
    let wrong = |hint: &str| CommandError::usage("the question is not valid").because(error).hint(hint);
    match error {
        ResolveError::Range { .. } => {
            wrong("a range is a list of comparisons: `1.2.0`, `>=1.2, <2`, `^1.4`, `~1.4`, `1.x || 3.x`")
        }
        ResolveError::Installed { .. } => wrong("write the version that is installed: `--installed prometheus@0.56.0`"),
        ResolveError::Cluster(_) => wrong("write a version such as `1.36.0`"),
        ResolveError::Twice { .. } => wrong("name each package once; ranges can be joined: `PACKAGE@'>=1, <2'`"),
        ResolveError::ConstrainedSingle => wrong("leave out the constraints, or `--mode single`"),
        ResolveError::Constraints(_) => wrong("docs/resolutions.md has an example of each type of constraint"),
        ResolveError::NotSingle(_) => wrong("ask for one package, or leave out `--mode single`"),
        ResolveError::Catalog(error) => unreadable(error),
        ResolveError::Ambiguous { catalogs, .. } => {
            let name = catalogs.first().map_or_else(|| "NAME".to_owned(), |name| quoted(name));
            CommandError::failed("the choice is ambiguous")
                .because(error)
                .hint(format!("prefer one catalog: `--catalog-priority {name}=1`, or leave the other out"))
        }
        ResolveError::BudgetExceeded(_) => CommandError::failed("the question is too large")
            .because(error)
            .hint("name a range or a channel for each package, or fewer catalogs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_follows_the_first_at() {
        let parsed = |text| required(text).map(|it| (it.package, it.range));
        assert_eq!(parsed("a").unwrap(), ("a".to_owned(), String::new()));
        assert_eq!(parsed("a@>=1, <2").unwrap(), ("a".to_owned(), ">=1, <2".to_owned()));
        for wrong in ["", "@1", "a@", "a@ "] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn channels_are_for_all_packages_or_for_one() {
        let mut all = [required("a").unwrap(), required("b").unwrap()];
        choose_channels(&mut all, &["stable".to_owned(), "b=edge".to_owned()]).unwrap();
        assert_eq!(all.map(|it| it.channels.join(",")), ["stable", "stable,edge"]);
        assert!(choose_channels(&mut [], &["c=edge".to_owned()]).is_err());
    }
}
