//! [`Changes`]: which bytes of the arguments have changed, for instances to catch up with.

/// Bytes that have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    /// Where they are among all arguments.
    pub offset: u32,
    pub bytes: u32,
    /// Where they go in an instance's memory.
    pub to: u32,
}

const _: () = assert!(size_of::<Range>() == 12);

/// The latest changes; positions count them and never wrap.
#[derive(Debug)]
pub(crate) struct Changes {
    entries: Box<[Range]>,
    head: u64,
}

impl Changes {
    /// Remembers at least the latest `count`.
    pub fn new(count: usize) -> Self {
        let count = count.next_power_of_two();
        Self { entries: vec![Range::default(); count].into_boxed_slice(), head: 0 }
    }

    /// Changes so far.
    #[inline]
    pub const fn head(&self) -> u64 {
        self.head
    }

    /// A place of the list: its length is a power of two.
    #[inline]
    fn at(&self, position: u64) -> usize {
        let mask = self.entries.len() as u64 - 1;
        usize::try_from(position & mask).unwrap_or(usize::MAX)
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, range: Range) {
        let at = self.at(self.head);
        if let Some(place) = self.entries.get_mut(at) {
            *place = range;
        }
        self.head += 1;
    }

    /// Those from a position on, or `None` when some of them are forgotten.
    #[inline]
    pub fn since(&self, position: u64) -> Option<impl Iterator<Item = Range> + '_> {
        if self.head - position > self.entries.len() as u64 {
            return None;
        }
        let range = move |position| self.entries.get(self.at(position)).copied();
        Some((position..self.head).filter_map(range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(offset: u32) -> Range {
        Range { offset, bytes: 4, to: 2 * offset }
    }

    #[test]
    fn whoever_is_not_too_far_behind_gets_each_change_once_in_order() {
        let mut changes = Changes::new(3);
        for n in 0..10 {
            assert_eq!(changes.since(u64::from(n)).unwrap().count(), 0);
            changes.push(range(n));
        }
        assert_eq!(changes.head(), 10);
        for behind in 0..=4 {
            let found: Vec<_> = changes.since(u64::from(10 - behind)).unwrap().collect();
            let expected: Vec<_> = (10 - behind..10).map(range).collect();
            assert_eq!(found, expected);
        }
        assert!(changes.since(5).is_none());
        assert!(changes.since(0).is_none());
    }
}
