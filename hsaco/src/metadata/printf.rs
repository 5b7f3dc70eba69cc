//! Formats of buffered printf: what a kernel writes is a number that stands for one of these.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::error::{MetadataProblem as Problem, PrintfProblem};

/// How a record in the printf buffer names its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrintfId {
    /// OpenCL: a number of this object, from 1.
    Ordinal(u32),
    /// HIP: a hash of the format, the same in every object.
    Hash(u64),
}

/// A string of `amdhsa.printf`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintfFormat<'data> {
    /// What records call it.
    pub id: PrintfId,
    /// Bytes that each argument takes in a record. Empty with [`PrintfId::Hash`], whose records
    /// describe themselves.
    pub argument_bytes: Vec<u32>,
    /// The format as printf takes it.
    pub format: Cow<'data, str>,
}

impl<'data> PrintfFormat<'data> {
    /// Reads `ID:N:S1:...:FORMAT`, or `0:0:HASH,FORMAT`.
    ///
    /// There may be fewer sizes than `N` arguments: the compiler names only those that the format
    /// has a conversion for. A colon of the format itself is escaped.
    ///
    /// # Errors
    /// [`PrintfProblem`].
    pub fn parse(text: &'data str) -> Result<Self, PrintfProblem> {
        let (id, rest) = number(text, "the id")?;
        let (count, rest) = number(rest, "the number of arguments")?;
        if id == 0 {
            if count != 0 {
                return Err(PrintfProblem::Ordinal);
            }
            let (hash, format) = rest.split_once(',').ok_or(PrintfProblem::Hash)?;
            let is_hexadecimal = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            let hash = u64::from_str_radix(hash, 16).ok().filter(|_| is_hexadecimal);
            let id = PrintfId::Hash(hash.ok_or(PrintfProblem::Hash)?);
            // This form is written as it is in the source.
            return Ok(Self { id, argument_bytes: Vec::new(), format: Cow::Borrowed(format) });
        }
        let (sizes, format) = rest.rsplit_once(':').map_or((None, rest), |(s, f)| (Some(s), f));
        let sizes = sizes.into_iter().flat_map(|sizes| sizes.split(':'));
        let argument_bytes: Vec<u32> =
            sizes.map(|size| decimal(size, "the size of an argument")).collect::<Result<_, _>>()?;
        if argument_bytes.len() as u64 > count.into() {
            return Err(PrintfProblem::Sizes { sizes: argument_bytes.len(), arguments: count });
        }
        Ok(Self { id: PrintfId::Ordinal(id), argument_bytes, format: unescape(format) })
    }

    /// All strings of an object, with no id given to two different formats.
    pub(super) fn parse_all(strings: &[&'data str]) -> Result<Vec<Self>, Problem> {
        let mut seen = BTreeMap::new();
        let mut formats = Vec::new();
        for (index, text) in strings.iter().enumerate() {
            let error = |problem| Problem::Printf { index, problem };
            let format = Self::parse(text).map_err(error)?;
            match seen.insert(format.id, *text) {
                Some(earlier) if earlier != *text => return Err(error(PrintfProblem::Duplicate)),
                // The same format in two translation units.
                Some(_) => {}
                None => formats.push(format),
            }
        }
        Ok(formats)
    }
}

fn number<'a>(text: &'a str, what: &'static str) -> Result<(u32, &'a str), PrintfProblem> {
    let (digits, rest) = text.split_once(':').ok_or(PrintfProblem::Field { what })?;
    Ok((decimal(digits, what)?, rest))
}

fn decimal(digits: &str, what: &'static str) -> Result<u32, PrintfProblem> {
    let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_decimal).ok_or(PrintfProblem::Field { what })
}

/// Undoes what the compiler's OpenCL lowering does to a format. Source: docs/ABI.md §printf formats.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        plain.push_str(before);
        let known = [
            ("a", '\x07'),
            ("b", '\x08'),
            ("f", '\x0c'),
            ("n", '\n'),
            ("r", '\r'),
            ("v", '\x0b'),
            ("72", ':'),
        ];
        let found = known
            .iter()
            .find_map(|&(name, character)| Some((character, escape.strip_prefix(name)?)));
        match found {
            Some((character, after)) => {
                plain.push(character);
                rest = after;
            }
            // A backslash of the format itself is written as it is.
            None => {
                plain.push('\\');
                rest = escape;
            }
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opencl_formats_have_their_argument_sizes_and_escapes() {
        let found = PrintfFormat::parse("2:2:4:4:a=%d b=%f\\n").unwrap();
        assert_eq!(found.id, PrintfId::Ordinal(2));
        assert_eq!(found.argument_bytes, [4, 4]);
        assert_eq!(found.format, "a=%d b=%f\n");
        let found = PrintfFormat::parse("1:0:time\\72 \\a\\b\\f\\r\\v\\\\x").unwrap();
        assert_eq!(found.format, "time: \x07\x08\x0c\r\x0b\\\\x");
    }

    #[test]
    fn opencl_formats_may_have_fewer_sizes_than_arguments() {
        // printf("%d\n", a, b): the compiler stores and names the first only.
        let found = PrintfFormat::parse("1:2:4:%d\\n").unwrap();
        assert_eq!((&found.argument_bytes[..], &*found.format), (&[4][..], "%d\n"));
    }

    #[test]
    fn hashed_formats_are_taken_as_they_are() {
        let found = PrintfFormat::parse("0:0:d8ae465ab90874ad,a:%s, %%\\n\n").unwrap();
        assert_eq!(found.id, PrintfId::Hash(0xd8ae_465a_b908_74ad));
        assert_eq!(found.format, "a:%s, %%\\n\n");
        assert_eq!(PrintfFormat::parse("0:0:1f,").unwrap().id, PrintfId::Hash(0x1f));
    }

    #[test]
    fn malformed_formats_are_refused_by_what_is_wrong() {
        let field = |what| PrintfProblem::Field { what };
        for (text, problem) in [
            ("", field("the id")),
            ("no colon", field("the id")),
            ("-1:0:x", field("the id")),
            ("+1:0:x", field("the id")),
            ("4294967296:0:x", field("the id")),
            ("1:", field("the number of arguments")),
            ("1:1:4:4:x", PrintfProblem::Sizes { sizes: 2, arguments: 1 }),
            ("1:0:time: x", field("the size of an argument")),
            ("1:1:-4:x", field("the size of an argument")),
            ("0:1:4:x", PrintfProblem::Ordinal),
            ("0:0:d8ae465ab90874ad", PrintfProblem::Hash),
            ("0:0:,x", PrintfProblem::Hash),
            ("0:0:+1f,x", PrintfProblem::Hash),
            ("0:0:10000000000000000,x", PrintfProblem::Hash),
        ] {
            assert_eq!(PrintfFormat::parse(text), Err(problem), "{text:?}");
        }
    }

    #[test]
    fn an_id_stands_for_one_format() {
        let twice = ["1:0:x", "1:0:x", "2:0:x"];
        assert_eq!(PrintfFormat::parse_all(&twice).unwrap().len(), 2);
        for other in [["1:0:x", "1:0:y"], ["0:0:1,x", "0:0:01,y"]] {
            let problem = Problem::Printf { index: 1, problem: PrintfProblem::Duplicate };
            assert_eq!(PrintfFormat::parse_all(&other), Err(problem));
        }
    }
}
