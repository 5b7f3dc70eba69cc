//! A MessagePack cursor: `rmp` names the markers and reads integers, this file keeps the bounds.

use rmp::Marker;
use rmp::decode::{Bytes, RmpRead};

use crate::error::MetadataProblem as Problem;

type Result<T> = core::result::Result<T, Problem>;

pub(super) struct Reader<'data> {
    all: &'data [u8],
    rest: Bytes<'data>,
    /// Name of the kernel being read, for messages.
    pub kernel: Option<&'data str>,
}

/// Turns an absent value into an error that names its key.
pub(super) trait Fail<T> {
    fn or_missing(self, key: &'static str) -> Result<T>;
}

impl<T> Fail<T> for Option<T> {
    fn or_missing(self, key: &'static str) -> Result<T> {
        self.ok_or(Problem::Missing { key })
    }
}

impl<'data> Reader<'data> {
    pub fn new(all: &'data [u8]) -> Self {
        Self { all, rest: Bytes::new(all), kernel: None }
    }

    pub fn remaining(&self) -> usize {
        self.rest.remaining_slice().len()
    }

    pub fn offset(&self) -> usize {
        self.all.len() - self.remaining()
    }

    fn marker(&mut self) -> Result<Marker> {
        let byte = self.rest.read_u8().map_err(|_| Problem::Truncated)?;
        match Marker::from_u8(byte) {
            Marker::Reserved => Err(Problem::Reserved),
            marker => Ok(marker),
        }
    }

    /// A big-endian unsigned number of `bytes` bytes (1, 2, 4 or 8).
    fn unsigned(&mut self, bytes: usize) -> Result<u64> {
        self.take(bytes).map(|taken| taken.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)))
    }

    fn length(&mut self, bytes: usize) -> Result<usize> {
        usize::try_from(self.unsigned(bytes)?).map_err(|_| Problem::Truncated)
    }

    fn take(&mut self, bytes: usize) -> Result<&'data [u8]> {
        let (taken, rest) =
            self.rest.remaining_slice().split_at_checked(bytes).ok_or(Problem::Truncated)?;
        self.rest = Bytes::new(rest);
        Ok(taken)
    }

    /// Number of entries of a map. It is not bounded by the input: reading them is.
    pub fn map(&mut self, key: &'static str) -> Result<usize> {
        match self.marker()? {
            Marker::FixMap(entries) => Ok(entries.into()),
            Marker::Map16 => self.length(2),
            Marker::Map32 => self.length(4),
            _ => Err(Problem::Type { key, expected: "a map" }),
        }
    }

    fn array(&mut self, key: &'static str) -> Result<usize> {
        match self.marker()? {
            Marker::FixArray(entries) => Ok(entries.into()),
            Marker::Array16 => self.length(2),
            Marker::Array32 => self.length(4),
            _ => Err(Problem::Type { key, expected: "an array" }),
        }
    }

    /// An array of whatever `item` reads. Memory grows with what was read, not with the count.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let entries = self.array(key)?;
        let mut list = Vec::new();
        for _ in 0..entries {
            list.push(item(self)?);
        }
        Ok(list)
    }

    pub fn key(&mut self) -> Result<&'data str> {
        self.string("a key")
    }

    pub fn string(&mut self, key: &'static str) -> Result<&'data str> {
        let length = match self.marker()? {
            Marker::FixStr(length) => length.into(),
            Marker::Str8 => self.length(1)?,
            Marker::Str16 => self.length(2)?,
            Marker::Str32 => self.length(4)?,
            _ => return Err(Problem::Type { key, expected: "a string" }),
        };
        core::str::from_utf8(self.take(length)?).map_err(|_| Problem::NotUtf8)
    }

    pub fn boolean(&mut self, key: &'static str) -> Result<bool> {
        match self.marker()? {
            Marker::True => Ok(true),
            Marker::False => Ok(false),
            _ => Err(Problem::Type { key, expected: "a boolean" }),
        }
    }

    /// A number that must fit in 32 bits, in any MessagePack width, signed or not.
    pub fn number(&mut self, key: &'static str) -> Result<u32> {
        let signed = |value: u64, bits: u32| {
            // Sign extension of the low `bits` bits.
            i128::from(value) - if value >> (bits - 1) & 1 == 1 { 1 << bits } else { 0 }
        };
        let value = match self.marker()? {
            Marker::FixPos(value) => i128::from(value),
            Marker::FixNeg(value) => i128::from(value),
            Marker::U8 => self.unsigned(1)?.into(),
            Marker::U16 => self.unsigned(2)?.into(),
            Marker::U32 => self.unsigned(4)?.into(),
            Marker::U64 => self.unsigned(8)?.into(),
            Marker::I8 => signed(self.unsigned(1)?, 8),
            Marker::I16 => signed(self.unsigned(2)?, 16),
            Marker::I32 => signed(self.unsigned(4)?, 32),
            Marker::I64 => signed(self.unsigned(8)?, 64),
            _ => return Err(Problem::Type { key, expected: "an integer" }),
        };
        u32::try_from(value).map_err(|_| Problem::Range { key, value })
    }

    /// An array of exactly `N` numbers.
    pub fn numbers<const N: usize>(&mut self, key: &'static str) -> Result<[u32; N]> {
        if self.array(key)? != N {
            let expected = if N == 2 { "an array of 2" } else { "an array of 3" };
            return Err(Problem::Type { key, expected });
        }
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number(key)?;
        }
        Ok(numbers)
    }

    /// Stores `value` unless the key was given before.
    pub fn once<T>(&mut self, key: &'static str, slot: &mut Option<T>, value: T) -> Result<()> {
        match slot.replace(value) {
            Some(_) => Err(Problem::Duplicate { key }),
            None => Ok(()),
        }
    }

    /// Passes over one value of any type and depth, without recursion.
    pub fn skip(&mut self) -> Result<()> {
        let mut values = 1_u64;
        while values > 0 {
            values -= 1;
            let (bytes, inner) = match self.marker()? {
                Marker::FixMap(entries) => (0, 2 * u64::from(entries)),
                Marker::Map16 => (0, 2 * self.unsigned(2)?),
                Marker::Map32 => (0, 2 * self.unsigned(4)?),
                Marker::FixArray(entries) => (0, entries.into()),
                Marker::Array16 => (0, self.unsigned(2)?),
                Marker::Array32 => (0, self.unsigned(4)?),
                Marker::FixStr(length) => (length.into(), 0),
                Marker::Str8 | Marker::Bin8 => (self.length(1)?, 0),
                Marker::Str16 | Marker::Bin16 => (self.length(2)?, 0),
                Marker::Str32 | Marker::Bin32 => (self.length(4)?, 0),
                Marker::U8 | Marker::I8 => (1, 0),
                Marker::U16 | Marker::I16 | Marker::FixExt1 => (2, 0),
                Marker::FixExt2 => (3, 0),
                Marker::U32 | Marker::I32 | Marker::F32 => (4, 0),
                Marker::FixExt4 => (5, 0),
                Marker::U64 | Marker::I64 | Marker::F64 => (8, 0),
                Marker::FixExt8 => (9, 0),
                Marker::FixExt16 => (17, 0),
                Marker::Ext8 => (self.length(1)?.saturating_add(1), 0),
                Marker::Ext16 => (self.length(2)?.saturating_add(1), 0),
                Marker::Ext32 => (self.length(4)?.saturating_add(1), 0),
                Marker::FixPos(_) | Marker::FixNeg(_) => (0, 0),
                Marker::Null | Marker::True | Marker::False | Marker::Reserved => (0, 0),
            };
            self.take(bytes)?;
            // Every value takes a byte at least, so more values than bytes can only end truncated.
            values = values.saturating_add(inner);
            if values > self.remaining() as u64 {
                return Err(Problem::Truncated);
            }
        }
        Ok(())
    }
}
