//! Finds the names in a preprocessed header: structs with their fields, enumerators, macros.

/// Names that a header declares, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Object-like macros with a body, and enumerators.
    pub(crate) constants: Vec<String>,
    /// Structs with a tag.
    pub(crate) structs: Vec<Struct>,
}

/// A struct with a tag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Struct {
    /// Its tag.
    pub(crate) tag: String,
    /// Its fields.
    pub(crate) fields: Vec<Field>,
}

/// A field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Name; a path in a nested struct without tag.
    pub(crate) path: String,
    /// Whether it is a flexible array, which has no size.
    pub(crate) flexible: bool,
}

/// The header has something that this reader does not know.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected {found:?} in {context}")]
pub(crate) struct Unexpected {
    found: String,
    context: String,
}

/// Reads the output of `cc -E -dD`, as far as it comes from a file whose name ends in one of `files`.
pub(crate) fn names(preprocessed: &str, files: &[&str]) -> Result<Names, Unexpected> {
    let mut names = Names::default();
    let mut code = String::new();
    let mut ours = false;
    for line in preprocessed.lines() {
        if let Some(marker) = line.strip_prefix("# ") {
            let file = marker.split('"').nth(1).unwrap_or_default();
            ours = files.iter().any(|name| file.ends_with(name));
        } else if !ours || line.starts_with("#undef") {
        } else if let Some(definition) = line.strip_prefix("#define ") {
            names.constants.extend(object_macro(definition));
        } else {
            code.push_str(line);
            code.push('\n');
        }
    }
    declarations(&mut Tokens::new(&code), &mut names)?;
    Ok(names)
}

/// The name of a macro that takes no argument and has a body.
fn object_macro(definition: &str) -> Option<String> {
    let (name, body) = definition.split_once(' ')?;
    (!name.contains('(') && !body.trim().is_empty()).then(|| name.to_owned())
}

struct Tokens<'a>(std::iter::Peekable<std::vec::IntoIter<&'a str>>);

impl<'a> Tokens<'a> {
    fn new(code: &'a str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = code.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let end = if word(first) {
                rest.find(|c| !word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let (token, tail) = rest.split_at(end);
            tokens.push(token);
            rest = tail.trim_start();
        }
        Self(tokens.into_iter().peekable())
    }

    fn next(&mut self) -> &'a str {
        self.0.next().unwrap_or("")
    }

    fn peek(&mut self) -> &'a str {
        self.0.peek().copied().unwrap_or("")
    }

    fn expect(&mut self, token: &str, context: &str) -> Result<(), Unexpected> {
        match self.next() {
            found if found == token => Ok(()),
            found => Err(unexpected(found, context)),
        }
    }
}

fn unexpected(found: &str, context: &str) -> Unexpected {
    Unexpected { found: found.to_owned(), context: context.to_owned() }
}

fn declarations(tokens: &mut Tokens<'_>, names: &mut Names) -> Result<(), Unexpected> {
    loop {
        match tokens.next() {
            "" => return Ok(()),
            "struct" => {
                let tag = tokens.next().to_owned();
                tokens.expect("{", &tag)?;
                let mut fields = Vec::new();
                members(tokens, "", &mut fields)?;
                tokens.expect(";", &tag)?;
                names.structs.push(Struct { tag, fields });
            }
            "enum" => {
                let tag = tokens.next().to_owned();
                tokens.expect("{", &tag)?;
                enumerators(tokens, &mut names.constants);
                tokens.expect(";", &tag)?;
            }
            found => return Err(unexpected(found, "the file")),
        }
    }
}

/// Reads members up to the closing brace.
fn members(
    tokens: &mut Tokens<'_>,
    prefix: &str,
    fields: &mut Vec<Field>,
) -> Result<(), Unexpected> {
    loop {
        match tokens.next() {
            "}" => return Ok(()),
            "struct" | "union" if tokens.peek() == "{" => {
                tokens.next();
                let mut inner = Vec::new();
                members(tokens, "", &mut inner)?;
                let name = if tokens.peek() == ";" { "" } else { tokens.next() };
                tokens.expect(";", name)?;
                let path = if name.is_empty() { String::new() } else { format!("{name}.") };
                fields.extend(
                    inner.into_iter().map(|field| Field {
                        path: format!("{prefix}{path}{}", field.path),
                        ..field
                    }),
                );
            }
            "" => return Err(unexpected("the end", "a struct")),
            first => fields.push(field(tokens, first, prefix)?),
        }
    }
}

/// Reads one declarator: words, the last of which is the name, then perhaps an array.
fn field(tokens: &mut Tokens<'_>, first: &str, prefix: &str) -> Result<Field, Unexpected> {
    let mut name = first;
    loop {
        match tokens.next() {
            ";" => return Ok(Field { path: format!("{prefix}{name}"), flexible: false }),
            "[" => {
                let flexible = tokens.peek() == "]";
                while !matches!(tokens.next(), "]" | "") {}
                tokens.expect(";", name)?;
                return Ok(Field { path: format!("{prefix}{name}"), flexible });
            }
            word if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => name = word,
            found => return Err(unexpected(found, name)),
        }
    }
}

/// Reads enumerators up to the closing brace.
fn enumerators(tokens: &mut Tokens<'_>, constants: &mut Vec<String>) {
    loop {
        match tokens.next() {
            "}" | "" => return,
            name => constants.push(name.to_owned()),
        }
        let mut depth = 0_u32;
        loop {
            match tokens.peek() {
                "," if depth == 0 => {
                    tokens.next();
                    break;
                }
                "}" | "" => break,
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            tokens.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"# 1 "/usr/include/other.h" 1
#define OTHER 1
struct other { int a; };
# 1 "/x/linux/kfd_ioctl.h" 1
#define KFD_GUARD
#define KFD_VALUE (1 << 3)
#define KFD_CALL(x) ((x) + 1)
#undef KFD_GUARD
enum e { A = (1 << 2), B, C = f(1, 2), };
struct s {
 __u64 a;
 struct t b[7];
 struct { __u32 c; } in;
 union { struct t d; __u32 e; };
 struct t f[];
};
"#;

    fn field(path: &str, flexible: bool) -> Field {
        Field { path: path.to_owned(), flexible }
    }

    #[test]
    fn only_names_of_the_wanted_file_are_found() {
        let names = names(HEADER, &["linux/kfd_ioctl.h"]).unwrap();
        assert_eq!(names.constants, ["KFD_VALUE", "A", "B", "C"]);
        assert_eq!(names.structs.len(), 1);
        let fields = ["a", "b", "in.c", "d", "e"].map(|path| field(path, false));
        assert_eq!(names.structs[0].fields[..5], fields);
        assert_eq!(names.structs[0].fields[5], field("f", true));
    }

    #[test]
    fn a_declaration_of_another_kind_is_an_error() {
        let header = "# 1 \"a.h\"\nint x;\n";
        assert_eq!(names(header, &["a.h"]), Err(unexpected("int", "the file")));
    }

    #[test]
    fn two_fields_in_one_declaration_are_an_error() {
        let header = "# 1 \"a.h\"\nstruct s { int x, y; };\n";
        assert_eq!(names(header, &["a.h"]), Err(unexpected(",", "x")));
    }

    #[test]
    fn a_truncated_header_is_an_error() {
        let header = "# 1 \"a.h\"\nstruct s { int x;";
        assert_eq!(names(header, &["a.h"]), Err(unexpected("the end", "a struct")));
    }
}
