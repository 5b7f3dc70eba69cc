//! Executions by source line, for objects with a DWARF line table.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gimli::{EndianSlice, LittleEndian};
use object::{Object as _, ObjectSection as _, ObjectSegment as _};

use super::report::LineCoverage;
use crate::memory::View;

/// A code object whose lines are counted.
#[derive(Debug)]
pub(super) struct Object {
    /// Executable segments: address in the object, and bytes.
    code: Vec<(u64, Vec<u8>)>,
    /// File and line of each stretch of code: start, end, index of the file, line.
    rows: Vec<(u64, u64, usize, u32)>,
    files: Vec<String>,
    path: PathBuf,
}

impl Object {
    /// Reads the line table of a code object.
    pub(super) fn read(path: PathBuf, bytes: &[u8]) -> Result<Self, String> {
        let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
        let executable = |flags| matches!(flags, object::SegmentFlags::Elf { p_flags, .. } if p_flags.0 & object::elf::PF_X.0 != 0);
        let code = file
            .segments()
            .filter(|segment| executable(segment.flags()))
            .filter_map(|segment| Some((segment.address(), segment.data().ok()?.to_vec())))
            .collect();
        let mut this = Self { code, rows: Vec::new(), files: Vec::new(), path };
        this.lines(&file).map_err(|error| error.to_string())?;
        if this.rows.is_empty() {
            return Err("there is none; compile with -gline-tables-only".to_owned());
        }
        Ok(this)
    }

    fn lines(&mut self, file: &object::File<'_>) -> Result<(), gimli::Error> {
        let load = |id: gimli::SectionId| -> Result<Vec<u8>, gimli::Error> {
            let section = file.section_by_name(id.name());
            Ok(section.and_then(|section| section.data().ok()).unwrap_or_default().to_vec())
        };
        let sections = gimli::DwarfSections::load(load)?;
        let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            let Some(program) = unit.line_program.clone() else { continue };
            let mut rows = program.rows();
            let mut open: Option<(u64, usize, u32)> = None;
            while let Some((header, row)) = rows.next_row()? {
                if let Some((start, file, line)) = open.take()
                    && row.address() > start
                {
                    self.rows.push((start, row.address(), file, line));
                }
                let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
                if let (false, Some(line), Some(entry)) =
                    (row.end_sequence(), line, row.file(header))
                {
                    let name =
                        dwarf.attr_string(&unit, entry.path_name())?.to_string_lossy().into_owned();
                    let known = self.files.iter().position(|file| *file == name);
                    let file = known.unwrap_or_else(|| {
                        self.files.push(name);
                        self.files.len() - 1
                    });
                    open = Some((row.address(), file, line));
                }
            }
        }
        Ok(())
    }

    /// Whether the code around `pc` is this object's, loaded at `base`.
    pub(super) fn is_loaded_at(&self, view: &mut View<'_>, base: u64, pc: u64) -> bool {
        let address = pc.wrapping_sub(base);
        self.code.iter().any(|(start, bytes)| {
            let Some(at) = address.checked_sub(*start).and_then(|at| usize::try_from(at).ok())
            else {
                return false;
            };
            // Code is not relocated: a stretch of it tells objects apart well enough.
            let Some(mine) = bytes.get(at..bytes.len().min(at + 64)) else { return false };
            let mut loaded = vec![0; mine.len()];
            !mine.is_empty() && view.read(pc, &mut loaded).is_ok() && loaded == mine
        })
    }

    /// Executions by line; `executions` knows them by address.
    pub(super) fn coverage(&self, executions: impl Fn(u64) -> Option<u64>) -> Vec<LineCoverage> {
        let mut lines: BTreeMap<(usize, u32), u64> = BTreeMap::new();
        for &(start, end, file, line) in self.rows.iter().filter(|row| row.3 != 0) {
            let most = (start..end).step_by(4).filter_map(&executions).max().unwrap_or(0);
            let entry = lines.entry((file, line)).or_default();
            *entry = (*entry).max(most);
        }
        let name = |file: usize| {
            self.files.get(file).cloned().unwrap_or_else(|| self.path.display().to_string())
        };
        let line = |((file, line), executions)| LineCoverage { file: name(file), line, executions };
        lines.into_iter().map(line).collect()
    }
}
