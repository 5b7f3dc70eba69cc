//! What an instruction reads and writes, as far as its operands and its name say.
//!
//! For those who watch execution or scan code; the executor does not ask. Registers that an
//! instruction picks at run time (relative moves, the index mode of gfx9) are not in here.

use super::decode::{Decoded, Shape};
use super::ir::{Inst, Src, SrcKind, flag, sgpr};
use super::sig::{Format, Sig};

/// Consecutive registers of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Of the vector file; otherwise of the scalar file.
    pub vector: bool,
    /// The first: AccVGPRs from 256, scalar registers in the canonical numbering.
    pub first: u16,
    /// How many.
    pub count: u8,
}

impl Span {
    const fn scalar(first: u8, count: u8) -> Self {
        Self { vector: false, first: first as u16, count }
    }

    const fn vector(first: u16, count: u8) -> Self {
        Self { vector: true, first, count }
    }

    /// Its registers.
    pub fn registers(self) -> impl Iterator<Item = u16> {
        (0..u16::from(self.count)).map(move |k| self.first.wrapping_add(k))
    }
}

/// Whether an instruction goes to memory, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It does not.
    None,
    /// It loads.
    Load,
    /// It stores.
    Store,
    /// It loads and stores at once.
    Atomic,
    /// It moves data between lanes through the LDS unit, or asks something of another unit that
    /// answers later.
    Exchange,
    /// It orders accesses.
    Fence,
}

/// What makes the results of an instruction late: the counter that it raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// None.
    None,
    /// Vector memory.
    Vector,
    /// LDS.
    Lds,
    /// Scalar memory and messages: out of order.
    Scalar,
    /// FLAT: vector memory and LDS.
    Both,
}

/// Registers and memory that an instruction touches.
#[derive(Clone, Copy, Debug)]
pub struct Effects {
    reads: [Span; 4],
    read_count: u8,
    writes: [Span; 3],
    write_count: u8,
    /// How many of the reads, from the first, say where memory is accessed.
    pub addresses: u8,
    /// Memory.
    pub memory: Memory,
    /// The counter of its results.
    pub counter: Counter,
    /// Bytes of one access of a lane; of LDS and global memory.
    pub bytes: u32,
    /// Two accesses per lane, of the two halves of the offset field, so many bytes apart per unit.
    pub pair: Option<u32>,
    /// Atomic beyond its wave: a read-modify-write, or an access past the nearest cache.
    pub coherent: bool,
    /// The condition code is read.
    pub reads_scc: bool,
    /// The condition code is written.
    pub writes_scc: bool,
    /// EXEC decides which lanes of vector registers are read.
    pub by_exec: bool,
    /// EXEC decides which lanes of vector registers are written, or only part of a lane is.
    pub partial: bool,
    /// Control may go elsewhere, depending on what it reads.
    pub branches: bool,
}

impl Effects {
    /// Registers read. The address comes first where memory is accessed.
    pub fn reads(&self) -> &[Span] {
        self.reads.get(..usize::from(self.read_count)).unwrap_or(&self.reads)
    }

    /// Registers written.
    pub fn writes(&self) -> &[Span] {
        self.writes.get(..usize::from(self.write_count)).unwrap_or(&self.writes)
    }

    fn read(&mut self, span: Span) {
        if let Some(slot) = self.reads.get_mut(usize::from(self.read_count))
            && span.count != 0
        {
            *slot = span;
            self.read_count += 1;
        }
    }

    fn write(&mut self, span: Span) {
        let lost = !span.vector && (span.first >= u16::from(sgpr::NULL) && span.first < 148);
        if let Some(slot) = self.writes.get_mut(usize::from(self.write_count))
            && span.count != 0
            && !lost
        {
            *slot = span;
            self.write_count += 1;
        }
    }
}

impl Decoded {
    /// What it reads and writes in waves of `wave_size` lanes; of a pair, what the X half does.
    pub fn effects(&self, wave_size: u32) -> Effects {
        effects(&self.inst, &self.shape, wave_size)
    }

    /// Of the Y half of a pair.
    pub fn pair_effects(&self, wave_size: u32) -> Option<Effects> {
        let (inst, sig) = (self.pair?, self.shape.pair?);
        Some(effects(&inst, &Shape { sig, pair: None, ..self.shape }, wave_size))
    }
}

/// The effects of an instruction.
fn effects(inst: &Inst, shape: &Shape, wave_size: u32) -> Effects {
    let name = inst.op.name();
    let memory = memory(name, shape.format);
    let mut effects = Effects {
        reads: [Span::scalar(0, 0); 4],
        read_count: 0,
        writes: [Span::scalar(0, 0); 3],
        write_count: 0,
        addresses: 0,
        memory,
        counter: counter(name, shape.format, memory),
        bytes: if memory == Memory::None { 0 } else { bytes(name) },
        pair: pair(name),
        coherent: memory == Memory::Atomic
            || matches!(memory, Memory::Load | Memory::Store) && inst.flags & flag::GLC != 0,
        reads_scc: reads_scc(name),
        writes_scc: matches!(
            shape.format,
            Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk
        ),
        by_exec: !ignores_exec(name),
        partial: !ignores_exec(name) || name == "v_writelane_b32",
        branches: name.starts_with("s_cbranch")
            || name.starts_with("s_setpc")
            || name.starts_with("s_swappc"),
    };
    operands(&mut effects, inst, shape, wave_size);
    effects
}

/// Fills in the registers.
fn operands(effects: &mut Effects, inst: &Inst, shape: &Shape, wave_size: u32) {
    let sig = shape.sig;
    let mask = if wave_size == 64 { 2 } else { 1 };
    let width = |width: u8| if width == Sig::MASK { mask } else { width };
    let accumulates = inst.flags & flag::ACC != 0;
    let data = |span: Span| match span.vector && accumulates {
        true => Span { first: 256 + (span.first & 255), ..span },
        false => span,
    };
    let source = |k: usize, count: u8| match inst.src.get(k).copied().map(Src::kind) {
        Some(SrcKind::V(n)) => Span::vector(n, count),
        Some(SrcKind::S(n)) if n < sgpr::NULL => Span::scalar(n, count),
        _ => Span::scalar(0, 0),
    };
    let exists = |k: usize| sig.src.get(k).is_some_and(|operand| operand.exists());
    let stores = matches!(effects.memory, Memory::Store | Memory::Atomic);
    let dst = match sig.dst_is_scalar() || inst.flags & flag::DST_SGPR != 0 {
        true => Span { vector: false, first: inst.dst, count: width(sig.dst_width()) },
        false => data(Span::vector(inst.dst, width(sig.dst_width()))),
    };
    match shape.format {
        Format::Flat | Format::Global | Format::Scratch => {
            if inst.flags & flag::VADDR != 0 {
                let wide = shape.format == Format::Flat
                    || shape.format == Format::Global && inst.flags & flag::SADDR == 0;
                effects.read(source(0, if wide { 2 } else { 1 }));
            }
            if inst.flags & flag::SADDR != 0 {
                effects.read(source(2, if shape.format == Format::Scratch { 1 } else { 2 }));
            }
            effects.addresses = effects.read_count;
            if exists(1) {
                effects.read(data(source(1, width(sig.src.get(1).map_or(0, |s| s.width)))));
            }
        }
        Format::Mubuf | Format::Mtbuf => {
            let count =
                u8::from(inst.flags & flag::OFFEN != 0) + u8::from(inst.flags & flag::IDXEN != 0);
            if count != 0 {
                effects.read(source(0, count));
            }
            if exists(1) {
                effects.read(source(1, 4));
                effects.read(source(2, 1));
            }
            effects.addresses = effects.read_count;
            if stores {
                effects.read(dst);
            }
        }
        Format::Smem => {
            let wide = inst.op.name().starts_with("s_buffer");
            if exists(0) {
                effects.read(source(0, if wide { 4 } else { 2 }));
            }
            if inst.flags & flag::SOFFSET != 0 {
                effects.read(source(1, 1));
            }
            effects.addresses = effects.read_count;
            if exists(2) {
                effects.read(source(2, width(sig.src.get(2).map_or(0, |s| s.width))));
            }
        }
        Format::Ds => {
            for k in (0..3).filter(|&k| exists(k)) {
                let span = source(k, width(sig.src.get(k).map_or(0, |s| s.width)));
                effects.read(if k == 0 { span } else { data(span) });
                if k == 0 && effects.memory != Memory::Exchange {
                    effects.addresses = 1;
                }
            }
        }
        _ => {
            for k in (0..3).filter(|&k| exists(k)) {
                effects.read(source(k, width(sig.src.get(k).map_or(0, |s| s.width))));
            }
        }
    }
    match inst.op.name() {
        "s_cbranch_vccz" | "s_cbranch_vccnz" => effects.read(Span::scalar(sgpr::VCC_LO, mask)),
        "s_cbranch_execz" | "s_cbranch_execnz" => effects.read(Span::scalar(sgpr::EXEC_LO, mask)),
        name if name.contains("saveexec") || name.contains("wrexec") => {
            effects.read(Span::scalar(sgpr::EXEC_LO, mask));
        }
        _ => {}
    }
    let loads = match effects.memory {
        Memory::Store | Memory::Fence => false,
        Memory::Atomic if shape.format != Format::Ds => inst.flags & flag::GLC != 0,
        _ => inst.flags & flag::LDS == 0 || shape.format == Format::Ds,
    };
    if loads {
        effects.write(dst);
    }
    if sig.sdst != 0 {
        effects.write(Span::scalar(inst.sdst, width(sig.sdst)));
    }
    if inst.flags & flag::WRITES_EXEC != 0 {
        effects.write(Span::scalar(sgpr::EXEC_LO, mask));
    }
}

fn memory(name: &str, format: Format) -> Memory {
    match format {
        Format::Ds => match name {
            "ds_swizzle_b32" | "ds_permute_b32" | "ds_bpermute_b32" => Memory::Exchange,
            name if name.starts_with("ds_gws") || name == "ds_nop" => Memory::None,
            name if name.starts_with("ds_load") => Memory::Load,
            name if name.starts_with("ds_storexchg") => Memory::Atomic,
            name if name.starts_with("ds_store") => Memory::Store,
            _ => Memory::Atomic,
        },
        Format::Flat
        | Format::Global
        | Format::Scratch
        | Format::Mubuf
        | Format::Mtbuf
        | Format::Smem => match name {
            name if name.contains("atomic") => Memory::Atomic,
            name if name.contains("load") => Memory::Load,
            name if name.contains("store") => Memory::Store,
            "s_memtime" | "s_memrealtime" => Memory::Exchange,
            _ => Memory::Fence,
        },
        _ if name.starts_with("s_sendmsg_rtn") => Memory::Exchange,
        _ => Memory::None,
    }
}

fn counter(name: &str, format: Format, memory: Memory) -> Counter {
    match (format, memory) {
        (_, Memory::None | Memory::Fence) => Counter::None,
        (Format::Ds, _) => Counter::Lds,
        (Format::Smem, _) => Counter::Scalar,
        (Format::Flat, _) => Counter::Both,
        (Format::Global | Format::Scratch | Format::Mubuf | Format::Mtbuf, _) => Counter::Vector,
        _ if name.starts_with("s_sendmsg") => Counter::Scalar,
        _ => Counter::None,
    }
}

/// Bytes that an access moves, from the type in its name.
fn bytes(name: &str) -> u32 {
    let words = name.rsplit('_');
    let mut sized = words.filter_map(|word| {
        Some(match word {
            "b8" | "u8" | "i8" | "ubyte" | "sbyte" => 1,
            "b16" | "u16" | "i16" | "ushort" | "sshort" => 2,
            "b32" | "u32" | "i32" | "f32" | "dword" | "f16" | "bf16" => 4,
            "b64" | "u64" | "i64" | "f64" | "dwordx2" => 8,
            "b96" => 12,
            "b128" | "dwordx4" => 16,
            "b256" => 32,
            "b512" => 64,
            _ => return None,
        })
    });
    // ds_load_u8_d16 has its size first, global_load_d16_u8 last: d16 is none.
    sized.next().unwrap_or(4)
}

/// LDS with two addresses: bytes that a unit of the offsets stands for.
fn pair(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("ds_")?;
    if !rest.contains("2addr") {
        return None;
    }
    let unit = if rest.ends_with("b64") { 8 } else { 4 };
    Some(if rest.contains("stride64") { 64 * unit } else { unit })
}

fn reads_scc(name: &str) -> bool {
    name.starts_with("s_cselect")
        || name.starts_with("s_cmov")
        || name.starts_with("s_addc")
        || name.starts_with("s_subb")
        || name.starts_with("s_cbranch_scc")
}

/// Reads and writes all lanes of its registers, or lanes that it names.
fn ignores_exec(name: &str) -> bool {
    ["v_readlane", "v_writelane", "v_mfma", "v_smfmac", "v_wmma", "v_permlane64"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::super::{Pools, decode};
    use super::*;
    use crate::Target;

    fn of(target: Target, wave_size: u32, words: &[u32]) -> Effects {
        decode(target, wave_size, words, &mut Pools::default()).unwrap().effects(wave_size)
    }

    #[test]
    fn a_store_reads_its_address_first() {
        // global_store_dwordx2 v2, v[4:5], s[6:7] offset:16
        let e = of(Target::Gfx90a, 64, &[0xdc74_8010, 0x0006_0402]);
        assert_eq!(e.reads(), [Span::vector(2, 1), Span::scalar(6, 2), Span::vector(4, 2)]);
        assert_eq!((e.addresses, e.writes(), e.memory, e.bytes), (2, &[][..], Memory::Store, 8));
    }

    #[test]
    fn buffer_stores_read_what_loads_write() {
        // buffer_load_dword v1, v2, s[4:7], s8 offen; buffer_store_dword the same
        let load = of(Target::Gfx90a, 64, &[0xe050_1000, 0x0801_0102]);
        let address = [Span::vector(2, 1), Span::scalar(4, 4), Span::scalar(8, 1)];
        assert_eq!(load.reads(), address);
        assert_eq!(load.writes(), [Span::vector(1, 1)]);
        let store = of(Target::Gfx90a, 64, &[0xe070_1000, 0x0801_0102]);
        assert_eq!((store.reads()[3], store.writes()), (Span::vector(1, 1), &[][..]));
    }

    #[test]
    fn compares_write_as_many_mask_registers_as_the_wave_needs() {
        // v_cmp_lt_i32 vcc, v1, v2
        let word = 0x7c82_0501;
        let mask = |target, size| of(target, size, &[word]).writes().to_vec();
        assert_eq!(mask(Target::Gfx90a, 64), [Span::scalar(sgpr::VCC_LO, 2)]);
        assert_eq!(mask(Target::Gfx1100, 32), [Span::scalar(sgpr::VCC_LO, 1)]);
    }

    #[test]
    fn sizes_come_from_names() {
        assert_eq!(bytes("global_load_d16_hi_u8"), 1);
        assert_eq!(bytes("ds_load_u16_d16_hi"), 2);
        assert_eq!(bytes("ds_cmpstore_rtn_f64"), 8);
        assert_eq!(pair("ds_load_2addr_stride64_b64"), Some(512));
        assert_eq!(pair("ds_store_2addr_b32"), Some(4));
    }
}
