//! Vector accesses: all lanes of an instruction at once.
#![allow(unsafe_code)] // loads and stores of GPU memory go through raw host addresses
#![allow(clippy::indexing_slicing)] // lane numbers are below N, words below W
#![allow(clippy::needless_range_loop)] // lane loops index several arrays at once
#![allow(clippy::cast_possible_truncation)] // wider values are split into dwords

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{AccessError, View};
use crate::exec::MemoryFault;

/// Where the active lanes of an access go: lane `i` to `base + offset[i]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes<'a, const N: usize> {
    /// Common part, in bytes.
    pub(crate) base: u64,
    /// Part per lane, in bytes. Anything in inactive lanes.
    pub(crate) offset: &'a [u32; N],
    /// All ones per active lane, else zero.
    pub(crate) mask: &'a [u32; N],
    /// The active lanes; at least one.
    pub(crate) exec: u64,
}

/// How the addresses of the active lanes lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Every lane is active and lane `i` is `i` elements after this offset.
    Contiguous(u32),
    /// All at this offset.
    Uniform(u32),
    /// Any other way.
    Spread,
}

impl<const N: usize> Lanes<'_, N> {
    /// Smallest and largest offset of the active lanes.
    #[inline(always)]
    fn span(&self) -> (u32, u32) {
        let (mut low, mut high) = (u32::MAX, 0);
        for i in 0..N {
            low = low.min(self.offset[i] | !self.mask[i]);
            high = high.max(self.offset[i] & self.mask[i]);
        }
        (low, high)
    }

    /// How the addresses lie, for elements of `size` bytes.
    #[inline(always)]
    fn shape(&self, size: u32) -> Shape {
        let first = self.offset[self.exec.trailing_zeros() as usize % N];
        let (mut apart, mut differs) = (0, 0);
        for i in 0..N {
            let distance = self.offset[i].wrapping_sub(first);
            apart |= (distance ^ (i as u32 * size)) | !self.mask[i];
            differs |= distance & self.mask[i];
        }
        if apart == 0 && first.checked_add(N as u32 * size).is_some() {
            Shape::Contiguous(first)
        } else if differs == 0 {
            Shape::Uniform(first)
        } else {
            Shape::Spread
        }
    }

    fn address(&self, lane: usize) -> u64 {
        self.base.wrapping_add(u64::from(self.offset[lane]))
    }

    /// The active lanes, ascending.
    fn active(&self) -> impl Iterator<Item = usize> + use<N> {
        let mut rest = self.exec;
        std::iter::from_fn(move || {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (lane < N).then_some(lane)
        })
    }
}

/// A memory value of up to four bytes: what byte, short and dword loads and stores move.
pub(crate) trait Element: Copy {
    /// Size in bytes.
    const BYTES: u64;
    /// The loaded value as a dword: extended by the type's sign.
    fn widen(self) -> u32;
    /// The stored part of a dword.
    fn narrow(value: u32) -> Self;
}

macro_rules! element {
    ($($ty:ty),*) => {$(
        impl Element for $ty {
            const BYTES: u64 = size_of::<$ty>() as u64;
            #[inline(always)]
            #[allow(clippy::cast_sign_loss, clippy::cast_lossless)] // sign extension is meant
            fn widen(self) -> u32 { self as u32 }
            #[inline(always)]
            #[allow(clippy::cast_possible_wrap)] // bits are kept
            fn narrow(value: u32) -> Self { value as Self }
        }
    )*};
}
element!(u8, i8, u16, i16, u32);

impl View<'_> {
    /// Loads one element per active lane. `out` of inactive lanes is arbitrary.
    #[inline(always)]
    pub(crate) fn gather<const N: usize, T: Element>(
        &mut self,
        slot: usize,
        lanes: Lanes<'_, N>,
        out: &mut [u32; N],
    ) -> Result<(), MemoryFault> {
        match lanes.shape(T::BYTES as u32) {
            Shape::Contiguous(low) if T::BYTES == 4 => {
                let first = lanes.base.wrapping_add(u64::from(low));
                let Some(host) = self.locate(slot, first, N as u64 * 4, false) else {
                    return self.gather_each::<N, T>(slot, lanes, out);
                };
                // SAFETY: `locate` proved N dwords readable; `out` is N dwords and not GPU memory.
                unsafe {
                    std::ptr::copy_nonoverlapping(host, out.as_mut_ptr().cast::<u8>(), N * 4);
                }
                return Ok(());
            }
            Shape::Uniform(low) => {
                let first = lanes.base.wrapping_add(u64::from(low));
                let Some(host) = self.locate(slot, first, T::BYTES, false) else {
                    return self.gather_each::<N, T>(slot, lanes, out);
                };
                // SAFETY: `locate` proved the element readable.
                *out = [unsafe { host.cast::<T>().read_unaligned() }.widen(); N];
                return Ok(());
            }
            _ => {}
        }
        let (low, high) = lanes.span();
        let first = lanes.base.wrapping_add(u64::from(low));
        let Some(host) = self.locate(slot, first, u64::from(high - low) + T::BYTES, false) else {
            return self.gather_each::<N, T>(slot, lanes, out);
        };
        for i in 0..N {
            let offset = lanes.offset[i].wrapping_sub(low) & lanes.mask[i];
            let at = host.wrapping_add(offset as usize).cast::<T>();
            // SAFETY: an active lane's offset is at most `high - low`, an inactive one's is 0, so
            // the element is inside the span that `locate` proved readable.
            out[i] = unsafe { at.read_unaligned() }.widen();
        }
        Ok(())
    }

    /// Loads `W` dwords per active lane.
    #[inline(always)]
    pub(crate) fn gather_wide<const N: usize, const W: usize>(
        &mut self,
        slot: usize,
        lanes: Lanes<'_, N>,
        out: &mut [[u32; N]; W],
    ) -> Result<(), MemoryFault> {
        if let Shape::Uniform(low) = lanes.shape(4 * W as u32) {
            let first = lanes.base.wrapping_add(u64::from(low));
            let Some(host) = self.locate(slot, first, W as u64 * 4, false) else {
                return self.gather_wide_each(slot, lanes, out);
            };
            // SAFETY: `locate` proved W dwords readable.
            let words = unsafe { host.cast::<[u32; W]>().read_unaligned() };
            *out = words.map(|word| [word; N]);
            return Ok(());
        }
        let (low, high) = lanes.span();
        let first = lanes.base.wrapping_add(u64::from(low));
        let Some(host) = self.locate(slot, first, u64::from(high - low) + W as u64 * 4, false)
        else {
            return self.gather_wide_each(slot, lanes, out);
        };
        for i in 0..N {
            let offset = lanes.offset[i].wrapping_sub(low) & lanes.mask[i];
            let at = host.wrapping_add(offset as usize).cast::<[u32; W]>();
            // SAFETY: an active lane's offset is at most `high - low`, an inactive one's is 0, so
            // the W dwords are inside the span that `locate` proved readable.
            let words = unsafe { at.read_unaligned() };
            for k in 0..W {
                out[k][i] = words[k];
            }
        }
        Ok(())
    }

    /// Stores one element per active lane, in lane order.
    #[inline(always)]
    pub(crate) fn scatter<const N: usize, T: Element>(
        &mut self,
        slot: usize,
        lanes: Lanes<'_, N>,
        data: &[u32; N],
    ) -> Result<(), MemoryFault> {
        if T::BYTES == 4
            && let Shape::Contiguous(low) = lanes.shape(4)
        {
            let first = lanes.base.wrapping_add(u64::from(low));
            let Some(host) = self.locate(slot, first, N as u64 * 4, true) else {
                return self.scatter_each::<N, T>(slot, lanes, data);
            };
            // SAFETY: `locate` proved N dwords writable; `data` is N dwords and not GPU memory.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr().cast::<u8>(), host, N * 4) };
            return Ok(());
        }
        let (low, high) = lanes.span();
        let first = lanes.base.wrapping_add(u64::from(low));
        let Some(host) = self.locate(slot, first, u64::from(high - low) + T::BYTES, true) else {
            return self.scatter_each::<N, T>(slot, lanes, data);
        };
        for i in lanes.active() {
            let at = host.wrapping_add((lanes.offset[i] - low) as usize).cast::<T>();
            // SAFETY: an active lane's offset is at most `high - low`, so the element is inside
            // the span that `locate` proved writable.
            unsafe { at.write_unaligned(T::narrow(data[i])) };
        }
        Ok(())
    }

    /// Stores `W` dwords per active lane, in lane order.
    #[inline(always)]
    pub(crate) fn scatter_wide<const N: usize, const W: usize>(
        &mut self,
        slot: usize,
        lanes: Lanes<'_, N>,
        data: [&[u32; N]; W],
    ) -> Result<(), MemoryFault> {
        let (low, high) = lanes.span();
        let first = lanes.base.wrapping_add(u64::from(low));
        let Some(host) = self.locate(slot, first, u64::from(high - low) + W as u64 * 4, true)
        else {
            return self.scatter_wide_each(slot, lanes, data);
        };
        for i in lanes.active() {
            let at = host.wrapping_add((lanes.offset[i] - low) as usize).cast::<[u32; W]>();
            let words = data.map(|row| row[i]);
            // SAFETY: an active lane's offset is at most `high - low`, so the W dwords are inside
            // the span that `locate` proved writable.
            unsafe { at.write_unaligned(words) };
        }
        Ok(())
    }

    /// Lane by lane: the lanes lie in several ranges, or one faults.
    #[cold]
    #[inline(never)]
    fn gather_each<const N: usize, T: Element>(
        &mut self,
        slot: usize,
        lanes: Lanes<'_, N>,
        out: &mut [u32; N],
    ) -> Result<(), MemoryFault> {
        for i in lanes.active() {
            let at = lanes.address(i);
            if let Some(host) = self.locate(slot, at, T::BYTES, false) {
                // SAFETY: `locate` proved the element readable.
                out[i] = unsafe { host.cast::<T>().read_unaligned() }.widen();
            } else {
                let mut bytes = [0; 4];
                self.read(at, &mut bytes[..T::BYTES as usize])?;
                out[i] = T::narrow(u32::from_le_bytes(bytes)).widen();
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn gather_wide_each<const N: usize, const W: usize>(
        &mut self,
        slot: usize,
        lanes: Lanes<'_, N>,
        out: &mut [[u32; N]; W],
    ) -> Result<(), MemoryFault> {
        for i in lanes.active() {
            let at = lanes.address(i);
            for (k, row) in out.iter_mut().enumerate() {
                row[i] = self.load_dword(slot, at.wrapping_add(4 * k as u64))?;
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn scatter_each<const N: usize, T: Element>(
        &mut self,
        slot: usize,
        lanes: Lanes<'_, N>,
        data: &[u32; N],
    ) -> Result<(), MemoryFault> {
        for i in lanes.active() {
            let at = lanes.address(i);
            if let Some(host) = self.locate(slot, at, T::BYTES, true) {
                // SAFETY: `locate` proved the element writable.
                unsafe { host.cast::<T>().write_unaligned(T::narrow(data[i])) };
            } else {
                self.write(at, &data[i].to_le_bytes()[..T::BYTES as usize])?;
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn scatter_wide_each<const N: usize, const W: usize>(
        &mut self,
        slot: usize,
        lanes: Lanes<'_, N>,
        data: [&[u32; N]; W],
    ) -> Result<(), MemoryFault> {
        for i in lanes.active() {
            let at = lanes.address(i);
            for (k, row) in data.iter().enumerate() {
                self.store_dword(slot, at.wrapping_add(4 * k as u64), row[i])?;
            }
        }
        Ok(())
    }

    /// An ordinary load of a dword at any address.
    #[inline(always)]
    pub(crate) fn load_dword(&mut self, slot: usize, address: u64) -> Result<u32, MemoryFault> {
        if let Some(host) = self.locate(slot, address, 4, false) {
            // SAFETY: `locate` proved 4 readable bytes.
            return Ok(unsafe { host.cast::<u32>().read_unaligned() });
        }
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// An ordinary store of a dword at any address.
    #[inline(always)]
    pub(crate) fn store_dword(
        &mut self,
        slot: usize,
        address: u64,
        value: u32,
    ) -> Result<(), MemoryFault> {
        if let Some(host) = self.locate(slot, address, 4, true) {
            // SAFETY: `locate` proved 4 writable bytes.
            unsafe { host.cast::<u32>().write_unaligned(value) };
            return Ok(());
        }
        self.write(address, &value.to_le_bytes())
    }

    /// Loads `W` dwords for a scalar instruction.
    #[inline(always)]
    pub(crate) fn load_words<const W: usize>(
        &mut self,
        slot: usize,
        address: u64,
    ) -> Result<[u32; W], MemoryFault> {
        if let Some(host) = self.locate(slot, address, W as u64 * 4, false) {
            // SAFETY: `locate` proved W readable dwords.
            return Ok(unsafe { host.cast::<[u32; W]>().read_unaligned() });
        }
        let mut words = [0; W];
        for (k, word) in words.iter_mut().enumerate() {
            *word = self.load_dword(slot, address.wrapping_add(4 * k as u64))?;
        }
        Ok(words)
    }

    /// Atomic read-modify-write of a dword, relaxed; returns the old value.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    #[inline]
    pub(crate) fn atomic_u32(
        &mut self,
        slot: usize,
        address: u64,
        change: impl Fn(u32) -> u32,
    ) -> Result<u32, AccessError> {
        let host = self.aligned(slot, address, 4, true)?.cast::<u32>();
        // SAFETY: `aligned` proved 4 writable bytes at a multiple of 4; no reference to them exists.
        let word = unsafe { AtomicU32::from_ptr(host) };
        let (Ok(old) | Err(old)) =
            word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(change(old)));
        Ok(old)
    }

    /// Atomic addition to a dword; returns the old value.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    #[inline]
    pub(crate) fn atomic_add_u32(
        &mut self,
        slot: usize,
        address: u64,
        value: u32,
    ) -> Result<u32, AccessError> {
        let host = self.aligned(slot, address, 4, true)?.cast::<u32>();
        // SAFETY: `aligned` proved 4 writable bytes at a multiple of 4; no reference to them exists.
        let word = unsafe { AtomicU32::from_ptr(host) };
        Ok(word.fetch_add(value, Ordering::AcqRel))
    }

    /// Atomic read-modify-write of a quadword; returns the old value.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    #[inline]
    pub(crate) fn atomic_u64(
        &mut self,
        slot: usize,
        address: u64,
        change: impl Fn(u64) -> u64,
    ) -> Result<u64, AccessError> {
        let host = self.aligned(slot, address, 8, true)?.cast::<u64>();
        // SAFETY: `aligned` proved 8 writable bytes at a multiple of 8; no reference to them exists.
        let word = unsafe { AtomicU64::from_ptr(host) };
        let (Ok(old) | Err(old)) =
            word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(change(old)));
        Ok(old)
    }

    /// Loads a dword another agent may be storing: atomic if aligned.
    ///
    /// # Errors
    /// A fault.
    pub(crate) fn load_coherent_u32(
        &mut self,
        slot: usize,
        address: u64,
    ) -> Result<u32, MemoryFault> {
        match self.aligned(slot, address, 4, false) {
            Ok(host) => {
                // SAFETY: `aligned` proved 4 readable bytes at a multiple of 4; no reference to
                // them exists.
                let word = unsafe { AtomicU32::from_ptr(host.cast()) };
                Ok(word.load(Ordering::Acquire))
            }
            Err(AccessError::Misaligned { .. }) => self.load_dword(slot, address),
            Err(AccessError::Fault(fault)) => Err(fault),
        }
    }

    /// Loads a quadword another agent may be storing: atomic if aligned.
    ///
    /// # Errors
    /// A fault.
    pub(crate) fn load_coherent_u64(
        &mut self,
        slot: usize,
        address: u64,
    ) -> Result<u64, MemoryFault> {
        match self.aligned(slot, address, 8, false) {
            Ok(host) => {
                // SAFETY: `aligned` proved 8 readable bytes at a multiple of 8; no reference to
                // them exists.
                let word = unsafe { AtomicU64::from_ptr(host.cast()) };
                Ok(word.load(Ordering::Acquire))
            }
            Err(AccessError::Misaligned { .. }) => {
                let [low, high] = self.load_words(slot, address)?;
                Ok(u64::from(low) | u64::from(high) << 32)
            }
            Err(AccessError::Fault(fault)) => Err(fault),
        }
    }

    /// Stores a dword another agent may be loading: atomic if aligned.
    ///
    /// # Errors
    /// A fault.
    pub(crate) fn store_coherent_u32(
        &mut self,
        slot: usize,
        address: u64,
        value: u32,
    ) -> Result<(), MemoryFault> {
        match self.aligned(slot, address, 4, true) {
            Ok(host) => {
                // SAFETY: `aligned` proved 4 writable bytes at a multiple of 4; no reference to
                // them exists.
                let word = unsafe { AtomicU32::from_ptr(host.cast()) };
                word.store(value, Ordering::Release);
                Ok(())
            }
            Err(AccessError::Misaligned { .. }) => self.store_dword(slot, address, value),
            Err(AccessError::Fault(fault)) => Err(fault),
        }
    }

    /// Stores a quadword another agent may be loading: atomic if aligned.
    ///
    /// # Errors
    /// A fault.
    pub(crate) fn store_coherent_u64(
        &mut self,
        slot: usize,
        address: u64,
        value: u64,
    ) -> Result<(), MemoryFault> {
        match self.aligned(slot, address, 8, true) {
            Ok(host) => {
                // SAFETY: `aligned` proved 8 writable bytes at a multiple of 8; no reference to
                // them exists.
                let word = unsafe { AtomicU64::from_ptr(host.cast()) };
                word.store(value, Ordering::Release);
                Ok(())
            }
            Err(AccessError::Misaligned { .. }) => self.write(address, &value.to_le_bytes()),
            Err(AccessError::Fault(fault)) => Err(fault),
        }
    }
}
