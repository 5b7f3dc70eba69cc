//! A read-only file tree in memory, with symbolic links.

use std::collections::BTreeMap;

use kfd::sys::Errno;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A directory.
    Directory,
    /// A file with its content, or the errno of reading it.
    File(Result<Vec<u8>, Errno>),
    /// A symbolic link.
    Link(String),
}

/// The tree. Paths are absolute, without a trailing slash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree(BTreeMap<String, Entry>);

/// As many links as Linux follows (`MAXSYMLINKS`).
const MAX_LINKS: u32 = 40;

impl Tree {
    /// Adds a directory and its parents.
    pub(crate) fn directory(&mut self, path: &str) {
        let mut at = 0;
        while let Some(slash) = path.get(at + 1..).and_then(|rest| rest.find('/')) {
            at += slash + 1;
            if let Some(parent) = path.get(..at) {
                self.0.entry(parent.to_owned()).or_insert(Entry::Directory);
            }
        }
        self.0.entry(path.to_owned()).or_insert(Entry::Directory);
    }

    fn insert(&mut self, path: &str, entry: Entry) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent);
        }
        self.0.insert(path.to_owned(), entry);
    }

    /// Adds a file.
    pub(crate) fn file(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.insert(path, Entry::File(Ok(content.into())));
    }

    /// Adds a file that can be opened but not read.
    pub(crate) fn unreadable(&mut self, path: &str, errno: Errno) {
        self.insert(path, Entry::File(Err(errno)));
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.insert(path, Entry::Link(target.to_owned()));
    }

    /// Resolves every link in `path`, the last one too when `follow` is set.
    ///
    /// # Errors
    /// `ENOENT`, or `ELOOP` for too many links.
    pub(crate) fn resolve(&self, path: &str, follow: bool) -> Result<(String, &Entry), Errno> {
        let mut links = 0;
        let mut done = String::new();
        let mut todo: Vec<String> = parts(path);
        while let Some(part) = todo.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    done.truncate(done.rfind('/').unwrap_or(0));
                    continue;
                }
                _ => {}
            }
            let here = format!("{done}/{part}");
            match self.0.get(&here) {
                Some(Entry::Link(target)) if follow || !todo.is_empty() => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Errno::LOOP);
                    }
                    if target.starts_with('/') {
                        done.clear();
                    }
                    todo.extend(parts(target));
                }
                Some(_) => done = here,
                None => return Err(Errno::NOENT),
            }
        }
        match self.0.get(&done) {
            Some(entry) => Ok((done, entry)),
            None => Err(Errno::NOENT),
        }
    }

    /// Names directly under the directory `path`.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve), or `ENOTDIR`.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, Errno> {
        let (path, entry) = self.resolve(path, true)?;
        if *entry != Entry::Directory {
            return Err(Errno::NOTDIR);
        }
        let prefix = format!("{path}/");
        Ok(self
            .0
            .range(prefix.clone()..)
            .take_while(|(key, _)| key.starts_with(&prefix))
            .filter_map(|(key, _)| key.strip_prefix(&prefix))
            .filter(|rest| !rest.contains('/'))
            .map(str::to_owned)
            .collect())
    }
}

/// The components of `path`, last first.
fn parts(path: &str) -> Vec<String> {
    path.split('/').rev().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Tree {
        let mut tree = Tree::default();
        tree.file("/sys/devices/virtual/kfd/kfd/dev", "242:0\n");
        tree.link("/sys/class/kfd/kfd", "../../devices/virtual/kfd/kfd");
        tree.link("/a", "/b");
        tree.link("/b", "/a");
        tree
    }

    #[test]
    fn a_relative_link_in_the_middle_of_a_path_is_followed() {
        let tree = sample();
        let (path, entry) = tree.resolve("/sys/class/kfd/kfd/dev", true).unwrap();
        assert_eq!(path, "/sys/devices/virtual/kfd/kfd/dev");
        assert_eq!(*entry, Entry::File(Ok(b"242:0\n".to_vec())));
    }

    #[test]
    fn a_directory_lists_only_its_direct_children() {
        assert_eq!(sample().names("/sys").unwrap(), ["class", "devices"]);
        assert_eq!(sample().names("/sys/class/kfd/kfd").unwrap(), ["dev"]);
    }

    #[test]
    fn a_link_cycle_ends_with_eloop() {
        assert_eq!(sample().resolve("/a", true).unwrap_err(), Errno::LOOP);
    }

    #[test]
    fn a_file_is_not_a_directory() {
        let tree = sample();
        assert_eq!(tree.names("/sys/devices/virtual/kfd/kfd/dev").unwrap_err(), Errno::NOTDIR);
        assert_eq!(tree.resolve("/sys/none", true).unwrap_err(), Errno::NOENT);
    }
}
