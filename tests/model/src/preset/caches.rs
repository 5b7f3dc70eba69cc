//! The caches of a GPU, listed as the kernel does (docs/ABI.md §Presets).

use super::{CacheKind, Preset};
use crate::sysfs::{Cache, Properties};

impl Preset {
    /// The active CUs of shader array `array`, one bit each: the highest ones. Where CUs are fused
    /// off the first arrays have one more than the others.
    fn active(&self, array: u64) -> u64 {
        let (each, more) = (self.cus / self.arrays, self.cus % self.arrays);
        let count = each + u64::from(array < more);
        ((1 << count) - 1) << (self.cus_per_array - count)
    }

    /// `kfd_fill_cache_non_crat_info`: an L1 for each block of CUs that has an active one, a single
    /// L2 and L3. `first_id` is the node's first processor.
    pub(super) fn caches(&self, first_id: u64) -> Vec<Cache> {
        let present = self.caches.iter().filter(|kind| kind.kib != 0);
        present
            .flat_map(|kind| match kind.level {
                1 => self.first_level(kind, first_id),
                _ => vec![self.shared(kind, first_id)],
            })
            .collect()
    }

    fn first_level(&self, kind: &CacheKind, first_id: u64) -> Vec<Cache> {
        let mut caches = Vec::new();
        let mut id = first_id;
        for array in 0..self.arrays {
            let mut block = 0;
            while block < self.cus_per_array {
                let mask = self.active(array) >> block & kind.mask();
                if mask != 0 {
                    let first = u64::from(mask.trailing_zeros());
                    caches.push(kind.entry(id + first, &[mask >> first]));
                }
                id += kind.cus.min(self.cus_per_array - block);
                block += kind.cus;
            }
        }
        caches
    }

    /// The map's first word is that of the first array; then come all arrays but the last: the
    /// kernel stores each array's word a round late.
    fn shared(&self, kind: &CacheKind, first_id: u64) -> Cache {
        let first = self.active(0) & kind.mask();
        let words: Vec<u64> = std::iter::once(first >> first.trailing_zeros())
            .chain((0..self.arrays - 1).map(|array| self.active(array) & kind.mask()))
            .collect();
        kind.entry(first_id + u64::from(first.trailing_zeros()), &words)
    }
}

impl CacheKind {
    fn mask(&self) -> u64 {
        (1 << self.cus) - 1
    }

    /// One cache; `words` are 32 bits each of the CUs that share it.
    fn entry(&self, processor: u64, words: &[u64]) -> Cache {
        let bits = words.iter().flat_map(|word| (0..32).map(move |bit| word >> bit & 1));
        let map: Vec<&str> = bits.map(|bit| if bit == 1 { "1" } else { "0" }).collect();
        Cache {
            properties: Properties::from([
                ("processor_id_low", processor),
                ("level", self.level),
                ("size", self.kib),
                ("cache_line_size", self.line_bytes),
                ("cache_lines_per_tag", 0),
                ("association", 0),
                ("latency", 0),
                ("type", self.kind | CacheKind::GPU),
            ]),
            sibling_map: map.join(","),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    #[test]
    fn counts_equal_those_of_real_machines() {
        // `caches_count` in sysfs of an RX 7900 XTX, an MI100 and an MI300X.
        for (target, count) in
            [(Target::Gfx1100, 206), (Target::Gfx908, 217), (Target::Gfx942, 626)]
        {
            assert_eq!(Preset::of(target).caches(0x8000_1000).len(), count, "{target}");
        }
    }

    #[test]
    fn every_active_cu_has_one_cache_of_each_kind_of_first_level() {
        for target in Target::ALL {
            let preset = Preset::of(target);
            let active: u32 = (0..preset.arrays).map(|a| preset.active(a).count_ones()).sum();
            assert_eq!(u64::from(active), preset.cus, "{target}");
            assert!((0..preset.arrays).all(|a| preset.active(a) < 1 << preset.cus_per_array));
            for kind in preset.caches.iter().filter(|kind| kind.level == 1) {
                let caches = preset.first_level(kind, 0);
                let sharing: usize =
                    caches.iter().map(|c| c.sibling_map.matches('1').count()).sum();
                assert_eq!(u64::try_from(sharing).unwrap(), preset.cus, "{target} {kind:?}");
                let ids: Vec<_> =
                    caches.iter().map(|c| c.properties.get("processor_id_low")).collect();
                assert!(ids.is_sorted_by(|a, b| a < b), "{target}");
            }
        }
    }

    #[test]
    fn a_chip_wide_cache_maps_every_array() {
        let preset = Preset::of(Target::Gfx942);
        let caches = preset.caches(0x8000_1000);
        let l3 = caches.last().unwrap();
        assert_eq!(l3.properties.get("level"), Some(3));
        assert_eq!(l3.sibling_map.split(',').count(), 32 * 32);
    }
}
