//! Global wave sync: two waves and one resource.

use super::*;
use crate::exec::context::Trouble;

const INIT: [u32; 2] = [0xd933_0001, 0]; // ds_gws_init v0 offset:1 gds
const BARRIER: [u32; 2] = [0xd93b_0001, 0];
const SEMA_V: [u32; 2] = [0xd935_0001, 0];
const SEMA_P: [u32; 2] = [0xd939_0001, 0];
const SEMA_BR: [u32; 2] = [0xd937_0001, 0];
const RELEASE_ALL: [u32; 2] = [0xd931_0001, 0];

/// A wave at the start of `words`, then s_endpgm; the operand is of the first active lane.
fn wave(operand: u32) -> Wave<64> {
    let mut w = Wave::new();
    w.vgprs = 8;
    w.set_exec(0b1100);
    w.v[0][2] = operand;
    w.set_s32(sgpr::M0, 5 << 16);
    w
}

/// Lets `w` run from CODE where it was not started, else from where it stands.
fn turn(m: &mut Machine<64>, w: &mut Wave<64>, words: Option<[u32; 2]>) -> Stop {
    if let Some(words) = words {
        m.put(CODE, &words);
        m.put(CODE + 8, &[0xbf81_0000]);
        m.cache.invalidate();
        w.pc = CODE;
    }
    std::mem::swap(&mut m.wave, w);
    let stop = m.resume(100);
    std::mem::swap(&mut m.wave, w);
    stop
}

fn machine() -> Machine<64> {
    let mut m = gfx90a();
    m.gws = Some(Gws::default());
    m
}

#[test]
fn a_barrier_opens_when_the_last_wave_arrives_and_again() {
    let mut m = machine();
    let mut waves = [wave(2), wave(2), wave(2)];
    // Three waves: the counter is how many are missing beside the first.
    assert_eq!(turn(&mut m, &mut waves[0], Some(INIT)), Stop::End);
    for _ in 0..2 {
        assert_eq!(turn(&mut m, &mut waves[0], Some(BARRIER)), Stop::Sleep);
        assert_eq!(turn(&mut m, &mut waves[1], Some(BARRIER)), Stop::Sleep);
        assert_eq!(turn(&mut m, &mut waves[0], None), Stop::Sleep, "two of three");
        assert_eq!(waves[0].pc, CODE);
        assert_eq!(turn(&mut m, &mut waves[2], Some(BARRIER)), Stop::End);
        for w in &mut waves[..2] {
            assert_eq!(turn(&mut m, w, None), Stop::End);
        }
    }
}

#[test]
fn a_semaphore_lets_as_many_waves_pass_as_it_counts() {
    let mut m = machine();
    let mut waves = [wave(1), wave(0), wave(2)];
    turn(&mut m, &mut waves[0], Some(INIT)); // one may pass
    assert_eq!(turn(&mut m, &mut waves[0], Some(SEMA_P)), Stop::End);
    assert_eq!(turn(&mut m, &mut waves[0], Some(SEMA_P)), Stop::Sleep);
    assert_eq!(turn(&mut m, &mut waves[1], Some(SEMA_P)), Stop::Sleep);
    let mut other = wave(0);
    assert_eq!(turn(&mut m, &mut other, Some(SEMA_V)), Stop::End);
    m.put(CODE, &SEMA_P);
    m.cache.invalidate();
    assert_eq!(turn(&mut m, &mut waves[1], None), Stop::End);
    assert_eq!(turn(&mut m, &mut waves[0], None), Stop::Sleep);
    // By the operand: two.
    assert_eq!(turn(&mut m, &mut waves[2], Some(SEMA_BR)), Stop::End);
    m.put(CODE, &SEMA_P);
    m.cache.invalidate();
    assert_eq!(turn(&mut m, &mut waves[0], None), Stop::End);
    assert_eq!(turn(&mut m, &mut waves[1], Some(SEMA_P)), Stop::End);
    assert_eq!(turn(&mut m, &mut waves[1], Some(SEMA_P)), Stop::Sleep);
    // All that wait, which is one.
    assert_eq!(turn(&mut m, &mut waves[2], Some(RELEASE_ALL)), Stop::End);
    m.put(CODE, &SEMA_P);
    m.cache.invalidate();
    assert_eq!(turn(&mut m, &mut waves[1], None), Stop::End);
    assert_eq!(turn(&mut m, &mut waves[0], Some(SEMA_P)), Stop::Sleep);
}

#[test]
fn a_queue_without_resources_cannot_reach_them() {
    let mut m = gfx90a();
    m.wave.set_s32(sgpr::M0, 5 << 16);
    assert_eq!(m.run(&INIT), Stop::Halted(Some(Trouble::Violation(6))));
    let mut m = gfx11();
    m.wave.set_s32(sgpr::M0, 63 << 16);
    // ds_gws_barrier v0 offset:1 gds: numbers wrap
    assert_eq!(m.run(&[0xd876_0001, 0]), Stop::Halted(Some(Trouble::Violation(0))));
}
