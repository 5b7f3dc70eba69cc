//! The compiled blit kernels: hip/blit/build.sh makes them from hip/blit/blit.cl.

macro_rules! objects {
    ($($target:literal)*) => {
        /// The code object for a target, by the name that LLVM gives it.
        pub(crate) fn object(target: &str) -> Option<&'static [u8]> {
            match target {
                $($target => Some(include_bytes!(concat!("../../blit/blit.", $target, ".co"))),)*
                _ => None,
            }
        }

        #[cfg(test)]
        pub(crate) const TARGETS: &[&str] = &[$($target),*];
    };
}

objects! {
    "gfx900" "gfx906" "gfx908" "gfx90a" "gfx942"
    "gfx1100" "gfx1101" "gfx1102" "gfx1103" "gfx1150" "gfx1151"
}

#[cfg(test)]
mod tests {
    use hsaco::CodeObject;

    use super::*;
    use crate::copy::shader::{GROUP, Kernel};

    #[test]
    fn every_object_has_the_kernels_and_they_need_nothing_but_their_arguments() {
        for target in TARGETS {
            let object = CodeObject::parse(object(target).unwrap()).unwrap();
            assert_eq!(object.kernels().len(), Kernel::ALL.len());
            for kind in Kernel::ALL {
                let kernel = object.kernel(kind.name()).unwrap();
                let (facts, layout) = (kernel.launch_facts(), kernel.arguments());
                assert_eq!(layout.segment_bytes() as usize, kind.argument_bytes(), "{kind:?}");
                assert!(layout.hidden().is_empty());
                assert_eq!(facts.required_group_size, Some([GROUP, 1, 1]));
                assert_eq!((facts.private_bytes, facts.static_lds_bytes), (0, 0));
                assert!(!facts.uses_dynamic_stack && facts.preload.dwords == 0);
            }
        }
    }
}
