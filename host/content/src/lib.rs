//! A source in, a verified, content-addressed tree out.
