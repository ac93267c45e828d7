//! Kubernetes objects in protobuf.
