//! Decoded code of one worker: runs of instructions, found by address.
//!
//! A run is decoded from an address to the next unconditional end of a block. Each keeps its raw
//! words. Every acquire that invalidates instruction caches, every `s_icache_inv` and every change
//! of the page table starts a new generation; on its first use in a generation a run is compared
//! with memory, and decoded anew if it differs.

use std::collections::HashMap;
use std::sync::Arc;

use super::wave::Code;
use super::{control, excepts};
use crate::Target;
use crate::exec::MemoryFault;
use crate::isa::ir::{Inst, Src, flag};
use crate::isa::{DecodeError, Effects, Op, decode};
use crate::memory::View;

/// Set by the cache on the Y half of a dual-issue pair. The bit means something else for LDS only.
pub(super) const VOPD_Y: u16 = flag::GDS;
/// Most instructions of a run.
const RUN_INSTRUCTIONS: u32 = 256;
/// Bytes of code that share an index.
const PAGE: u64 = 4096;
/// Instructions after which the whole cache is dropped.
const LIMIT: usize = 1 << 20;
/// No instruction here.
const NONE: u32 = u32::MAX;

/// Where a branch leads, valid in one generation.
#[derive(Clone, Copy, Debug)]
struct Link {
    index: u32,
    generation: u32,
}

/// Where an instruction is.
#[derive(Clone, Copy, Debug)]
struct Place {
    address: u64,
    /// Instructions of the run before it, those without effect included.
    before: u32,
}

/// A decoded stretch of code.
#[derive(Debug)]
struct Run {
    start: u64,
    words: Vec<u32>,
    /// Generation it was last compared in.
    generation: u32,
}

/// Instructions of a page, by dword: index into [`Code::insts`] and the run it belongs to.
type Page = Box<[(u32, u32)]>;

/// Why no instruction was found at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCode {
    /// The page table does not allow the fetch.
    Fault(MemoryFault),
    /// The words decode to nothing.
    Illegal,
}

/// Decoded code, by address. Belongs to one worker, one target and wave size, and
/// one address space.
#[derive(Debug)]
pub struct CodeCache {
    /// The decoded instructions.
    pub code: Arc<Code>,
    /// Where each instruction is.
    places: Vec<Place>,
    links: Vec<Link>,
    runs: Vec<Run>,
    pages: HashMap<u64, Page>,
    generation: u32,
    /// How often everything was dropped.
    dropped: u64,
    /// What the generation stands for: acquires and page table changes.
    seen: (u64, u64),
    target: Target,
    wave_size: u32,
    /// What each instruction touches, where somebody watches; instructions without effect are kept
    /// then.
    effects: Option<Vec<Effects>>,
    /// Whether the code at an entry asks for arithmetic exceptions.
    exceptions: HashMap<u64, bool>,
}

impl CodeCache {
    /// An empty cache of code that is watched as it runs.
    pub fn watched(target: Target, wave_size: u32) -> Self {
        Self { effects: Some(Vec::new()), ..Self::new(target, wave_size) }
    }

    /// What the instruction at `index` of watched code touches.
    pub fn effects(&self, index: usize) -> Option<&Effects> {
        self.effects.as_ref()?.get(index)
    }

    /// Whether the code at a kernel's entry asks for arithmetic exceptions.
    pub(super) fn asks_for_exceptions(&mut self, entry: u64, view: &mut View<'_>) -> bool {
        // Forgets what it knows if the code is no longer the same.
        if self.find(entry, view).is_err() {
            return false;
        }
        if let Some(&known) = self.exceptions.get(&entry) {
            return known;
        }
        let asks = excepts::code_asks(self.target, self.wave_size, entry, view);
        self.exceptions.insert(entry, asks);
        asks
    }

    /// An empty cache for waves of `wave_size` lanes.
    pub fn new(target: Target, wave_size: u32) -> Self {
        Self {
            code: Arc::default(),
            places: Vec::new(),
            links: Vec::new(),
            runs: Vec::new(),
            pages: HashMap::new(),
            generation: 1,
            dropped: 0,
            seen: (0, 0),
            target,
            wave_size,
            effects: None,
            exceptions: HashMap::new(),
        }
    }

    /// Starts a new generation if acquires happened or the page table changed since the last call.
    /// No wave may be between [`CodeCache::enter`] and its end of slice.
    pub fn refresh(&mut self, acquires: u64, table: u64) {
        if self.code.insts.len() > LIMIT {
            self.clear();
        }
        if self.seen != (acquires, table) {
            self.seen = (acquires, table);
            self.invalidate();
        }
    }

    /// Starts a new generation: `s_icache_inv`.
    pub fn invalidate(&mut self) {
        match self.generation.checked_add(1) {
            Some(generation) => self.generation = generation,
            None => {
                self.generation = 1;
                self.clear();
            }
        }
    }

    /// The address of an instruction.
    #[inline(always)]
    pub fn address(&self, index: usize) -> u64 {
        self.places.get(index).map_or(0, |place| place.address)
    }

    /// Instructions of the run before that at `index`. The decoded code leaves out those without
    /// effect; they count all the same.
    #[inline(always)]
    pub fn before(&self, index: usize) -> u64 {
        self.places.get(index).map_or(0, |place| place.before.into())
    }

    /// The instruction at `pc`. [`CodeCache::follow`] will know that the branch `from` leads there.
    ///
    /// # Errors
    /// [`NoCode`] when there is none.
    pub fn enter(
        &mut self,
        pc: u64,
        from: Option<usize>,
        view: &mut View<'_>,
    ) -> Result<usize, NoCode> {
        let dropped = self.dropped;
        let found = self.find(pc, view)?;
        // Decoding may have dropped the branch.
        if let Some(from) = from.filter(|_| dropped == self.dropped)
            && let Some(link) = self.links.get_mut(from)
        {
            *link = Link { index: found as u32, generation: self.generation };
        }
        Ok(found)
    }

    fn find(&mut self, pc: u64, view: &mut View<'_>) -> Result<usize, NoCode> {
        if pc & 3 != 0 {
            return Err(NoCode::Illegal);
        }
        let slot = (pc % PAGE / 4) as usize;
        let found = self.pages.get(&(pc / PAGE)).and_then(|page| page.get(slot)).copied();
        if let Some((index, run)) = found.filter(|&(index, _)| index != NONE) {
            if self.still_valid(run as usize, view) {
                return Ok(index as usize);
            }
            self.forget(run as usize);
        }
        self.decode_run(pc, view, false)
    }

    /// Where the branch at `index` leads, if that is known.
    #[inline(always)]
    pub fn follow(&self, index: usize) -> Option<usize> {
        let link = self.links.get(index)?;
        (link.generation == self.generation).then_some(link.index as usize)
    }

    /// Compares a run with memory, once per generation.
    fn still_valid(&mut self, run: usize, view: &mut View<'_>) -> bool {
        let generation = self.generation;
        let Some(run) = self.runs.get_mut(run) else { return false };
        if run.generation == generation {
            return true;
        }
        let mut now = vec![0; run.words.len()];
        let same = view.fetch(run.start, &mut now) == Ok(now.len()) && now == run.words;
        if same {
            run.generation = generation;
        }
        same
    }

    /// Removes a run from the index. Its instructions stay, unreachable, until the cache is dropped.
    fn forget(&mut self, run: usize) {
        self.exceptions.clear();
        let Some(Run { start, words, .. }) = self.runs.get(run) else { return };
        for pc in (0..words.len() as u64).map(|word| start + 4 * word) {
            let page = self.pages.get_mut(&(pc / PAGE));
            let entry = page.and_then(|page| page.get_mut((pc % PAGE / 4) as usize));
            if let Some(entry) = entry.filter(|entry| entry.1 as usize == run) {
                *entry = (NONE, NONE);
            }
        }
    }

    /// Drops everything. Indices of instructions are void afterwards.
    fn clear(&mut self) {
        let (seen, generation, dropped) = (self.seen, self.generation, self.dropped + 1);
        let effects = self.effects.as_ref().map(|_| Vec::new());
        *self =
            Self { seen, generation, dropped, effects, ..Self::new(self.target, self.wave_size) };
    }

    /// Decodes a run at `pc` and returns its first instruction. `fresh`: the cache was just dropped.
    fn decode_run(&mut self, pc: u64, view: &mut View<'_>, fresh: bool) -> Result<usize, NoCode> {
        let run = self.runs.len() as u32;
        // Nobody holds the code between runs of waves; were it held, this would go on with a copy.
        let code = Arc::make_mut(&mut self.code);
        let first = code.insts.len();
        let mut words = Vec::new();
        let mut at = pc;
        let mut before = 0;
        loop {
            let mut window = [0; 8];
            let available = match view.fetch(at, &mut window) {
                Ok(available) => available,
                Err(fault) if at == pc => return Err(NoCode::Fault(fault)),
                Err(_) => break,
            };
            let known =
                self.pages.get(&(at / PAGE)).and_then(|page| page.get((at % PAGE / 4) as usize));
            if at != pc && known.is_some_and(|&(index, _)| index != NONE) {
                break;
            }
            let window = window.get(..available).unwrap_or(&window);
            let index = code.insts.len();
            let effects = self.effects.as_mut();
            let count = match decode_into(self.target, self.wave_size, window, code, effects) {
                Ok(count) => count,
                Err(Undecoded::Full) if !fresh => {
                    self.clear();
                    return self.decode_run(pc, view, true);
                }
                Err(_) if at == pc => return Err(NoCode::Illegal),
                Err(_) => break,
            };
            words.extend_from_slice(window.get(..count).unwrap_or(window));
            let place = Place { address: at, before };
            before += 1;
            // What has no effect is kept only where control enters.
            if at != pc
                && self.effects.is_none()
                && code.insts.get(index).is_some_and(|inst| control::is_idle(inst.op))
            {
                code.insts.truncate(index);
                at += 4 * count as u64;
                if before >= RUN_INSTRUCTIONS {
                    break;
                }
                continue;
            }
            self.places.resize(code.insts.len(), place);
            let page = self
                .pages
                .entry(at / PAGE)
                .or_insert_with(|| vec![(NONE, NONE); (PAGE / 4) as usize].into_boxed_slice());
            if let Some(entry) = page.get_mut((at % PAGE / 4) as usize) {
                *entry = (index as u32, run);
            }
            at += 4 * count as u64;
            let ends = code.insts.get(index).is_none_or(|inst| ends_run(inst.op));
            if ends || before >= RUN_INSTRUCTIONS {
                break;
            }
        }
        // A branch to whatever follows, of no length: leads back to `enter`.
        code.insts.push(Inst {
            op: Op::SBranch,
            flags: flag::BLOCK_END,
            dst: 0,
            sdst: 0,
            words: 0,
            mods: 0,
            vgprs: 0,
            src: [Src::default(); 3],
            imm: 0,
        });
        self.places.push(Place { address: at, before });
        if let (Some(effects), Some(last)) = (&mut self.effects, code.insts.len().checked_sub(1)) {
            // The branch to what follows is never executed where somebody watches.
            let fill = effects.last().copied();
            effects.extend(fill.filter(|_| effects.len() == last));
        }
        self.links.resize(code.insts.len(), Link { index: NONE, generation: 0 });
        self.runs.push(Run { start: pc, words, generation: self.generation });
        Ok(first)
    }

    /// The words of the instruction at `pc`, as far as they can be fetched: for reports.
    pub fn words_at(pc: u64, view: &mut View<'_>) -> Vec<u32> {
        let mut words = vec![0; 2];
        let count = view.fetch(pc, &mut words).unwrap_or(0);
        words.truncate(count);
        words
    }
}

/// Whether what follows an operation is reached only by branches.
fn ends_run(op: Op) -> bool {
    matches!(
        op,
        Op::SBranch
            | Op::SEndpgm
            | Op::SEndpgmSaved
            | Op::SEndpgmOrderedPsDone
            | Op::SSetpcB64
            | Op::SSwappcB64
            | Op::SCallB64
            | Op::SRfeB64
            | Op::SRfeRestoreB64
            | Op::SCodeEnd
    )
}

/// Why an instruction was not decoded.
enum Undecoded {
    Illegal,
    /// The tables cannot index more constants or modifiers.
    Full,
}

/// Decodes one instruction, a VOPD pair as two entries; returns its length in dwords.
fn decode_into(
    target: Target,
    wave_size: u32,
    words: &[u32],
    code: &mut Code,
    effects: Option<&mut Vec<Effects>>,
) -> Result<usize, Undecoded> {
    let decoded =
        decode(target, wave_size, words, &mut code.pools).map_err(|error| match error {
            DecodeError::PoolFull => Undecoded::Full,
            _ => Undecoded::Illegal,
        })?;
    code.insts.push(decoded.inst);
    code.insts.extend(decoded.pair.map(|y| Inst { flags: y.flags | VOPD_Y, ..y }));
    if let Some(effects) = effects {
        effects.push(decoded.effects(wave_size));
        effects.extend(decoded.pair_effects(wave_size));
    }
    Ok(usize::from(decoded.inst.words))
}
