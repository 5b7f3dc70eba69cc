//! Arguments of an OpenCL record: each of the size that the metadata names, one after another.

use crate::format::{Arguments, Fault, Lanes, Scalar, Text};

/// First dword of an empty text; a null pointer has 0 there.
///
/// docs/ABI.md §printf arguments
const EMPTY_TEXT: [u8; 4] = 0xffff_ff00_u32.to_le_bytes();

/// A cursor over them.
pub(super) struct Sized<'a> {
    rest: &'a [u8],
    sizes: std::slice::Iter<'a, u32>,
}

impl<'a> Sized<'a> {
    pub fn new(bytes: &'a [u8], sizes: &'a [u32]) -> Self {
        Self { rest: bytes, sizes: sizes.iter() }
    }

    fn argument(&mut self) -> Result<&'a [u8], Fault> {
        let size = self.sizes.next().ok_or(Fault::Missing)?;
        let size = usize::try_from(*size).unwrap_or(usize::MAX);
        let (argument, rest) = self.rest.split_at_checked(size).ok_or(Fault::Missing)?;
        self.rest = rest;
        Ok(argument)
    }

    fn scalar(&mut self) -> Result<Scalar, Fault> {
        Scalar::new(self.argument()?).ok_or(Fault::Mismatched)
    }
}

impl Arguments for Sized<'_> {
    const VECTORS: bool = true;

    fn integer(&mut self, signed: bool) -> Result<u64, Fault> {
        let scalar = self.scalar()?;
        Ok(if signed { scalar.signed() } else { scalar.unsigned() })
    }

    fn float(&mut self) -> Result<f64, Fault> {
        self.scalar()?.float().ok_or(Fault::Mismatched)
    }

    fn text(&mut self) -> Result<Text<'_>, Fault> {
        let stored = self.argument()?;
        Ok(match stored {
            [0, ..] if !stored.starts_with(&EMPTY_TEXT) => Text::Null,
            // It ends with its slot; the NUL is not stored.
            _ => Text::Bytes { bytes: crate::format::until_nul(stored), terminated: true },
        })
    }

    fn skip(&mut self) -> Result<(), Fault> {
        self.argument().map(|_| ())
    }

    fn vector(&mut self, lanes: u8) -> Result<Lanes, Fault> {
        Lanes::new(self.argument()?, lanes)
    }
}
