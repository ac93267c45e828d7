//! `chandler resolve`.

use chandler_catalog::IndexCatalogs;
use chandler_resolver::{
    Answer, Cluster, Dependencies, Hold, Kind, Mode, Policy, Problem, Required, Upgrades, resolve,
    what_if::{Alternative, what_if},
};
use clap::ValueEnum;
use serde_json::Value;

use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, values},
    read::{catalogs, question},
    view::{invocation::quoted, output, resolution, terminal::Terminal},
};

/// Choose what to install from catalogs
///
/// Answers which bundles to install so that the packages and everything that they need fit together and on the cluster, or explains why
/// none do. Only the catalogs are read: with --catalog no cluster is required, and no network unless a catalog is an image or a URL. The page
/// docs/resolving.md has the rules of the choice.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output, with a row for each bundle, those that stay as they are too. Notes and
  deprecations on standard error. With -o json or yaml: the answer of the resolver, a `decision` or
  a `refusal`; with --what-if also the list `whatIf`. With -o mermaid or svg: the dependency graph.
  If no set fits, the contradiction on standard error, and what would nearly fit.

Exit codes: 0 a set fits, 1 failed, 2 wrong usage, 5 no set fits, 7 no catalog has the package

Examples:
  The best version of a package, with what it needs:
    chandler resolve prometheus --catalog quay.io/operatorhubio/catalog:latest
  Two packages on an older cluster:
    chandler resolve shop@'>=3, <4' database --catalog ./catalog --kube-version 1.30
  Upgrade what is installed, and say why:
    chandler resolve shop --catalog ./catalog --installed shop@3.0.0 --installed database@1.5.0 --explain
  Leave what others need as it is:
    chandler resolve shop --catalog ./catalog --installed shop@3.0.0 --installed database@1.5.0 \\
      --dependency-upgrades minimal
  What another question would give:
    chandler resolve shop --catalog ./catalog --installed database@1.5.0 --dependency-upgrades never --what-if
  The choice of OLM v1:
    chandler resolve prometheus --catalog ./catalog --mode single")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Resolve {
    /// A package, and the versions that are asked for, such as `prometheus` or `prometheus@'>=0.50, <1'`
    #[arg(value_name = "PACKAGE[@RANGE]", required = true)]
    pub packages: Vec<String>,

    /// Channel to choose from: for all packages, or as `PACKAGE=CHANNEL` for one. Repeatable [default: all]
    #[arg(long = "channel", value_name = "[PACKAGE=]CHANNEL")]
    pub channels: Vec<String>,

    /// A bundle that is installed. Repeatable
    #[arg(long = "installed", value_name = "PACKAGE@VERSION")]
    pub installed: Vec<String>,

    /// When installed bundles change that are not asked for, as spec.dependencyUpgrades of a Resolution
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = UpgradesArgument::Latest)]
    pub dependency_upgrades: UpgradesArgument,

    /// Whose rules the choice follows
    #[arg(long, value_enum, value_name = "MODE", default_value_t = ModeArgument::Default)]
    pub mode: ModeArgument,

    /// Kubernetes version of the cluster, such as `1.36` [default: none; versions limit nothing]
    #[arg(long = "kube-version", visible_alias = "kubernetes-version", value_name = "VERSION", value_parser = values::kubernetes_version)]
    pub kube_version: Option<String>,

    /// OpenShift version of the cluster, such as `4.20` [default: none; versions limit nothing]
    #[arg(long, value_name = "VERSION")]
    pub openshift_version: Option<String>,

    /// A kind that the cluster serves, such as `cert-manager.io/v1/Certificate`: no package is needed for it. Repeatable
    #[arg(long = "serves", value_name = "GROUP/VERSION/KIND", value_parser = kind)]
    pub serves: Vec<Kind>,

    /// What happens with packages that others need
    #[arg(long, value_enum, value_name = "ACTION", default_value_t = DependenciesArgument::Install)]
    pub dependencies: DependenciesArgument,

    /// Allow upgrades and downgrades that no channel provides
    #[arg(long)]
    pub any_upgrade: bool,

    /// Allow pre-releases that no range names
    #[arg(long)]
    pub prereleases: bool,

    /// Exclude deprecated bundles
    #[arg(long)]
    pub no_deprecated: bool,

    /// Print on standard error why each bundle is chosen, and the steps of its upgrade
    #[arg(long)]
    pub explain: bool,

    /// Also change the question, one part at a time, and print the changes that give another answer on standard error
    #[arg(long)]
    pub what_if: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ResolutionFormat::Text)]
    pub output: ResolutionFormat,

    /// The catalogs.
    #[command(flatten)]
    pub catalogs: CatalogArguments,
}

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ResolutionFormat {
    /// A table
    Text,
    /// JSON, with every field
    Json,
    /// YAML, as JSON
    Yaml,
    /// A Mermaid flowchart, for Markdown
    Mermaid,
    /// An SVG image
    Svg,
}

/// Whose rules the choice follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArgument {
    /// Chandler's: with dependencies, default channels and upgrades in several steps
    Default,
    /// OLM v1's: one package, the highest version of any channel, no dependencies
    Single,
}

/// When installed bundles change that are not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UpgradesArgument {
    /// They get the newest version that fits, once the packages that are asked for have theirs
    Latest,
    /// They change where a package that is asked for gets a better version that way
    Minimal,
    /// They change where nothing else fits
    Pinned,
    /// They never change, as bundles that the Resolution does not own
    Never,
}

/// What happens with packages that others need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DependenciesArgument {
    /// They are part of the answer
    Install,
    /// They are listed apart
    Report,
    /// They are not looked at
    Ignore,
}

/// Parses a kind: `GROUP/VERSION/KIND`, or `VERSION/KIND` for the core group.
fn kind(text: &str) -> Result<Kind, String> {
    Kind::parse(text)
        .ok_or_else(|| format!("{text:?} is not a kind: write `cert-manager.io/v1/Certificate`, or `v1/Pod`"))
}

impl Resolve {
    /// Prints the answer. Fails if there is none, or if nothing fits.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let required = self.required()?;
        let catalogs = catalogs::open(&self.catalogs.options(), terminal).await?;
        let problem = self.problem(required, &catalogs)?;
        question::check_packages(&problem, &catalogs)?;
        let answer = resolve(&problem, &catalogs).map_err(|error| question::unanswered(&error))?;
        let alternatives = if self.what_if {
            Some(what_if(&problem, &answer, &catalogs).map_err(|error| question::unanswered(&error))?)
        } else {
            None
        };
        self.print(&problem, &answer, alternatives.as_deref(), terminal)
    }

    fn required(&self) -> Result<Vec<Required>, CommandError> {
        let mut required = self.packages.iter().map(|text| question::required(text)).collect::<Result<Vec<_>, _>>()?;
        question::choose_channels(&mut required, &self.channels)?;
        Ok(required)
    }

    fn problem(&self, required: Vec<Required>, catalogs: &IndexCatalogs) -> Result<Problem, CommandError> {
        let mut installed =
            self.installed.iter().map(|text| question::installed(text, catalogs)).collect::<Result<Vec<_>, _>>()?;
        for it in &mut installed {
            it.hold = match self.dependency_upgrades {
                UpgradesArgument::Latest => Hold::Newest,
                UpgradesArgument::Minimal => Hold::Yielding,
                UpgradesArgument::Pinned => Hold::Flexible,
                UpgradesArgument::Never => Hold::Pinned,
            };
        }
        Ok(Problem {
            mode: match self.mode {
                ModeArgument::Default => Mode::Default,
                ModeArgument::Single => Mode::Single,
            },
            required,
            installed,
            catalogs: catalogs.sources(),
            cluster: Cluster {
                kubernetes: self.kube_version.clone(),
                openshift: self.openshift_version.clone(),
                kinds: self.serves.clone(),
            },
            policy: Policy {
                upgrades: if self.any_upgrade { Upgrades::SelfCertified } else { Upgrades::CatalogProvided },
                dependencies: match self.dependencies {
                    DependenciesArgument::Install => Dependencies::Install,
                    DependenciesArgument::Report => Dependencies::Report,
                    DependenciesArgument::Ignore => Dependencies::Ignore,
                },
                prereleases: self.prereleases,
                deprecated: !self.no_deprecated,
            },
            ..Problem::default()
        })
    }

    fn print(
        &self,
        problem: &Problem,
        answer: &Answer,
        alternatives: Option<&[Alternative]>,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        if matches!(self.output, ResolutionFormat::Json | ResolutionFormat::Yaml) {
            output::print(&data(answer, alternatives, self.output)?)?;
        } else if let Some(alternatives) = alternatives {
            terminal.write(resolution::alternatives(alternatives));
        }
        let decision = match answer {
            Answer::Decision(decision) => decision,
            Answer::Refusal(explanation) => {
                let hint = (!self.what_if).then_some("--what-if tries changes of the question");
                let error = resolution::refused(explanation, hint);
                return Err(match resolution::missing_kind(explanation) {
                    Some(kind) => {
                        error.hint(format!("if the cluster has it from elsewhere: `--serves {}`", quoted(kind)))
                    }
                    None => error,
                });
            }
        };
        match self.output {
            ResolutionFormat::Text => {
                let columns = Terminal::output().columns();
                output::show(&resolution::table(decision, &problem.installed, columns))?;
            }
            ResolutionFormat::Mermaid => output::print(&resolution::mermaid(decision, &problem.installed))?,
            ResolutionFormat::Svg => output::print(&resolution::svg(decision, &problem.installed))?,
            ResolutionFormat::Json | ResolutionFormat::Yaml => {}
        }
        if self.explain {
            terminal.write(resolution::explained(decision, &problem.installed));
        }
        for line in resolution::remarks(decision) {
            terminal.line(line);
        }
        Ok(())
    }
}

/// The answer, and the list of alternatives if it was asked for.
fn data(
    answer: &Answer,
    alternatives: Option<&[Alternative]>,
    format: ResolutionFormat,
) -> Result<String, CommandError> {
    let failed = |error: serde_json::Error| CommandError::failed("failed to write the answer").because(&error);
    let mut value = serde_json::to_value(answer).map_err(failed)?;
    if let (Some(alternatives), Value::Object(fields)) = (alternatives, &mut value) {
        fields.insert("whatIf".to_owned(), serde_json::to_value(alternatives).map_err(failed)?);
    }
    match format {
        ResolutionFormat::Yaml => output::yaml(&[value]),
        _ => output::json(&value),
    }
}
