//! The command as a user runs it. What can be tested in the library is tested there; here is that the parts are connected.

mod dev;
mod golden;
mod render;
mod support;
