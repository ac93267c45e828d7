//! The custom resource types and their CustomResourceDefinitions.
