//! The reconcilers: BundleDeployment and ProvisionerClass.
