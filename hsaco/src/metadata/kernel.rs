//! One entry of `amdhsa.kernels`.

use super::args::{self, Argument};
use super::reader::{Fail, Reader};
use crate::error::MetadataProblem as Problem;

/// When a kernel is meant to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelKind {
    /// Launched by the user.
    #[default]
    Normal,
    /// Run once after loading, before any other.
    Init,
    /// Run once before unloading.
    Fini,
}

/// What metadata says of a kernel. Sizes are bytes. `None` means that the key is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are the keys without their dot
pub struct KernelMetadata<'data> {
    pub name: &'data str,
    /// Name of the descriptor's symbol, usually `name` + `.kd`.
    pub symbol: &'data str,
    pub kernarg_segment_size: u32,
    /// A power of two.
    pub kernarg_segment_align: u32,
    pub group_segment_fixed_size: u32,
    pub private_segment_fixed_size: u32,
    /// 32 or 64.
    pub wavefront_size: u32,
    /// Most work-items of a workgroup.
    pub max_flat_workgroup_size: u32,
    pub sgpr_count: u32,
    /// On targets with a unified file, AccVGPRs are included.
    pub vgpr_count: u32,
    pub agpr_count: Option<u32>,
    pub sgpr_spill_count: Option<u32>,
    pub vgpr_spill_count: Option<u32>,
    pub uses_dynamic_stack: Option<bool>,
    pub workgroup_processor_mode: Option<bool>,
    pub uniform_work_group_size: Option<u32>,
    pub language: Option<&'data str>,
    pub language_version: Option<[u32; 2]>,
    /// The only workgroup size the kernel may be launched with.
    pub reqd_workgroup_size: Option<[u32; 3]>,
    pub workgroup_size_hint: Option<[u32; 3]>,
    pub vec_type_hint: Option<&'data str>,
    pub device_enqueue_symbol: Option<&'data str>,
    pub kind: KernelKind,
    pub cluster_dims: Option<[u32; 3]>,
    /// `.args`; `None` when the key is absent, as for some kernels without arguments.
    pub args: Option<Vec<Argument<'data>>>,
}

/// Work-items a workgroup can have on any target.
const MAX_WORKGROUP: u32 = 1024;

#[derive(Default)]
struct Fields<'data> {
    name: Option<&'data str>,
    symbol: Option<&'data str>,
    kernarg_segment_size: Option<u32>,
    kernarg_segment_align: Option<u32>,
    group_segment_fixed_size: Option<u32>,
    private_segment_fixed_size: Option<u32>,
    wavefront_size: Option<u32>,
    max_flat_workgroup_size: Option<u32>,
    sgpr_count: Option<u32>,
    vgpr_count: Option<u32>,
    agpr_count: Option<u32>,
    sgpr_spill_count: Option<u32>,
    vgpr_spill_count: Option<u32>,
    uses_dynamic_stack: Option<bool>,
    workgroup_processor_mode: Option<bool>,
    uniform_work_group_size: Option<u32>,
    language: Option<&'data str>,
    language_version: Option<[u32; 2]>,
    reqd_workgroup_size: Option<[u32; 3]>,
    workgroup_size_hint: Option<[u32; 3]>,
    vec_type_hint: Option<&'data str>,
    device_enqueue_symbol: Option<&'data str>,
    kind: Option<KernelKind>,
    cluster_dims: Option<[u32; 3]>,
    args: Option<Vec<Argument<'data>>>,
}

/// Reads a value with `$read` into the field, which must still be empty.
macro_rules! field {
    ($reader:ident, $slot:expr, $key:literal, $read:ident) => {{
        let value = $reader.$read($key)?;
        $reader.once($key, &mut $slot, value)?
    }};
}

pub(super) fn read<'data>(reader: &mut Reader<'data>) -> Result<KernelMetadata<'data>, Problem> {
    reader.kernel = None;
    let mut fields = Fields::default();
    let f = &mut fields;
    let entries = reader.map("a kernel")?;
    for _ in 0..entries {
        match reader.key()? {
            ".name" => {
                field!(reader, f.name, ".name", string);
                reader.kernel = f.name;
            }
            ".symbol" => {
                field!(reader, f.symbol, ".symbol", string);
                // Keys are usually sorted and `.args` comes first; the symbol serves as well as
                // the name in a message.
                reader.kernel = reader.kernel.or(f.symbol);
            }
            ".kernarg_segment_size" => {
                field!(reader, f.kernarg_segment_size, ".kernarg_segment_size", number);
            }
            ".kernarg_segment_align" => {
                field!(reader, f.kernarg_segment_align, ".kernarg_segment_align", number);
            }
            ".group_segment_fixed_size" => {
                field!(reader, f.group_segment_fixed_size, ".group_segment_fixed_size", number);
            }
            ".private_segment_fixed_size" => {
                field!(reader, f.private_segment_fixed_size, ".private_segment_fixed_size", number);
            }
            ".wavefront_size" => field!(reader, f.wavefront_size, ".wavefront_size", number),
            ".max_flat_workgroup_size" => {
                field!(reader, f.max_flat_workgroup_size, ".max_flat_workgroup_size", number);
            }
            ".sgpr_count" => field!(reader, f.sgpr_count, ".sgpr_count", number),
            ".vgpr_count" => field!(reader, f.vgpr_count, ".vgpr_count", number),
            ".agpr_count" => field!(reader, f.agpr_count, ".agpr_count", number),
            ".sgpr_spill_count" => field!(reader, f.sgpr_spill_count, ".sgpr_spill_count", number),
            ".vgpr_spill_count" => field!(reader, f.vgpr_spill_count, ".vgpr_spill_count", number),
            ".uses_dynamic_stack" => {
                field!(reader, f.uses_dynamic_stack, ".uses_dynamic_stack", boolean);
            }
            ".workgroup_processor_mode" => {
                // An integer, unlike the other switches.
                let value = reader.number(".workgroup_processor_mode")?;
                let value = in_range(".workgroup_processor_mode", value, value <= 1)? != 0;
                reader.once(".workgroup_processor_mode", &mut f.workgroup_processor_mode, value)?;
            }
            ".uniform_work_group_size" => {
                field!(reader, f.uniform_work_group_size, ".uniform_work_group_size", number);
            }
            ".language" => field!(reader, f.language, ".language", string),
            ".language_version" => field!(reader, f.language_version, ".language_version", numbers),
            ".reqd_workgroup_size" => {
                field!(reader, f.reqd_workgroup_size, ".reqd_workgroup_size", numbers);
            }
            ".workgroup_size_hint" => {
                field!(reader, f.workgroup_size_hint, ".workgroup_size_hint", numbers);
            }
            ".vec_type_hint" => field!(reader, f.vec_type_hint, ".vec_type_hint", string),
            ".device_enqueue_symbol" => {
                field!(reader, f.device_enqueue_symbol, ".device_enqueue_symbol", string);
            }
            ".kind" => {
                let kind = match reader.string(".kind")? {
                    "normal" => KernelKind::Normal,
                    "init" => KernelKind::Init,
                    "fini" => KernelKind::Fini,
                    _ => {
                        return Err(Problem::Type {
                            key: ".kind",
                            expected: "\"normal\", \"init\" or \"fini\"",
                        });
                    }
                };
                reader.once(".kind", &mut f.kind, kind)?;
            }
            ".cluster_dims" => field!(reader, f.cluster_dims, ".cluster_dims", numbers),
            ".args" => {
                let list = reader.list(".args", args::read)?;
                reader.once(".args", &mut f.args, list)?;
            }
            _ => reader.skip()?,
        }
    }
    finish(reader, fields)
}

fn in_range(key: &'static str, value: u32, ok: bool) -> Result<u32, Problem> {
    if ok { Ok(value) } else { Err(Problem::Range { key, value: value.into() }) }
}

fn finish<'data>(
    reader: &mut Reader<'data>,
    f: Fields<'data>,
) -> Result<KernelMetadata<'data>, Problem> {
    let symbol = f.symbol.or_missing(".symbol")?;
    reader.kernel = Some(f.name.unwrap_or(symbol));
    let align = f.kernarg_segment_align.or_missing(".kernarg_segment_align")?;
    let wave = f.wavefront_size.or_missing(".wavefront_size")?;
    let max_flat = f.max_flat_workgroup_size.or_missing(".max_flat_workgroup_size")?;
    let metadata = KernelMetadata {
        name: f.name.or_missing(".name")?,
        symbol,
        kernarg_segment_size: f.kernarg_segment_size.or_missing(".kernarg_segment_size")?,
        kernarg_segment_align: in_range(".kernarg_segment_align", align, align.is_power_of_two())?,
        group_segment_fixed_size: f
            .group_segment_fixed_size
            .or_missing(".group_segment_fixed_size")?,
        private_segment_fixed_size: f
            .private_segment_fixed_size
            .or_missing(".private_segment_fixed_size")?,
        wavefront_size: in_range(".wavefront_size", wave, wave == 32 || wave == 64)?,
        max_flat_workgroup_size: in_range(
            ".max_flat_workgroup_size",
            max_flat,
            (1..=MAX_WORKGROUP).contains(&max_flat),
        )?,
        sgpr_count: f.sgpr_count.or_missing(".sgpr_count")?,
        vgpr_count: f.vgpr_count.or_missing(".vgpr_count")?,
        agpr_count: f.agpr_count,
        sgpr_spill_count: f.sgpr_spill_count,
        vgpr_spill_count: f.vgpr_spill_count,
        uses_dynamic_stack: f.uses_dynamic_stack,
        workgroup_processor_mode: f.workgroup_processor_mode,
        uniform_work_group_size: f.uniform_work_group_size,
        language: f.language,
        language_version: f.language_version,
        reqd_workgroup_size: f.reqd_workgroup_size,
        workgroup_size_hint: f.workgroup_size_hint,
        vec_type_hint: f.vec_type_hint,
        device_enqueue_symbol: f.device_enqueue_symbol,
        kind: f.kind.unwrap_or_default(),
        cluster_dims: f.cluster_dims,
        args: f.args,
    };
    if let Some([x, y, z]) = metadata.reqd_workgroup_size {
        let product = u64::from(x).saturating_mul(y.into()).saturating_mul(z.into());
        if product == 0 || product > max_flat.into() {
            let value = product.into();
            return Err(Problem::Range { key: ".reqd_workgroup_size", value });
        }
    }
    args::check(metadata.args.as_deref().unwrap_or(&[]), metadata.kernarg_segment_size)?;
    Ok(metadata)
}
