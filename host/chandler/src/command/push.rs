//! `chandler push`.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use chandler_content::ImageReference;
use chandler_core::{Content, Digest, Severity};
use chandler_source::CATALOG_LABEL;
use chandler_yaml::{Kind, Limits, Node, parse};
use indicatif::HumanBytes;

use crate::{
    CommandError,
    arguments::{catalogs::Fetching, values},
    read::{
        cache, catalogs,
        image_layout::{self, ImageLayout},
        origin::{self, Origin},
        provisioner, source,
    },
    view::{invocation::quoted, output, terminal::Terminal},
    write::image::{self, Image, Pushed},
};

/// The file of a registry+v1 bundle whose annotations are also labels of its image.
const ANNOTATIONS: &str = "metadata/annotations.yaml";
/// The directory of a catalog in its image, where opm puts it as well.
const CONFIGS: &str = "configs";

/// Push a bundle, a catalog or an image to a registry
///
/// Makes an image of the files, with one layer, and pushes it. The same files make the same image, with the same digest. An image of a
/// registry+v1 bundle has the labels of its metadata/annotations.yaml, and an image of a catalog has the label that names its directory, so
/// that other tools recognise them too. The files that the .helmignore of a chart names are left out, as by `helm package`. A directory with the file oci-layout is an image already, such as the controller's
/// (`cargo xtask dist`): it is checked and pushed unchanged.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The image with its digest on standard output, which `chandler install` and `cosign sign` accept; the
  rest on standard error.

Exit codes: 0 pushed, 1 failed, 2 wrong usage

Examples:
  chandler lint ./harbour && chandler push ./harbour registry.example.com/harbour:v0.1.0
  A catalog:
    chandler push --catalog ./catalog registry.example.com/catalog:latest
  What a repository has at a tag:
    chandler push 'git+https://example.com/bundles.git?tag=v0.1.0&directory=harbour' registry.example.com/harbour:v0.1.0
  A chart of Helm, a directory or an archive of `helm package`:
    chandler push ./web-1.2.3.tgz registry.example.com/charts/web:1.2.3
  The image of the controller, for every platform that it was built for:
    chandler push target/cluster/image registry.example.com/chandler:v0.1.0")]
pub struct Push {
    /// A directory, an archive, the URL of an archive or a git repository, or an OCI image layout
    #[arg(value_name = "CONTENT")]
    pub content: String,

    /// The image, with its registry and tag, such as registry.example.com/harbour:v0.1.0
    #[arg(value_name = "IMAGE", value_parser = values::tagged_image)]
    pub image: ImageReference,

    /// The files are a file-based catalog. It is checked as the controller checks it
    #[arg(long)]
    pub catalog: bool,

    /// Also push a bundle whose format no built-in provisioner detects
    #[arg(long, conflicts_with = "catalog")]
    pub any_format: bool,

    /// Check the content and print the image that would be pushed, and push nothing
    #[arg(long)]
    pub dry_run: bool,

    /// How the command connects to the registry, and where it keeps content.
    #[command(flatten)]
    pub fetching: Fetching,
}

impl Push {
    /// Checks the content, pushes it, and prints the image.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let origin = Origin::parse(&self.content)?;
        if let Origin::Image(image) = &origin {
            return Err(CommandError::usage(format!("{image} is an image already")).hint(format!(
                "to copy it with its digest and its signatures: `skopeo copy --all docker://{image} docker://{}`",
                self.image
            )));
        }
        if let Origin::Directory(directory) = &origin
            && image_layout::is_layout(directory)
        {
            return self.push_layout(directory, terminal).await;
        }
        if let Origin::Archive(file) = &origin
            && file.extension().is_some_and(|extension| extension == "wasm")
        {
            let shown = origin::shown(&self.content);
            return Err(CommandError::usage(format!("{shown} is a component of a provisioner, not a bundle"))
                .hint(format!("push it with `chandler plugin push {} {}`", quoted(&shown), self.image)));
        }
        let cache = cache::directory(self.fetching.cache_directory.as_deref())?;
        let (content, below, labels) =
            if self.catalog { self.opened_catalog(&cache).await? } else { self.opened_bundle(&origin, &cache).await? };
        let store = source::store(&cache).await?;
        let image = tokio::task::spawn_blocking(move || Image::pack(&store, &*content, below, labels)).await;
        let image = image.map_err(|error| CommandError::failed("failed to make the image").because(&error))??;
        let (size, digest) = (image.layer_bytes(), image.digest());
        self.push_image(Arc::new(image), size, digest, terminal).await
    }

    /// Pushes an image that is there already.
    async fn push_layout(&self, directory: &Path, terminal: &Terminal) -> Result<(), CommandError> {
        if self.catalog || self.any_format {
            let option = if self.catalog { "--catalog" } else { "--any-format" };
            return Err(CommandError::usage(format!("{} is an image: {option} is for files", directory.display()))
                .hint(format!("push it without {option}; an image is pushed unchanged")));
        }
        let directory = directory.to_owned();
        let checked = tokio::task::spawn_blocking(move || {
            let layout = ImageLayout::open(&directory)?;
            // All of them, before the registry gets the first one.
            layout.blobs().try_for_each(|(digest, _)| layout.blob(digest).map(drop))?;
            Ok::<_, CommandError>(layout)
        });
        let layout =
            checked.await.map_err(|error| CommandError::failed("failed to read the image").because(&error))??;
        let size = layout.blobs().map(|(_, size)| size).sum();
        let digest = layout.image().map(|image| image.digest.clone());
        let digest = digest.ok_or_else(|| CommandError::failed("the image has no manifest"))?;
        self.push_image(Arc::new(layout), size, digest, terminal).await
    }

    async fn push_image(
        &self,
        image: Arc<dyn Pushed + Send + Sync>,
        bytes: u64,
        digest: Digest,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let size = HumanBytes(bytes);
        if self.dry_run {
            terminal.line(format!("would push {} ({size} compressed); nothing was pushed", self.image));
        } else {
            image::push(image, &self.image, &self.fetching.registry.options()).await?;
            terminal.line(format!("pushed {} ({size} compressed)", self.image));
        }
        output::print(&format!("{}\n", self.image.at(&digest)))
    }

    async fn opened_bundle(&self, origin: &Origin, cache: &Path) -> Result<Packing, CommandError> {
        let bundle = source::open(origin, cache, &self.fetching.registry.options()).await?;
        // The provisioner of charts is not built in.
        let is_chart = bundle.content.read("Chart.yaml", 0, 1).is_ok();
        if !self.any_format && !is_chart {
            let provisioners = provisioner::provisioners(cache)?;
            provisioner::detect(&provisioners, &bundle.content).await.map_err(|error| {
                error.hint("--catalog pushes a catalog, --any-format content for a provisioner that is not built in")
            })?;
        }
        let labels = labels(&*bundle.content)?;
        Ok((bundle.content, "", labels))
    }

    async fn opened_catalog(&self, cache: &Path) -> Result<Packing, CommandError> {
        let opened = catalogs::content(&self.content, cache, &self.fetching.options()).await?;
        // Building the index first reports a directory without a catalog, and text that is not YAML.
        catalogs::indexed(&self.content, Arc::clone(&opened.content), cache).await?;
        let findings = catalogs::findings(&self.content, &*opened.content, cache)?;
        if let Some(error) = findings.iter().find(|finding| finding.severity == Severity::Error) {
            return Err(CommandError::failed(format!("the catalog {} has an error", origin::shown(&self.content)))
                .cause(error.message.clone())
                .hint(format!(
                    "`chandler catalog lint {}` prints all errors of a catalog",
                    quoted(&origin::shown(&self.content))
                )));
        }
        Ok((opened.content, CONFIGS, [(CATALOG_LABEL.to_owned(), format!("/{CONFIGS}"))].into()))
    }
}

/// The files, the directory of the image that they go to, and the labels of the image.
type Packing = (Arc<dyn Content>, &'static str, BTreeMap<String, String>);

/// The labels for the image of a bundle, as `opm generate dockerfile` and the Operator SDK write them.
fn labels(content: &dyn Content) -> Result<BTreeMap<String, String>, CommandError> {
    let failed = |cause: &dyn std::fmt::Display| {
        CommandError::failed(format!("failed to read {ANNOTATIONS}: {cause}"))
            .hint("the image gets its annotations as labels: a map of texts below `annotations`")
    };
    let Ok(bytes) = content.read_all(ANNOTATIONS) else { return Ok(BTreeMap::new()) };
    let documents = parse(&bytes, &Limits::default()).map_err(|error| failed(&error))?;
    let annotations = documents.first().and_then(|document| document.root.get("annotations"));
    let Some(annotations) = annotations.filter(|annotations| !annotations.is_null()) else {
        return Ok(BTreeMap::new());
    };
    let wrong = |name: &str, node: &Node| {
        let place = format!("line {}, column {}", node.line, node.column);
        failed(&format!(
            "{name} must be {}, and is {} ({place})",
            if name == "annotations" { "an object" } else { "text" },
            node.article_and_type()
        ))
    };
    let entries = annotations.as_mapping().ok_or_else(|| wrong("annotations", annotations))?;
    let labels = entries.iter().map(|entry| {
        let value = label(&entry.value, &bytes).ok_or_else(|| wrong(&entry.key, &entry.value))?;
        Ok((entry.key.to_string(), value))
    });
    labels.collect()
}

/// A value as the text of a label. Without quotes, `true` and `4.10` are not text in YAML, and are taken as written, as by OLM's tools.
fn label(value: &Node, file: &[u8]) -> Option<String> {
    match &value.kind {
        Kind::String(text) => Some(text.to_string()),
        Kind::Null => Some(String::new()),
        Kind::Bool(_) | Kind::Int(_) | Kind::UInt(_) | Kind::Float(_) => {
            Some(written(value, file).unwrap_or_else(|| value.to_json().to_string()))
        }
        Kind::Sequence(_) | Kind::Mapping(_) => None,
    }
}

/// The text of a scalar without quotes in its file; `None` if it is not found, as in a file that is not UTF-8.
fn written(value: &Node, file: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(file).ok()?;
    let line = text.lines().nth(usize::try_from(value.line).ok()?.checked_sub(1)?)?;
    let (start, _) = line.char_indices().nth(usize::try_from(value.column).ok()?.checked_sub(1)?)?;
    let rest = line.get(start..)?;
    let end = rest.find(|c: char| matches!(c, ',' | '}') || c.is_whitespace()).unwrap_or(rest.len());
    let found = rest.get(..end)?;
    let documents = parse(found.as_bytes(), &Limits::default()).ok()?;
    (documents.first()?.root.kind == value.kind).then(|| found.to_owned())
}

#[cfg(test)]
mod tests {
    use chandler_core::MemoryContent;

    use super::*;

    /// The labels of a bundle with this file.
    fn labelled(text: &str) -> Result<BTreeMap<String, String>, CommandError> {
        labels(&MemoryContent::new([(ANNOTATIONS, text)]))
    }

    #[test]
    fn values_without_quotes_are_taken_as_written() {
        let file = "annotations:\n  text: 'true'\n  some: True  # a comment\n  flag: no\n  version: 4.10\n  number: 0644\n  none:\n  \
                    float: 1e3\n  more: !!float 1\n";
        let found = labelled(file).unwrap();
        let found: Vec<String> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(found.join(" "), "flag=no float=1e3 more=1 none= number=0644 some=True text=true version=4.10");
        assert_eq!(labelled("annotations: {a: true, b: 1.50}\n").unwrap()["b"], "1.50");
        for empty in ["", "{}", "annotations:\n", "- a\n"] {
            assert!(labelled(empty).unwrap().is_empty(), "{empty}");
        }
        let wrong = labelled("annotations:\n  list: [a]\n").unwrap_err().to_string();
        insta::assert_snapshot!(wrong, @r"
        error: failed to read metadata/annotations.yaml: list must be text, and is an array (line 2, column 9)
          hint: the image gets its annotations as labels: a map of texts below `annotations`
        ");
        assert!(labelled("annotations: text\n").is_err());
    }
}
