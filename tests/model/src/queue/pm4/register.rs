//! The registers that packets write: those of the queue's own context.

use std::collections::BTreeMap;

use pm4::Target;
use pm4::reg::{Reg, Register, Space, gfx9};

use super::super::turn::Reason;

/// First of the shader registers.
const SH_FIRST: u32 = 0x2C00;
const SH_COUNT: usize = 0x400;
const USER_DATA: u32 = 16;
const TRAP_PRESENT: u32 = 1 << 6;

/// Registers of a command processor.
#[derive(Debug)]
pub(super) struct Registers {
    target: Target,
    shader: Box<[u32]>,
    /// Which shader registers a user queue has.
    known: Box<[bool]>,
    /// User configuration registers that were written.
    config: BTreeMap<u32, u32>,
}

fn index(reg: Reg) -> Option<usize> {
    usize::try_from(reg.0.checked_sub(SH_FIRST)?).ok()
}

impl Registers {
    /// As the queue descriptor (MQD) of Linux has them.
    pub(super) fn new(target: Target, has_trap_handler: bool, aql: bool) -> Self {
        let mut registers = Self {
            target,
            shader: vec![0; SH_COUNT].into(),
            known: vec![false; SH_COUNT].into(),
            config: BTreeMap::new(),
        };
        let named = target.registers().iter().flat_map(|table| table.iter());
        let user = (0..USER_DATA).map(|n| gfx9::COMPUTE_USER_DATA_0.plus(n));
        for reg in named.map(|register| register.reg).chain(user) {
            if let Some(known) = index(reg).and_then(|at| registers.known.get_mut(at)) {
                *known = true;
            }
        }
        for register in target.registers().iter().flat_map(|table| table.iter()) {
            if register.name.starts_with("COMPUTE_STATIC_THREAD_MGMT") {
                registers.put(register.reg, u32::MAX);
            }
            if register.name == "COMPUTE_TG_CHUNK_SIZE" {
                registers.put(register.reg, aql.into());
            }
        }
        if has_trap_handler {
            registers.put(gfx9::COMPUTE_PGM_RSRC2, TRAP_PRESENT);
        }
        registers
    }

    pub(super) const fn target(&self) -> Target {
        self.target
    }

    /// A shader register; 0 for one that the chip lacks.
    pub(super) fn shader(&self, reg: Reg) -> u32 {
        index(reg).and_then(|at| self.shader.get(at)).copied().unwrap_or(0)
    }

    /// The register of that name, where the chip has it.
    pub(super) fn named(&self, name: &str) -> u32 {
        let all = self.target.registers().iter().flat_map(|table| table.iter());
        let found = all.into_iter().find(|register| register.name == name);
        found.map_or(0, |register| self.shader(register.reg))
    }

    fn put(&mut self, reg: Reg, value: u32) {
        if let Some(word) = index(reg).and_then(|at| self.shader.get_mut(at)) {
            *word = value;
        }
    }

    fn is_known(&self, reg: Reg) -> bool {
        Space::UCONFIG.contains(reg)
            || index(reg).and_then(|at| self.known.get(at)).copied().unwrap_or(false)
    }

    fn unknown(&self, reg: Reg) -> Reason {
        let name = Register::find(self.target, reg).map_or("", |register| register.name);
        Reason::invalid(format!("register {reg} {name}is not one of a {} queue's", self.target))
    }

    /// Reads a register.
    pub(super) fn get(&self, reg: Reg) -> Result<u32, Reason> {
        if !self.is_known(reg) {
            return Err(self.unknown(reg));
        }
        Ok(self.config.get(&reg.0).copied().unwrap_or_else(|| self.shader(reg)))
    }

    /// Writes a register.
    pub(super) fn set(&mut self, reg: Reg, value: u32) -> Result<(), Reason> {
        if !self.is_known(reg) {
            return Err(self.unknown(reg));
        }
        if Space::UCONFIG.contains(reg) {
            self.config.insert(reg.0, value);
        } else {
            self.put(reg, value);
        }
        Ok(())
    }

    /// Writes consecutive registers.
    pub(super) fn set_all(&mut self, first: Reg, values: &[u32]) -> Result<(), Reason> {
        (0..).zip(values).try_for_each(|(n, value)| self.set(first.plus(n), *value))
    }
}
