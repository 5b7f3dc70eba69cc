//! Compares packets and registers with the tables derived from AMD's headers.

extern crate std;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use crate::bits::Field;
use crate::packet::{
    atomic, copy, dispatch, dma, event, indirect, memory, range, state, sync, wait,
};
use crate::reg::{DispatchInitiator, Register, Space};
use crate::sdma::{self, Version};
use crate::{Opcode, Target};

const PM4: &str = include_str!("../../tests/fixtures/packets/pm4.txt");
const MACROS: &str = include_str!("../../tests/fixtures/packets/macros.txt");
const SDMA: &str = include_str!("../../tests/fixtures/packets/sdma.txt");
const REGISTERS: &str = include_str!("../../tests/fixtures/packets/registers.txt");

const PACKETS: &[(&str, usize, &[Field])] = &[
    ("ACQUIRE_MEM", crate::packet::gfx11::AcquireMem::DWORDS, range::acquire_mem::FIELDS),
    ("ATOMIC_MEM", crate::packet::AtomicMem::DWORDS, atomic::atomic_mem::FIELDS),
    ("COND_EXEC", crate::packet::CondExec::DWORDS, dispatch::cond_exec::FIELDS),
    ("COPY_DATA", crate::packet::CopyData::DWORDS, copy::copy_data::FIELDS),
    ("DISPATCH_DIRECT", crate::packet::DispatchDirect::DWORDS, dispatch::dispatch_direct::FIELDS),
    (
        "DISPATCH_INDIRECT",
        crate::packet::DispatchIndirect::DWORDS,
        dispatch::dispatch_indirect::FIELDS,
    ),
    ("DMA_DATA", crate::packet::DmaData::DWORDS, dma::dma_data::FIELDS),
    ("EVENT_WRITE", 4, event::event_write::FIELDS), // 2 without an address
    ("INDIRECT_BUFFER", crate::packet::IndirectBuffer::DWORDS, indirect::indirect_buffer::FIELDS),
    ("RELEASE_MEM", crate::packet::ReleaseMem::DWORDS, sync::release_mem::FIELDS),
    ("SET_SH_REG", 2, state::set_sh_reg::FIELDS), // and the values
    ("SET_SH_REG_INDEX", 2, state::set_sh_reg::FIELDS),
    ("SET_UCONFIG_REG", 2, state::set_uconfig_reg::FIELDS),
    ("WAIT_REG_MEM", crate::packet::WaitRegMem::DWORDS, wait::wait_reg_mem::FIELDS),
    ("WAIT_REG_MEM64", crate::packet::WaitRegMem64::DWORDS, wait::wait_reg_mem64::FIELDS),
    ("WRITE_DATA", 4, memory::write_data::FIELDS), // and the data
];

/// Fields of AMD's that no compute driver sets: they belong to the kernel (VMID, MES, polling by
/// the scheduler), to GDS, to sampling, or are other names of a dword.
const NOT_OURS: &[(&str, &str)] = &[
    ("COPY_DATA", "dst_64b_addr_lo"),
    ("COPY_DATA", "dst_gds_addr_lo"),
    ("COPY_DATA", "src_64b_addr_lo"),
    ("COPY_DATA", "src_gds_addr_lo"),
    ("COPY_DATA", "src_imm_data"),
    ("COPY_DATA", "src_reg_offset"),
    ("DMA_DATA", "das"),
    ("DMA_DATA", "sas"),
    ("EVENT_WRITE", "address_hi"),
    ("EVENT_WRITE", "address_lo"),
    ("EVENT_WRITE", "offload_enable"),
    ("EVENT_WRITE", "samp_plst_cntr_mode"),
    ("INDIRECT_BUFFER", "offload_polling"),
    ("INDIRECT_BUFFER", "vmid"),
    ("RELEASE_MEM", "cmp_data_hi"),
    ("RELEASE_MEM", "cmp_data_lo"),
    ("RELEASE_MEM", "dw_offset"),
    ("RELEASE_MEM", "gcr_cntl"), // gfx12's, a bit longer
    ("RELEASE_MEM", "glk_inv"),  // gfx12's
    ("RELEASE_MEM", "mes_action_id"),
    ("RELEASE_MEM", "mes_intr_pipe"),
    ("RELEASE_MEM", "num_dwords"),
    ("RELEASE_MEM", "wait_sync"), // gfx12's
    ("SET_SH_REG", "vmid_shift"),
    ("SET_SH_REG_INDEX", "vmid_shift"),
    ("WAIT_REG_MEM", "mes_action"),
    ("WAIT_REG_MEM", "mes_intr_pipe"),
    ("WAIT_REG_MEM64", "mes_action"),
    ("WAIT_REG_MEM64", "mes_intr_pipe"),
    ("WAIT_REG_MEM64", "reg_poll_addr"),
    ("WAIT_REG_MEM64", "reg_write_addr1"),
    ("WAIT_REG_MEM64", "reg_write_addr2"),
    ("WRITE_DATA", "dst_gds_addr"),
    ("WRITE_DATA", "dst_mmreg_addr"),
];

type Key = (usize, std::string::String, u32, u32);

fn key(field: &Field) -> Key {
    (field.dword, field.name.to_lowercase(), field.bits.high(), field.bits.low())
}

fn number(text: &str) -> u32 {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

#[test]
fn every_pm4_field_is_where_amds_header_has_it() {
    let mut theirs: BTreeMap<&str, BTreeSet<Key>> = BTreeMap::new();
    let mut lengths = BTreeMap::new();
    for line in PM4.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [packet, "dwords", count] => drop(lengths.insert(packet, number(count) as usize)),
            [packet, dword, name, high, low] => {
                let key = (number(dword) as usize, name.into(), number(high), number(low));
                theirs.entry(packet).or_default().insert(key);
            }
            _ => panic!("{line}"),
        }
    }
    assert_eq!(theirs.len(), PACKETS.len());
    let mut unused: BTreeSet<_> = NOT_OURS.iter().collect();
    for (packet, dwords, fields) in PACKETS {
        assert_eq!(lengths[packet], *dwords, "{packet}");
        let mut ours: BTreeSet<Key> = fields.iter().map(key).collect();
        if *packet == "DMA_DATA" {
            // Linux's headers have it, this one does not: see the macros.
            assert!(ours.remove(&(1, "cp_sync".into(), 31, 31)));
        }
        if *packet == "SET_SH_REG" || *packet == "SET_UCONFIG_REG" {
            // One table serves all three; the decoder refuses the index where there is none.
            ours.retain(|(_, name, ..)| name != "index" || *packet == "SET_SH_REG");
        }
        let missing: Vec<_> = ours.difference(&theirs[packet]).collect();
        assert!(missing.is_empty(), "{packet}: {missing:?} not in the header");
        for (dword, name, high, low) in theirs[packet].difference(&ours) {
            let entry = NOT_OURS.iter().find(|entry| **entry == (packet, name.as_str()));
            unused.remove(&entry.unwrap_or_else(|| panic!("{packet} {dword} {name} {high} {low}")));
        }
    }
    assert!(unused.is_empty(), "{unused:?}");
}

/// Where Linux's macros say something else than the packet structures.
const MACROS_DIFFER: &[(&str, &str, &str)] = &[
    ("gfx9", "ATOMIC_MEM", "atomic"), // 6 bits; the structures, PAL and Mesa have 7 on gfx9 too
    ("gfx9", "ACQUIRE_MEM", "gcr_cntl"), // gfx9 has no such dword
];

#[test]
fn every_pm4_field_and_opcode_agrees_with_linuxs_macros() {
    let mut compared = 0;
    let pred_exec = ("PRED_EXEC", 2, dispatch::pred_exec::FIELDS);
    for line in MACROS.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [_, name, "opcode", value] => {
                let opcode = Opcode(u8::try_from(number(value)).unwrap());
                assert_eq!(opcode.name(), Some(name));
                compared += 1;
            }
            [target, packet, name, high, low] => {
                let fields = PACKETS.iter().chain([&pred_exec]).filter(|p| p.0 == packet);
                let mut fields = fields.flat_map(|p| p.2);
                let Some(field) = fields.find(|f| f.name.to_lowercase() == name) else { continue };
                let (_, _, ours_high, ours_low) = key(field);
                let same = (ours_high, ours_low) == (number(high), number(low));
                // An address's macro may leave out the bits that alignment makes zero.
                let differs = MACROS_DIFFER.contains(&(target, packet, name));
                assert_ne!(same, differs, "{line}: {ours_high} {ours_low}");
                compared += 1;
            }
            _ => panic!("{line}"),
        }
    }
    assert!(compared > 100, "{compared}");
}

const SDMA_PACKETS: &[(&str, &[Field], &[Field])] = &[
    ("NOP", sdma::layouts::nop::FIELDS, &[]),
    ("COPY_LINEAR", sdma::layouts::copy_linear::FIELDS, sdma::layouts::copy_linear_v6::FIELDS),
    ("COPY_BROADCAST_LINEAR", sdma::layouts::copy_broadcast::FIELDS, &[]),
    ("COPY_LINEAR_SUBWIN", sdma::layouts::subwin::FIELDS, sdma::layouts::subwin_v6::FIELDS),
    (
        "WRITE_UNTILED",
        sdma::layouts::write_untiled::FIELDS,
        sdma::layouts::write_untiled_v6::FIELDS,
    ),
    ("INDIRECT", sdma::layouts::indirect::FIELDS, &[]),
    ("FENCE", sdma::layouts::fence::FIELDS, sdma::layouts::fence_v6::FIELDS),
    ("TRAP", sdma::layouts::trap::FIELDS, &[]),
    ("POLL_REGMEM", sdma::layouts::poll_regmem::FIELDS, sdma::layouts::poll_regmem_v6::FIELDS),
    ("COND_EXE", sdma::layouts::cond_exe::FIELDS, sdma::layouts::cond_exe_v6::FIELDS),
    ("ATOMIC", sdma::layouts::atomic::FIELDS, sdma::layouts::atomic_v6::FIELDS),
    (
        "CONSTANT_FILL",
        sdma::layouts::constant_fill::FIELDS,
        sdma::layouts::constant_fill_v6::FIELDS,
    ),
    ("TIMESTAMP_GET", sdma::layouts::timestamp::FIELDS, &[]),
    ("TIMESTAMP_GET_GLOBAL", sdma::layouts::timestamp::FIELDS, &[]),
];

#[test]
fn every_sdma_field_is_where_linuxs_headers_have_it() {
    let mut theirs: BTreeMap<(&str, &str), BTreeSet<Key>> = BTreeMap::new();
    for line in SDMA.lines() {
        let [version, packet, dword, name, high, low] = line.split(' ').collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let key = (number(dword) as usize, name.to_lowercase(), number(high), number(low));
        theirs.entry((version, packet)).or_default().insert(key);
    }
    let gcr = ("GCR_REQ", sdma::layouts::gcr_req::FIELDS, &[] as &[Field]);
    for (packet, fields, v6) in SDMA_PACKETS.iter().chain([&gcr]) {
        let versions: &[_] = if *packet == "GCR_REQ" { &["v6"] } else { &["v4", "v6"] };
        for version in versions {
            let theirs = &theirs[&(*version, *packet)];
            for field in *fields {
                let key = key(field);
                let (dword, name, high, low) = key.clone();
                let narrower = match (*version, *packet, name.as_str()) {
                    // Narrower on the older engines: the versions' limits say so.
                    ("v4", "COPY_LINEAR" | "COPY_BROADCAST_LINEAR" | "CONSTANT_FILL", "count") => {
                        21
                    }
                    ("v4", "COPY_LINEAR_SUBWIN", "src_z" | "dst_z" | "rect_z") => 10,
                    // The address is a multiple of 32 bytes.
                    (_, "INDIRECT", "ib_base_31_0") => {
                        assert!(theirs.contains(&(dword, name, high, 0)));
                        continue;
                    }
                    _ => high,
                };
                let found = theirs.contains(&(dword, name, narrower, low));
                assert!(found, "{version} {packet} {key:?}");
            }
        }
        for field in *v6 {
            let key = key(field);
            assert!(theirs[&("v6", *packet)].contains(&key), "v6 {packet} {key:?}");
            assert!(!theirs[&("v4", *packet)].contains(&key), "v4 {packet} {key:?}");
        }
    }
    assert_eq!(Version::V4_2.max_copy_bytes(), 1 << 22);
    assert_eq!(Version::V6.max_copy_bytes(), 1 << 30);
    assert_eq!((Version::V4_2.max_planes(), Version::V6.max_planes()), (1 << 11, 1 << 13));
}

#[test]
fn every_register_is_where_linuxs_headers_have_it() {
    let mut seen: BTreeMap<Target, BTreeSet<&str>> = BTreeMap::new();
    for line in REGISTERS.lines() {
        let [target, header, name, address, ref fields @ ..] =
            line.split(' ').collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let target = Target::from_name(target).unwrap();
        let theirs: BTreeSet<_> = fields
            .iter()
            .map(|field| match field.split(':').collect::<Vec<_>>()[..] {
                ["priv", high, low] => ("privileged", number(high), number(low)),
                [name, high, low] => (name, number(high), number(low)),
                _ => panic!("{line}"),
            })
            .collect();
        if name == "COMPUTE_DISPATCH_INITIATOR" {
            for (flag, bits) in DispatchInitiator::all().iter_names() {
                let gfx11_only = bits.bits() & (1 << 13 | 0x3_8000) != 0;
                let bit = bits.bits().trailing_zeros();
                let name = flag.to_lowercase();
                let found = theirs.contains(&(name.as_str(), bit, bit));
                assert_eq!(found, !(target.is_gfx9() && gfx11_only), "{header} {flag}");
            }
            continue;
        }
        let tables = target.registers().iter().flat_map(|table| table.iter());
        let Some(register) = tables.clone().find(|register| register.name == name) else {
            continue;
        };
        assert_eq!(register.reg.0, number(address), "{header} {name}");
        assert!(Space::SH.contains(register.reg));
        seen.entry(target).or_default().insert(register.name);
        for (field, bits) in register.fields {
            let found = match *field {
                "word" => theirs.iter().any(|field| (field.1, field.2) == (31, 0)),
                field => theirs.contains(&(field, bits.high(), bits.low())),
            };
            assert!(found, "{header} {name} {field}");
        }
    }
    for (target, names) in seen {
        let all = target.registers().iter().flat_map(|table| table.iter());
        let all: BTreeSet<_> = all.map(|register| register.name).collect();
        assert_eq!(names, all, "{target}: registers that no header has");
    }
}

#[test]
fn no_two_registers_of_a_target_share_an_address() {
    for target in Target::ALL {
        let all = target.registers().iter().flat_map(|table| table.iter());
        let mut addresses: Vec<_> = all.map(|register| register.reg).collect();
        let count = addresses.len();
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), count, "{target}");
        for reg in addresses {
            assert_eq!(Register::find(target, reg).unwrap().reg, reg);
        }
    }
}
