//! The report as text.

use std::io::{self, Write};

use super::{DeviceRow, ImageRow, KernelRow, ObjectRow, Report};
use crate::render::{self, table};

impl render::Report for Report {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let images: usize = self.bundles.iter().map(|bundle| bundle.images.len()).sum();
        writeln!(
            out,
            "{}: {}, {} bytes, {images} image{}",
            self.file,
            self.container,
            self.file_bytes,
            if images == 1 { "" } else { "s" },
        )?;
        for bundle in &self.bundles {
            if bundle.encoding != "bare" {
                writeln!(
                    out,
                    "\nbundle at {:#x}: {}, {} bytes",
                    bundle.offset, bundle.encoding, bundle.content_bytes
                )?;
            }
            for row in &bundle.images {
                image(row, out)?;
            }
        }
        if !self.devices.is_empty() {
            writeln!(out)?;
        }
        for row in &self.devices {
            device(row, out)?;
        }
        if let Some(problem) = &self.device_problem {
            writeln!(out, "\nnot checked against a GPU: {problem}")?;
        }
        Ok(())
    }
}

fn image(row: &ImageRow, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    let Some(object) = &row.object else {
        let problem = row.problem.as_deref().unwrap_or("unknown");
        return writeln!(out, "{}: {} bytes, cannot be loaded: {problem}", row.name, row.bytes);
    };
    writeln!(
        out,
        "{}: target {}, {}, {} bytes, {} in memory",
        row.name, object.target, object.version, row.bytes, object.load_bytes
    )?;
    objects(object, out)?;
    if object.kernels.is_empty() {
        return writeln!(out, "no kernels");
    }
    let mut rows = table(&[
        "kernel",
        "wave",
        "VGPRs",
        "SGPRs",
        "LDS",
        "scratch",
        "kernarg",
        "waves/SIMD",
        "needs",
    ]);
    for kernel in &object.kernels {
        rows.add_row(vec![
            kernel.name.clone(),
            kernel.wave_size.to_string(),
            kernel.vgprs.to_string(),
            kernel.sgprs.to_string(),
            kernel.lds_bytes.to_string(),
            kernel.private_bytes.to_string(),
            kernel.kernarg_bytes.to_string(),
            waves(kernel),
            if kernel.needs.is_empty() { "-".to_owned() } else { kernel.needs.join(", ") },
        ]);
    }
    writeln!(out, "{rows}")
}

fn objects(object: &ObjectRow, out: &mut dyn Write) -> io::Result<()> {
    let names = |rows: &[super::VariableRow]| -> String {
        rows.iter()
            .map(|row| format!("{} ({})", row.name, row.bytes))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !object.variables.is_empty() {
        writeln!(out, "variables (bytes): {}", names(&object.variables))?;
    }
    if !object.managed.is_empty() {
        writeln!(out, "managed (bytes): {}", names(&object.managed))?;
    }
    for format in &object.printf_formats {
        writeln!(out, "printf: {format:?}")?;
    }
    Ok(())
}

fn waves(kernel: &KernelRow) -> String {
    let Some(found) = &kernel.occupancy else { return "unknown".to_owned() };
    let (waves, most) = (found.waves_per_simd, found.max_waves_per_simd);
    format!("{waves} of {most} ({})", found.limiter)
}

fn device(row: &DeviceRow, out: &mut dyn Write) -> io::Result<()> {
    let gpu = row.gpu_id.map(|id| format!(" (GPU {id})")).unwrap_or_default();
    writeln!(out, "{}{gpu}: {}", row.target, if row.fits { "fits" } else { "does not fit" })?;
    for fit in &row.images {
        if let Some(image) = &fit.image {
            writeln!(out, "  takes {image}")?;
        }
        for [image, reason] in &fit.misfits {
            writeln!(out, "  not {image}: {reason}")?;
        }
    }
    Ok(())
}
