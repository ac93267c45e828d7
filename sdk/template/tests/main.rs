//! Tests of templates as a whole.

mod go;
mod limits;
mod support;
