//! Types of Kubernetes objects: built-in schema table, structural schemas of CRDs, pruning, defaulting, validation.
