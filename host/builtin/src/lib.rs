//! The first-party provisioner components, embedded.
