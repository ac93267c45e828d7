//! The helm provisioner: renders Helm charts as Helm 3 does.
