#![no_main]

libfuzzer_sys::fuzz_target!(init: chandler_properties::sandbox::prepare(), |input: &[u8]| chandler_properties::check("sandbox", input));
