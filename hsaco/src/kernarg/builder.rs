//! Packing arguments one by one.

use super::{ArgLayout, HiddenValues};
use crate::error::ArgumentError;

/// Collects the arguments of one launch; each is checked against the kernel's.
#[derive(Clone, Debug)]
pub struct KernargBuilder<'layout> {
    layout: &'layout ArgLayout,
    bytes: Vec<u8>,
    given: usize,
}

impl<'layout> KernargBuilder<'layout> {
    pub(super) fn new(layout: &'layout ArgLayout) -> Self {
        Self { layout, bytes: Vec::new(), given: 0 }
    }

    /// The next explicit argument, as its bytes in memory (`value.to_le_bytes()`).
    ///
    /// # Errors
    /// [`ArgumentError::Size`] if the kernel takes another size here, [`ArgumentError::Count`] if
    /// it takes no more arguments. The builder is unchanged then.
    pub fn push(&mut self, value: &[u8]) -> Result<&mut Self, ArgumentError> {
        let explicit = self.layout.explicit();
        let Some(argument) = explicit.get(self.given) else {
            return Err(ArgumentError::Count { given: self.given + 1, expected: explicit.len() });
        };
        let size_error =
            ArgumentError::Size { index: self.given, given: value.len(), expected: argument.size };
        if u32::try_from(value.len()) != Ok(argument.size) {
            return Err(size_error);
        }
        let start = usize::try_from(argument.offset).map_err(|_| size_error)?;
        let end = start + value.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        if let Some(place) = self.bytes.get_mut(start..end) {
            place.copy_from_slice(value);
        }
        self.given += 1;
        Ok(self)
    }

    /// The whole segment, hidden arguments included.
    ///
    /// # Errors
    /// [`ArgumentError::Count`] if arguments are missing.
    pub fn finish(&self, hidden: &HiddenValues) -> Result<Vec<u8>, ArgumentError> {
        let expected = self.layout.explicit().len();
        if self.given != expected {
            return Err(ArgumentError::Count { given: self.given, expected });
        }
        let template = self.layout.template(&hidden.services)?;
        let mut segment = vec![0; template.segment_bytes()];
        template.write_packed(&mut segment, &self.bytes, &hidden.geometry)?;
        Ok(segment)
    }
}
