//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `not_offered` | bundles that a catalog has and does not offer |
//! | `overviews` | what people see of catalogs, and how two of them differ |
//! | `same_answers` | an index gives the resolver the same answers as the documents that it was built from |

mod not_offered;
mod overviews;
mod same_answers;
#[path = "../../resolver/tests/support/mod.rs"]
mod support;
