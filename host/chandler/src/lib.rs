//! The chandler command.
