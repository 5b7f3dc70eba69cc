//! FLAT, GLOBAL and SCRATCH.

use super::atomic::Atomic;
use super::context::{Context, Trouble};
use super::scratch;
use super::wave::Wave;
use crate::isa::Op;
use crate::isa::ir::{Inst, Src, SrcKind, flag};
use crate::memory::Lanes;

/// Declares `step` and `implements` from one list.
///
/// Loads and stores of dwords of global memory are code in the interpreter's loop; everything else
/// is called, and is compiled once per wave size.
macro_rules! flat_semantics {
    (
        $w:ident, $i:ident, $cx:ident;
        hot { $($h:ident => $hbody:expr,)+ }
        called { $($g:ident $f:ident $s:ident => |$seg:ident| $body:expr,)+ }
        flat_only { $($ff:ident $fs:ident => |$fseg:ident| $fbody:expr,)+ }
        atomics32 { $($ag:ident $af:ident => $kind32:ident,)+ }
        atomics64 { $($bg:ident $bf:ident => $kind64:ident,)+ }
        global { $($o:ident => $obody:expr,)+ }
    ) => {
        /// Executes a FLAT, GLOBAL or SCRATCH instruction. `None`: not one; nothing changed.
        #[inline(always)]
        pub(super) fn step<const N: usize>(
            $w: &mut Wave<N>,
            $i: &Inst,
            $cx: &mut Context<'_>,
        ) -> Option<Result<(), Trouble>> {
            match $i.op {
                $(Op::$h => Some($hbody),)+
                _ => None,
            }
        }

        /// Executes the instructions of the list that [`step`] leaves out.
        #[inline(never)]
        pub(super) fn step_called<const N: usize>(
            $w: &mut Wave<N>,
            $i: &Inst,
            $cx: &mut Context<'_>,
        ) -> Option<Result<(), Trouble>> {
            Some(match $i.op {
                $(
                    Op::$g => { let $seg = Segment::Global; $body }
                    Op::$f => { let $seg = Segment::Flat; $body }
                    Op::$s => { let $seg = Segment::Scratch; $body }
                )+
                $(
                    Op::$ff => { let $fseg = Segment::Flat; $fbody }
                    Op::$fs => { let $fseg = Segment::Scratch; $fbody }
                )+
                $(
                    Op::$ag => atomic($w, $i, $cx, Segment::Global, false, Atomic::$kind32),
                    Op::$af => atomic($w, $i, $cx, Segment::Flat, false, Atomic::$kind32),
                )+
                $(
                    Op::$bg => atomic($w, $i, $cx, Segment::Global, true, Atomic::$kind64),
                    Op::$bf => atomic($w, $i, $cx, Segment::Flat, true, Atomic::$kind64),
                )+
                $(Op::$o => $obody,)+
                _ => return None,
            })
        }

        /// Whether [`step`] or [`step_called`] has semantics for `op`.
        pub(super) const fn implements(op: Op) -> bool {
            matches!(
                op,
                $(Op::$h)|+
                $(| Op::$g | Op::$f | Op::$s)+
                $(| Op::$ff | Op::$fs)+
                $(| Op::$ag | Op::$af)+
                $(| Op::$bg | Op::$bf)+
                $(| Op::$o)+
            )
        }
    };
}

flat_semantics! { w, i, cx;
    hot {
        GlobalLoadB32 => hot_load(w, i, cx),
        GlobalLoadB64 => hot_load_wide::<N, 2>(w, i, cx),
        GlobalLoadB128 => hot_load_wide::<N, 4>(w, i, cx),
        GlobalStoreB32 => hot_store(w, i, cx),
        GlobalStoreB64 => hot_store_wide::<N, 2>(w, i, cx),
        GlobalStoreB128 => hot_store_wide::<N, 4>(w, i, cx),
    }
    called {
        GlobalLoadB96 FlatLoadB96 ScratchLoadB96 => |seg| load_words(w, i, cx, seg, 3),
        GlobalLoadU8 FlatLoadU8 ScratchLoadU8 => |seg| load(w, i, cx, seg, Part::U8),
        GlobalLoadI8 FlatLoadI8 ScratchLoadI8 => |seg| load(w, i, cx, seg, Part::I8),
        GlobalLoadU16 FlatLoadU16 ScratchLoadU16 => |seg| load(w, i, cx, seg, Part::U16),
        GlobalLoadI16 FlatLoadI16 ScratchLoadI16 => |seg| load(w, i, cx, seg, Part::I16),
        GlobalLoadD16U8 FlatLoadD16U8 ScratchLoadD16U8 => |seg| load_d16(w, i, cx, seg, Part::U8, false),
        GlobalLoadD16I8 FlatLoadD16I8 ScratchLoadD16I8 => |seg| load_d16(w, i, cx, seg, Part::I8, false),
        GlobalLoadD16B16 FlatLoadD16B16 ScratchLoadD16B16 => |seg| load_d16(w, i, cx, seg, Part::U16, false),
        GlobalLoadD16HiU8 FlatLoadD16HiU8 ScratchLoadD16HiU8 => |seg| load_d16(w, i, cx, seg, Part::U8, true),
        GlobalLoadD16HiI8 FlatLoadD16HiI8 ScratchLoadD16HiI8 => |seg| load_d16(w, i, cx, seg, Part::I8, true),
        GlobalLoadD16HiB16 FlatLoadD16HiB16 ScratchLoadD16HiB16 => |seg| load_d16(w, i, cx, seg, Part::U16, true),
        GlobalStoreB96 FlatStoreB96 ScratchStoreB96 => |seg| store_words(w, i, cx, seg, 3),
        GlobalStoreB8 FlatStoreB8 ScratchStoreB8 => |seg| store(w, i, cx, seg, Part::U8, 0),
        GlobalStoreB16 FlatStoreB16 ScratchStoreB16 => |seg| store(w, i, cx, seg, Part::U16, 0),
        GlobalStoreD16HiB8 FlatStoreD16HiB8 ScratchStoreD16HiB8 => |seg| store(w, i, cx, seg, Part::U8, 16),
        GlobalStoreD16HiB16 FlatStoreD16HiB16 ScratchStoreD16HiB16 => |seg| store(w, i, cx, seg, Part::U16, 16),
    }
    flat_only {
        FlatLoadB32 ScratchLoadB32 => |seg| load(w, i, cx, seg, Part::B32),
        FlatLoadB64 ScratchLoadB64 => |seg| load_words(w, i, cx, seg, 2),
        FlatLoadB128 ScratchLoadB128 => |seg| load_words(w, i, cx, seg, 4),
        FlatStoreB32 ScratchStoreB32 => |seg| store(w, i, cx, seg, Part::B32, 0),
        FlatStoreB64 ScratchStoreB64 => |seg| store_words(w, i, cx, seg, 2),
        FlatStoreB128 ScratchStoreB128 => |seg| store_words(w, i, cx, seg, 4),
    }
    atomics32 {
        GlobalAtomicSwapB32 FlatAtomicSwapB32 => Swap,
        GlobalAtomicCmpswapB32 FlatAtomicCmpswapB32 => Cmpswap,
        GlobalAtomicCmpswapF32 FlatAtomicCmpswapF32 => Fcmpswap,
        GlobalAtomicAddU32 FlatAtomicAddU32 => Add,
        GlobalAtomicSubU32 FlatAtomicSubU32 => Sub,
        GlobalAtomicMinI32 FlatAtomicMinI32 => Smin,
        GlobalAtomicMinU32 FlatAtomicMinU32 => Umin,
        GlobalAtomicMaxI32 FlatAtomicMaxI32 => Smax,
        GlobalAtomicMaxU32 FlatAtomicMaxU32 => Umax,
        GlobalAtomicAndB32 FlatAtomicAndB32 => And,
        GlobalAtomicOrB32 FlatAtomicOrB32 => Or,
        GlobalAtomicXorB32 FlatAtomicXorB32 => Xor,
        GlobalAtomicIncU32 FlatAtomicIncU32 => Inc,
        GlobalAtomicDecU32 FlatAtomicDecU32 => Dec,
        GlobalAtomicAddF32 FlatAtomicAddF32 => Fadd,
        GlobalAtomicMinF32 FlatAtomicMinF32 => Fmin,
        GlobalAtomicMaxF32 FlatAtomicMaxF32 => Fmax,
        GlobalAtomicPkAddF16 FlatAtomicPkAddF16 => PkAddF16,
        GlobalAtomicPkAddBf16 FlatAtomicPkAddBf16 => PkAddBf16,
    }
    atomics64 {
        GlobalAtomicSwapB64 FlatAtomicSwapB64 => Swap,
        GlobalAtomicCmpswapB64 FlatAtomicCmpswapB64 => Cmpswap,
        GlobalAtomicAddU64 FlatAtomicAddU64 => Add,
        GlobalAtomicSubU64 FlatAtomicSubU64 => Sub,
        GlobalAtomicMinI64 FlatAtomicMinI64 => Smin,
        GlobalAtomicMinU64 FlatAtomicMinU64 => Umin,
        GlobalAtomicMaxI64 FlatAtomicMaxI64 => Smax,
        GlobalAtomicMaxU64 FlatAtomicMaxU64 => Umax,
        GlobalAtomicAndB64 FlatAtomicAndB64 => And,
        GlobalAtomicOrB64 FlatAtomicOrB64 => Or,
        GlobalAtomicXorB64 FlatAtomicXorB64 => Xor,
        GlobalAtomicIncU64 FlatAtomicIncU64 => Inc,
        GlobalAtomicDecU64 FlatAtomicDecU64 => Dec,
        GlobalAtomicAddF64 FlatAtomicAddF64 => Fadd,
        GlobalAtomicMinF64 FlatAtomicMinF64 => Fmin,
        GlobalAtomicMaxF64 FlatAtomicMaxF64 => Fmax,
    }
    global {
        GlobalAtomicCsubU32 => atomic(w, i, cx, Segment::Global, false, Atomic::Csub),
        GlobalLoadAddtidB32 => load_addtid(w, i, cx),
        GlobalStoreAddtidB32 => store_addtid(w, i, cx),
    }
}

/// Address spaces an instruction may name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Segment {
    Global,
    Flat,
    Scratch,
}

/// What one lane moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    U8,
    I8,
    U16,
    I16,
    B32,
}

/// Where a group of lanes goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Global,
    Lds,
    Private,
}

/// First physical register of the data operand, AccVGPRs resolved.
#[inline(always)]
fn data_register<const N: usize>(w: &Wave<N>, i: &Inst, reg: u16) -> u16 {
    if i.flags & flag::ACC != 0 { w.physical(256 + (reg & 255)) as u16 } else { reg }
}

#[inline(always)]
fn vgpr(src: Src) -> u16 {
    match src.kind() {
        SrcKind::V(n) => n,
        _ => 0,
    }
}

/// The lanes of an access to global memory that share the high address word: almost always all.
struct Global<'a, const N: usize> {
    base: u64,
    offset: &'a [u32; N],
}

/// Resolves the addresses of a GLOBAL instruction. `None`: they have different high words.
/// EXEC is not zero.
#[inline(always)]
fn global<'a, const N: usize>(w: &'a Wave<N>, i: &Inst) -> Option<Global<'a, N>> {
    let row = usize::from(vgpr(i.src[0])) & 511;
    let imm = i64::from(i.imm) as u64;
    if i.flags & flag::SADDR != 0 {
        let SrcKind::S(saddr) = i.src[2].kind() else { return None };
        return Some(Global { base: w.s64(saddr).wrapping_add(imm), offset: &w.v[row] });
    }
    let high = &w.v[(row + 1) & 511];
    let first = high[w.exec().trailing_zeros() as usize % N];
    let mut differs = 0;
    for k in 0..N {
        differs |= (high[k] ^ first) & w.mask[k];
    }
    let base = (u64::from(first) << 32).wrapping_add(imm);
    (differs == 0).then_some(Global { base, offset: &w.v[row] })
}

/// Whether the usual path does not apply: coherent accesses, and addresses 4 GiB apart.
#[inline(always)]
fn usual<'a, const N: usize>(w: &'a Wave<N>, i: &Inst) -> Option<Global<'a, N>> {
    if i.flags & (flag::GLC | flag::LDS) != 0 { None } else { global(w, i) }
}

#[inline(always)]
fn hot_load<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let exec = w.exec();
    if exec == 0 {
        return Ok(());
    }
    let Some(Global { base, offset }) = usual(w, i) else {
        return load(w, i, cx, Segment::Global, Part::B32);
    };
    let mut out = [0; N];
    let lanes = Lanes { base, offset, mask: &w.mask, exec };
    cx.view.gather::<N, u32>(cx.slot, lanes, &mut out)?;
    let dst = data_register(w, i, i.dst);
    w.write_v(dst, &out);
    Ok(())
}

#[inline(always)]
fn hot_load_wide<const N: usize, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let exec = w.exec();
    if exec == 0 {
        return Ok(());
    }
    let Some(Global { base, offset }) = usual(w, i) else {
        return load_words(w, i, cx, Segment::Global, W);
    };
    let mut out = [[0; N]; W];
    let lanes = Lanes { base, offset, mask: &w.mask, exec };
    cx.view.gather_wide(cx.slot, lanes, &mut out)?;
    let dst = data_register(w, i, i.dst);
    for (k, row) in out.iter().enumerate() {
        w.write_v(dst.wrapping_add(k as u16), row);
    }
    Ok(())
}

#[inline(always)]
fn hot_store<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let exec = w.exec();
    if exec == 0 {
        return Ok(());
    }
    let Some(Global { base, offset }) = usual(w, i) else {
        return store(w, i, cx, Segment::Global, Part::B32, 0);
    };
    let row = usize::from(data_register(w, i, vgpr(i.src[1]))) & 511;
    let lanes = Lanes { base, offset, mask: &w.mask, exec };
    Ok(cx.view.scatter::<N, u32>(cx.slot, lanes, &w.v[row])?)
}

#[inline(always)]
fn hot_store_wide<const N: usize, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let exec = w.exec();
    if exec == 0 {
        return Ok(());
    }
    let Some(Global { base, offset }) = usual(w, i) else {
        return store_words(w, i, cx, Segment::Global, W);
    };
    let first = usize::from(data_register(w, i, vgpr(i.src[1])));
    let mut data = [&w.v[0]; W];
    for (k, row) in data.iter_mut().enumerate() {
        *row = &w.v[(first + k) & 511];
    }
    let lanes = Lanes { base, offset, mask: &w.mask, exec };
    Ok(cx.view.scatter_wide(cx.slot, lanes, data)?)
}

/// A group of lanes that share an address space and, in global memory, the high address word.
struct Batch<const N: usize> {
    space: Space,
    base: u64,
    offset: [u32; N],
    mask: [u32; N],
    exec: u64,
}

impl<const N: usize> Batch<N> {
    fn lanes(&self) -> Lanes<'_, N> {
        Lanes { base: self.base, offset: &self.offset, mask: &self.mask, exec: self.exec }
    }

    fn active(&self) -> impl Iterator<Item = usize> + use<N> {
        let exec = self.exec;
        (0..N).filter(move |&lane| exec >> lane & 1 != 0)
    }

    fn address(&self, lane: usize) -> u64 {
        self.base.wrapping_add(u64::from(self.offset[lane]))
    }
}

/// Groups of the lanes in `rest` (not empty), one per call: `rest` loses the lanes of the result.
fn next_batch<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &Context<'_>,
    segment: Segment,
    rest: &mut u64,
) -> Result<Batch<N>, Trouble> {
    let row = usize::from(vgpr(i.src[0])) & 511;
    let imm = i64::from(i.imm) as u64;
    let mut batch =
        Batch { space: Space::Global, base: 0, offset: w.v[row], mask: w.mask, exec: *rest };
    if segment == Segment::Scratch {
        let saddr =
            if i.flags & flag::SADDR != 0 { w.s_src32(i.src[2], &cx.cache.code) } else { 0 };
        let common = saddr.wrapping_add(i.imm as u32);
        for k in 0..N {
            let vaddr = if i.flags & flag::VADDR != 0 { batch.offset[k] } else { 0 };
            batch.offset[k] = vaddr.wrapping_add(common);
        }
        batch.space = Space::Private;
        *rest = 0;
        return Ok(batch);
    }
    if segment == Segment::Global && i.flags & flag::SADDR != 0 {
        let SrcKind::S(saddr) = i.src[2].kind() else { return Err(Trouble::Illegal) };
        batch.base = w.s64(saddr).wrapping_add(imm);
        *rest = 0;
        return Ok(batch);
    }
    let high = &w.v[(row + 1) & 511];
    let first = high[rest.trailing_zeros() as usize % N];
    batch.exec = 0;
    for k in 0..N {
        let member = *rest >> k & 1 != 0 && high[k] == first;
        batch.mask[k] = if member { !0 } else { 0 };
        batch.exec |= u64::from(member) << k;
    }
    *rest &= !batch.exec;
    let base = u64::from(first) << 32;
    let apertures = &cx.env.apertures;
    batch.space = match base {
        base if segment == Segment::Flat && base == apertures.lds_base => Space::Lds,
        base if segment == Segment::Flat && base == apertures.scratch_base => Space::Private,
        _ => Space::Global,
    };
    if batch.space == Space::Global {
        batch.base = base.wrapping_add(imm);
    } else {
        for offset in &mut batch.offset {
            *offset = offset.wrapping_add(imm as u32);
        }
    }
    Ok(batch)
}

/// Loads one element per lane of a batch; other lanes of `out` stay.
fn fetch<const N: usize>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    batch: &Batch<N>,
    part: Part,
    coherent: bool,
    out: &mut [u32; N],
) -> Result<(), Trouble> {
    let mut got = [0; N];
    match batch.space {
        Space::Global if coherent && part == Part::B32 => {
            for lane in batch.active() {
                got[lane] = cx.view.load_coherent_u32(cx.slot, batch.address(lane))?;
            }
        }
        Space::Global => match part {
            Part::U8 => cx.view.gather::<N, u8>(cx.slot, batch.lanes(), &mut got)?,
            Part::I8 => cx.view.gather::<N, i8>(cx.slot, batch.lanes(), &mut got)?,
            Part::U16 => cx.view.gather::<N, u16>(cx.slot, batch.lanes(), &mut got)?,
            Part::I16 => cx.view.gather::<N, i16>(cx.slot, batch.lanes(), &mut got)?,
            Part::B32 => cx.view.gather::<N, u32>(cx.slot, batch.lanes(), &mut got)?,
        },
        Space::Lds => {
            for lane in batch.active() {
                let offset = batch.offset[lane];
                got[lane] = match part {
                    Part::U8 => u32::from(cx.lds.read::<1>(offset)[0]),
                    Part::I8 => i8::from_le_bytes(cx.lds.read(offset)) as u32,
                    Part::U16 => u32::from(u16::from_le_bytes(cx.lds.read(offset))),
                    Part::I16 => i16::from_le_bytes(cx.lds.read(offset)) as u32,
                    Part::B32 => cx.lds.read_u32(offset),
                };
            }
        }
        Space::Private => scratch::load(w, cx, batch.lanes(), part, &mut got)?,
    }
    for k in 0..N {
        out[k] = got[k] & batch.mask[k] | out[k] & !batch.mask[k];
    }
    Ok(())
}

/// Stores one element per lane of a batch, in lane order.
fn put<const N: usize>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    batch: &Batch<N>,
    part: Part,
    coherent: bool,
    data: &[u32; N],
) -> Result<(), Trouble> {
    match batch.space {
        Space::Global if coherent && part == Part::B32 => {
            for lane in batch.active() {
                cx.view.store_coherent_u32(cx.slot, batch.address(lane), data[lane])?;
            }
        }
        Space::Global => match part {
            Part::U8 | Part::I8 => cx.view.scatter::<N, u8>(cx.slot, batch.lanes(), data)?,
            Part::U16 | Part::I16 => cx.view.scatter::<N, u16>(cx.slot, batch.lanes(), data)?,
            Part::B32 => cx.view.scatter::<N, u32>(cx.slot, batch.lanes(), data)?,
        },
        Space::Lds => {
            for lane in batch.active() {
                let (offset, value) = (batch.offset[lane], data[lane]);
                match part {
                    Part::U8 | Part::I8 => cx.lds.write(offset, [value as u8]),
                    Part::U16 | Part::I16 => cx.lds.write(offset, (value as u16).to_le_bytes()),
                    Part::B32 => cx.lds.write_u32(offset, value),
                }
            }
        }
        Space::Private => scratch::store(w, cx, batch.lanes(), part, data)?,
    }
    Ok(())
}

#[inline(never)]
fn load<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    part: Part,
) -> Result<(), Trouble> {
    if i.flags & flag::LDS != 0 {
        // Loads to LDS have no semantics here.
        return Err(Trouble::Illegal);
    }
    let coherent = i.flags & flag::GLC != 0;
    let mut out = [0; N];
    let mut rest = w.exec();
    while rest != 0 {
        let batch = next_batch(w, i, cx, segment, &mut rest)?;
        fetch(w, cx, &batch, part, coherent, &mut out)?;
    }
    let dst = data_register(w, i, i.dst);
    w.write_v(dst, &out);
    Ok(())
}

/// Loads into one half of the register and keeps the other.
#[inline(never)]
fn load_d16<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    part: Part,
    high: bool,
) -> Result<(), Trouble> {
    let dst = data_register(w, i, i.dst);
    let old = w.v[usize::from(dst) & 511];
    let mut out = [0; N];
    let mut rest = w.exec();
    while rest != 0 {
        let batch = next_batch(w, i, cx, segment, &mut rest)?;
        fetch(w, cx, &batch, part, false, &mut out)?;
    }
    for k in 0..N {
        out[k] = if high {
            old[k] & 0xffff | out[k] << 16
        } else {
            old[k] & 0xffff_0000 | out[k] & 0xffff
        };
    }
    w.write_v(dst, &out);
    Ok(())
}

/// Two to four dwords per lane.
#[inline(never)]
fn load_words<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    words: usize,
) -> Result<(), Trouble> {
    let coherent = i.flags & flag::GLC != 0;
    let mut out = [[0; N]; 4];
    let mut rest = w.exec();
    while rest != 0 {
        let mut batch = next_batch(w, i, cx, segment, &mut rest)?;
        if batch.space == Space::Global && words != 3 {
            // Pairs are read as a whole: another agent may be writing them.
            for (pair, rows) in out.chunks_exact_mut(2).enumerate().take(words / 2) {
                for lane in batch.active() {
                    let at = batch.address(lane).wrapping_add(8 * pair as u64);
                    let value = if coherent {
                        cx.view.load_coherent_u64(cx.slot, at)?
                    } else {
                        let [low, high] = cx.view.load_words(cx.slot, at)?;
                        u64::from(low) | u64::from(high) << 32
                    };
                    if let [low, high] = rows {
                        low[lane] = value as u32;
                        high[lane] = (value >> 32) as u32;
                    }
                }
            }
            continue;
        }
        for row in out.iter_mut().take(words) {
            fetch(w, cx, &batch, Part::B32, coherent, row)?;
            advance(&mut batch);
        }
    }
    let dst = data_register(w, i, i.dst);
    for (k, row) in out.iter().enumerate().take(words) {
        w.write_v(dst.wrapping_add(k as u16), row);
    }
    Ok(())
}

/// Moves a batch to the next dword of each lane.
fn advance<const N: usize>(batch: &mut Batch<N>) {
    if batch.space == Space::Global {
        batch.base = batch.base.wrapping_add(4);
    } else {
        for offset in &mut batch.offset {
            *offset = offset.wrapping_add(4);
        }
    }
}

#[inline(never)]
fn store<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    part: Part,
    shift: u32,
) -> Result<(), Trouble> {
    let row = usize::from(data_register(w, i, vgpr(i.src[1]))) & 511;
    let coherent = i.flags & flag::GLC != 0;
    let data = w.v[row].map(|value| value >> shift);
    let mut rest = w.exec();
    while rest != 0 {
        let batch = next_batch(w, i, cx, segment, &mut rest)?;
        put(w, cx, &batch, part, coherent, &data)?;
    }
    Ok(())
}

/// Two to four dwords per lane.
#[inline(never)]
fn store_words<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    words: usize,
) -> Result<(), Trouble> {
    let first = usize::from(data_register(w, i, vgpr(i.src[1])));
    let coherent = i.flags & flag::GLC != 0;
    let mut rest = w.exec();
    while rest != 0 {
        let mut batch = next_batch(w, i, cx, segment, &mut rest)?;
        if batch.space == Space::Global && words != 3 {
            for pair in 0..words / 2 {
                let (low, high) =
                    (&w.v[(first + 2 * pair) & 511], &w.v[(first + 2 * pair + 1) & 511]);
                for lane in batch.active() {
                    let at = batch.address(lane).wrapping_add(8 * pair as u64);
                    let value = u64::from(low[lane]) | u64::from(high[lane]) << 32;
                    cx.view.store_coherent_u64(cx.slot, at, value)?;
                }
            }
            continue;
        }
        for k in 0..words {
            put(w, cx, &batch, Part::B32, coherent, &w.v[(first + k) & 511])?;
            advance(&mut batch);
        }
    }
    Ok(())
}

/// An atomic operation: lane by lane, ascending.
#[inline(never)]
fn atomic<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    wide: bool,
    kind: Atomic,
) -> Result<(), Trouble> {
    let first = usize::from(data_register(w, i, vgpr(i.src[1])));
    let words = if wide { 2 } else { 1 };
    let mut old = [[0; N]; 2];
    let mut rest = w.exec();
    while rest != 0 {
        let batch = next_batch(w, i, cx, segment, &mut rest)?;
        for lane in batch.active() {
            let data = operand(w, first, lane, wide);
            let second = if kind.has_second() { operand(w, first + words, lane, wide) } else { 0 };
            let before = match batch.space {
                Space::Lds => lds_atomic(cx, batch.offset[lane], wide, kind, data, second)?,
                Space::Global => memory_atomic(cx, batch.address(lane), wide, kind, data, second)?,
                Space::Private => {
                    let at = scratch::address(w, cx, batch.offset[lane], lane, 4 * words as u32)?;
                    memory_atomic(cx, at, wide, kind, data, second)?
                }
            };
            old[0][lane] = before as u32;
            old[1][lane] = (before >> 32) as u32;
        }
    }
    if i.flags & flag::GLC != 0 {
        let dst = data_register(w, i, i.dst);
        w.write_v(dst, &old[0]);
        if wide {
            w.write_v(dst.wrapping_add(1), &old[1]);
        }
    }
    Ok(())
}

/// A lane's data operand of one or two dwords.
pub(super) fn operand<const N: usize>(w: &Wave<N>, first: usize, lane: usize, wide: bool) -> u64 {
    let low = u64::from(w.v[first & 511][lane]);
    if wide { low | u64::from(w.v[(first + 1) & 511][lane]) << 32 } else { low }
}

/// An atomic operation on memory; returns the old value.
pub(super) fn memory_atomic(
    cx: &mut Context<'_>,
    address: u64,
    wide: bool,
    kind: Atomic,
    data: u64,
    second: u64,
) -> Result<u64, Trouble> {
    let slot = cx.slot;
    if wide {
        return Ok(cx.view.atomic_u64(slot, address, |old| kind.apply64(old, data, second))?);
    }
    let (data, second) = (data as u32, second as u32);
    let old = match kind {
        Atomic::Add => cx.view.atomic_add_u32(slot, address, data)?,
        _ => cx.view.atomic_u32(slot, address, |old| kind.apply32(old, data, second))?,
    };
    Ok(u64::from(old))
}

/// An atomic operation on LDS; returns the old value. Misaligned: a violation, as in memory.
pub(super) fn lds_atomic(
    cx: &mut Context<'_>,
    offset: u32,
    wide: bool,
    kind: Atomic,
    data: u64,
    second: u64,
) -> Result<u64, Trouble> {
    let bytes = if wide { 8 } else { 4 };
    if !offset.is_multiple_of(bytes) {
        return Err(Trouble::Violation(cx.env.apertures.lds_base.wrapping_add(u64::from(offset))));
    }
    if wide {
        let old = cx.lds.read_u64(offset);
        cx.lds.write_u64(offset, kind.apply64(old, data, second));
        return Ok(old);
    }
    let old = cx.lds.read_u32(offset);
    cx.lds.write_u32(offset, kind.apply32(old, data as u32, second as u32));
    Ok(u64::from(old))
}

/// Address `saddr + imm + 4 * lane`.
#[inline(never)]
fn load_addtid<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let mut out = [0; N];
    for lane in (0..N).filter(|&lane| w.mask[lane] != 0) {
        out[lane] = cx.view.load_dword(cx.slot, addtid(w, i, lane)?)?;
    }
    w.write_v(i.dst, &out);
    Ok(())
}

#[inline(never)]
fn store_addtid<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let row = usize::from(vgpr(i.src[1])) & 511;
    for lane in (0..N).filter(|&lane| w.mask[lane] != 0) {
        let at = addtid(w, i, lane)?;
        cx.view.store_dword(cx.slot, at, w.v[row][lane])?;
    }
    Ok(())
}

fn addtid<const N: usize>(w: &Wave<N>, i: &Inst, lane: usize) -> Result<u64, Trouble> {
    let SrcKind::S(saddr) = i.src[2].kind() else { return Err(Trouble::Illegal) };
    Ok(w.s64(saddr).wrapping_add(i64::from(i.imm) as u64).wrapping_add(4 * lane as u64))
}
