//! The export macro.

/// Exports a type that implements [`Provisioner`](crate::Provisioner) from the component. Call it once in a crate whose
/// `crate-type` includes `cdylib`; natively it does nothing.
#[macro_export]
#[rustfmt::skip]
macro_rules! export {
    ($provisioner:ty) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "a component's exports have fixed symbols, and its facts need a section")]
        const _: () = {
            type Component = $crate::guest::Component<$provisioner>;
            $crate::guest::bindings::export!(Component with_types_in $crate::guest::bindings);

            const FACTS: $crate::Facts = <$provisioner as $crate::Provisioner>::FACTS;
            #[used]
            #[unsafe(link_section = "chandler:provisioner")]
            static SECTION: [u8; FACTS.section_len()] = FACTS.section();
        };
    };
}
