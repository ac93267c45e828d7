#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| chandler_properties::check("helm_index", input));
