//! Reports to tables or JSON.
//!
//! A command collects into a serde struct that implements [`Report`]; what is printed follows from
//! that struct alone, so tables and JSON cannot disagree.

use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{LineStyle, Table};
use serde::Serialize;

use crate::cli::Cli;
use crate::exit::{Failure, chain};

/// A report that people read as text.
pub trait Report: Serialize {
    /// Writes the text form.
    fn text(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// The JSON document around a report.
#[derive(Serialize)]
struct Document<'a, R> {
    schema: u32,
    command: &'a str,
    #[serde(flatten)]
    report: &'a R,
}

/// Where output goes.
pub struct Output {
    json: bool,
}

impl Output {
    /// As the arguments ask.
    pub fn new(cli: &Cli) -> Self {
        Self { json: cli.json }
    }

    /// Whether a person reads along: progress and notes are welcome on standard error.
    pub fn is_interactive(&self) -> bool {
        use std::io::IsTerminal;
        !self.json && io::stderr().is_terminal()
    }

    /// Whether text goes to a terminal: a screen may be cleared.
    pub fn is_text_terminal(&self) -> bool {
        use std::io::IsTerminal;
        !self.json && io::stdout().is_terminal()
    }

    /// A line before a long report, as text only.
    pub fn line(&self, text: &str) -> Result<(), Failure> {
        if !self.json {
            writeln!(anstream::stdout().lock(), "{text}")?;
        }
        Ok(())
    }

    /// Prints a report.
    pub fn report<R: Report>(&self, command: &str, report: &R) -> Result<(), Failure> {
        // anstream strips colour when standard output is not a terminal.
        let mut out = anstream::stdout().lock();
        if self.json {
            let document = Document { schema: 1, command, report };
            serde_json::to_writer_pretty(&mut out, &document)?;
            writeln!(out)?;
        } else {
            report.text(&mut out)?;
        }
        out.flush()?;
        Ok(())
    }

    /// Prints why a command ended early, with every cause, on standard error.
    pub fn failure(&self, failure: &Failure) {
        let text = chain(failure);
        // Nothing is left to tell if standard error is gone as well.
        let _ = writeln!(anstream::stderr(), "kfd-probe: {text}");
    }
}

/// An empty table in the style of all tables here.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING.header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header(header.iter().copied());
    table
}
