//! `chandler upgrade NAME`, without a bundle: to the newest version of what is installed.

use chandler_api::BundleDeployment;
use kube::Client;

use super::Upgrade;
use crate::{
    CommandError, confirmation,
    read::{named::NamedBundle, newest, package, rendering::BundleOptions},
    view::{difference, output, terminal::Terminal, text::one_line},
};

impl Upgrade {
    /// Chooses the newest version, prints what it would change, asks, and upgrades.
    pub(super) async fn upgrade_to_newest(
        &self,
        client: &Client,
        existing: &BundleDeployment,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        self.check(existing)?;
        let options = self.installation.catalogs(&self.package.selection);
        let (package, catalogs) = newest::package(client, existing, &options, terminal).await?;
        let channels = &self.package.channels;
        let Some(chosen) = package::choose_upgrade(&package, channels, &catalogs, client, existing).await? else {
            return Box::pin(self.without_newer(client, existing, terminal)).await;
        };
        chosen.report(terminal);
        let version = one_line(&chosen.version);
        let bundle: NamedBundle = chosen.image.into();
        if !self.yes && !self.installation.dry_run {
            Box::pin(self.print_preview(client, existing, &bundle, terminal)).await?;
            let question = format!("upgrade {} to {version}?", self.name);
            if !confirmation::confirmed(terminal, &question, self.yes)? {
                return Err(CommandError::failed("not upgraded"));
            }
        }
        Box::pin(self.upgrade(Some(&bundle), client, existing, terminal)).await
    }

    /// Prints what the rollout would change. Where this machine cannot find that out, it says why: the controller may be able to.
    async fn print_preview(
        &self,
        client: &Client,
        existing: &BundleDeployment,
        bundle: &NamedBundle,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let arguments = &self.installation;
        let options = BundleOptions::of_deployment(arguments.registry.options(), arguments.cache_directory.clone());
        match newest::preview(client, existing, bundle, &options).await {
            Ok(preview) => {
                output::show(&difference::text(&preview, Terminal::output().look(), false))?;
                for refusal in &preview.refusals {
                    terminal.line(difference::refusal(refusal));
                }
                for finding in &preview.findings {
                    terminal.line(format!("finding: {}", one_line(finding)));
                }
                terminal.line(difference::summary(&preview));
            }
            Err(error) => terminal.line(format!("no preview: {}", error.explained())),
        }
        Ok(())
    }
}
