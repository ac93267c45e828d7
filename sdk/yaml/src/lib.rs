//! Kubernetes-faithful YAML and JSON reading with positions and limits.
