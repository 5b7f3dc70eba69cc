//! The `name value` files of the topology, as typed records.
//!
//! Every property is optional: kernels add them over time and containers hide them. A property
//! that was not read is `None`, never a value. Source: docs/ABI.md §Topology.

/// What is wrong with the text of a topology file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A value is not a decimal number.
    #[error("property {0} is not a number")]
    NotANumber(&'static str),
    /// A value does not fit its field.
    #[error("property {0} is out of range: {1}")]
    OutOfRange(&'static str, u64),
}

/// Splits a line into its name and its value.
fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.trim_end().split_once(' '))
}

fn number<T: TryFrom<u64>>(name: &'static str, value: &str) -> Result<T, TopologyError> {
    let value: u64 = value.trim().parse().map_err(|_| TopologyError::NotANumber(name))?;
    T::try_from(value).map_err(|_| TopologyError::OutOfRange(name, value))
}

/// Reads a file that holds one number.
pub(crate) fn single_number<T: TryFrom<u64>>(
    name: &'static str,
    text: &str,
) -> Result<T, TopologyError> {
    number(name, text)
}

/// Name of a field in the file.
macro_rules! text_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $text:literal) => {
        $text
    };
}

macro_rules! properties {
    (
        $(#[$doc:meta])*
        $name:ident { $( $(#[$field_doc:meta])* $field:ident $(= $text:literal)?: $type:ty, )* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: Option<$type>, )*
            /// Numeric properties this version does not know, in file order.
            pub other: Vec<(String, u64)>,
        }

        impl $name {
            /// Reads a `properties` file. Of a name that occurs twice the first counts.
            ///
            /// # Errors
            /// [`TopologyError`] when a known property is not a number or does not fit.
            pub fn parse(text: &str) -> Result<Self, TopologyError> {
                let mut record = Self::default();
                for (name, value) in fields(text) {
                    match name {
                        $( text_name!($field $($text)?) => {
                            let value = number(text_name!($field $($text)?), value)?;
                            record.$field.get_or_insert(value);
                        } )*
                        _ => {
                            if let Ok(value) = value.trim().parse() {
                                record.other.push((name.to_owned(), value));
                            }
                        }
                    }
                }
                Ok(record)
            }

            /// Every property that was read, known ones first, for display.
            pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
                let known = [$( (text_name!($field $($text)?), self.$field.map(u64::from)), )*];
                known
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value?)))
                    .chain(self.other.iter().map(|(name, value)| (name.as_str(), *value)))
            }
        }
    };
}

properties! {
    /// `system_properties` of the topology.
    SystemProperties {
        /// Firmware's OEM id.
        platform_oem: u64,
        /// Platform id.
        platform_id: u64,
        /// Platform revision.
        platform_rev: u64,
    }
}

properties! {
    /// `properties` of a topology node.
    NodeProperties {
        /// Logical CPUs; 0 on a GPU.
        cpu_cores_count: u32,
        /// SIMDs of the whole node, all XCCs; 0 on a CPU.
        simd_count: u32,
        /// Sub-directories of `mem_banks`.
        mem_banks_count: u32,
        /// Sub-directories of `caches`.
        caches_count: u32,
        /// Sub-directories of `io_links`.
        io_links_count: u32,
        /// Sub-directories of `p2p_links`; kernels before 6.0 have none.
        p2p_links_count: u32,
        /// First APIC id.
        cpu_core_id_base: u32,
        /// First SIMD id.
        simd_id_base: u32,
        /// Waves a SIMD holds.
        max_waves_per_simd: u32,
        /// LDS of a CU, KiB.
        lds_size_in_kb: u32,
        /// GDS, KiB.
        gds_size_in_kb: u32,
        /// Global wave sync resources.
        num_gws: u32,
        /// Lanes of a native wave.
        wave_front_size: u32,
        /// Shader arrays of all XCCs.
        array_count: u32,
        /// Shader arrays of an engine.
        simd_arrays_per_engine: u32,
        /// CUs of a shader array.
        cu_per_simd_array: u32,
        /// SIMDs of a CU.
        simd_per_cu: u32,
        /// Waves of a CU that can have scratch.
        max_slots_scratch_cu: u32,
        /// major * 10000 + minor * 100 + stepping; 0 on a CPU.
        gfx_target_version: u32,
        /// PCI vendor, 4098 for AMD.
        vendor_id: u32,
        /// PCI device.
        device_id: u32,
        /// PCI bus << 8 | device << 3 | function.
        location_id: u32,
        /// PCI domain.
        domain: u32,
        /// Minor number of the render node, `/dev/dri/renderD<n>`.
        drm_render_minor: u32,
        /// xGMI hive; 0 when in none.
        hive_id: u64,
        /// SDMA engines over PCIe.
        num_sdma_engines: u32,
        /// SDMA engines over xGMI.
        num_sdma_xgmi_engines: u32,
        /// Queues of an SDMA engine.
        num_sdma_queues_per_engine: u32,
        /// Hardware compute queues.
        num_cp_queues: u32,
        /// Save area of a queue, bytes per XCC (since Linux 6.19 and its stable backports).
        cwsr_size: u32,
        /// Control stack of a queue, bytes per XCC (as `cwsr_size`).
        ctl_stack_size: u32,
        /// Highest GPU clock, MHz.
        max_engine_clk_fcompute: u32,
        /// Highest CPU clock, MHz.
        max_engine_clk_ccompute: u32,
        /// Always 0.
        local_mem_size: u64,
        /// Compute firmware.
        fw_version: u32,
        /// Bits: [`Capability`](super::Capability).
        capability: u32,
        /// More bits, in newer kernels.
        capability2: u32,
        /// Debugger properties.
        debug_prop: u64,
        /// SDMA firmware.
        sdma_fw_version: u32,
        /// Serial number; 0 when unknown.
        unique_id: u64,
        /// XCCs; absent before Linux 6.5, where it is 1.
        num_xcc: u32,
    }
}

properties! {
    /// `properties` of a memory bank.
    MemBank {
        /// 0 system, 1 VRAM the CPU sees, 2 private VRAM, 3 GDS, 4 LDS, 5 scratch.
        heap_type: u32,
        /// Bytes.
        size_in_bytes: u64,
        /// Flags.
        flags: u32,
        /// Bus width, bits.
        width: u32,
        /// Clock, MHz.
        mem_clk_max: u32,
    }
}

properties! {
    /// `properties` of a cache. `sibling_map` is a list and not kept.
    Cache {
        /// First processor that uses it.
        processor_id_low: u32,
        /// Level, from 1.
        level: u32,
        /// KiB.
        size: u32,
        /// Line, bytes.
        cache_line_size: u32,
        /// Lines per tag.
        cache_lines_per_tag: u32,
        /// Ways.
        association: u32,
        /// Latency.
        latency: u32,
        /// Bits: 1 data, 2 instruction, 4 CPU, 8 GPU.
        kind = "type": u32,
    }
}

properties! {
    /// `properties` of a link between two nodes.
    Link {
        /// 1 HyperTransport, 2 PCIe, 5 QPI, 11 xGMI.
        kind = "type": u32,
        /// Version.
        version_major: u32,
        /// Version.
        version_minor: u32,
        /// Source node.
        node_from: u32,
        /// Target node.
        node_to: u32,
        /// Distance: PCIe 20, xGMI 15 a hop, in one package 13.
        weight: u32,
        /// Latency.
        min_latency: u32,
        /// Latency.
        max_latency: u32,
        /// MB/s.
        min_bandwidth: u32,
        /// MB/s.
        max_bandwidth: u32,
        /// Bytes.
        recommended_transfer_size: u32,
        /// SDMA engines to use, one bit each (since Linux 6.12).
        recommended_sdma_engine_id_mask: u32,
        /// 1 enabled, 2 non-coherent, 4 no 32-bit atomics, 8 no 64-bit atomics, 16 no peer access.
        flags: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "cpu_cores_count 0\nsimd_count 192\nhive_id 10631624818852212319\n\
        gfx_target_version 110000\nbrand_new 5\nmax_engine_clk_ccompute 5000\n";

    #[test]
    fn a_node_file_is_read_and_unknown_numbers_are_kept() {
        let node = NodeProperties::parse(NODE).unwrap();
        assert_eq!(node.simd_count, Some(192));
        assert_eq!(node.hive_id, Some(10_631_624_818_852_212_319));
        assert_eq!(node.num_xcc, None);
        assert_eq!(node.other, [("brand_new".to_owned(), 5)]);
        assert_eq!(node.iter().last(), Some(("brand_new", 5)));
    }

    #[test]
    fn a_name_does_not_match_a_longer_one() {
        let node = NodeProperties::parse("simd_count_x 4\n").unwrap();
        assert_eq!(node.simd_count, None);
    }

    #[test]
    fn the_first_of_two_equal_names_counts() {
        let node = NodeProperties::parse("simd_count 4\nsimd_count 8\n").unwrap();
        assert_eq!(node.simd_count, Some(4));
    }

    #[test]
    fn words_and_numbers_too_large_are_errors_that_name_the_property() {
        let word = NodeProperties::parse("simd_count many\n");
        assert_eq!(word, Err(TopologyError::NotANumber("simd_count")));
        let large = NodeProperties::parse("simd_count 4294967296\n");
        assert_eq!(large, Err(TopologyError::OutOfRange("simd_count", 4_294_967_296)));
        assert_eq!(
            NodeProperties::parse("simd_count -1"),
            Err(TopologyError::NotANumber("simd_count"))
        );
    }

    #[test]
    fn a_field_may_have_another_name_than_the_property() {
        assert_eq!(Link::parse("type 11\n").unwrap().kind, Some(11));
    }

    #[test]
    fn no_prefix_of_a_file_panics() {
        for end in 0..NODE.len() {
            let _ = NodeProperties::parse(&NODE[..end]);
        }
    }

    #[test]
    fn a_file_with_one_number_may_end_in_a_newline() {
        assert_eq!(single_number::<u32>("gpu_id", "4672\n"), Ok(4672));
        assert_eq!(single_number::<u32>("gpu_id", ""), Err(TopologyError::NotANumber("gpu_id")));
    }
}
