//! Transcendental operations: computed in double precision and rounded once.
//!
//! Hardware is within about one unit in the last place and not specified to the bit; programs that
//! depend on more than that are wrong on some chip.

use super::half::Half;
use super::soft::{self, F32};

fn flush(x: f32) -> f32 {
    f32::from_bits(soft::flush(u64::from(x.to_bits()), F32) as u32)
}

/// v_exp_f32: base 2. Denormals are flushed whatever MODE says.
pub fn exp2_f32(x: f32) -> f32 {
    flush(f64::from(flush(x)).exp2() as f32)
}

/// v_log_f32: base 2. Denormals are flushed whatever MODE says.
pub fn log2_f32(x: f32) -> f32 {
    flush(log2(f64::from(flush(x))) as f32)
}

fn log2(x: f64) -> f64 {
    if x == 0.0 { f64::NEG_INFINITY } else { x.log2() }
}

/// v_rsq_f32, v_rsq_f16 and v_rsq_f64: a zero gives infinity of its sign.
pub fn rsq(x: f64) -> f64 {
    if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }
}

/// An angle in turns, brought into [-0.5, 0.5] without error, in radians.
fn radians(turns: f64) -> f64 {
    (turns - turns.round_ties_even()) * std::f64::consts::TAU
}

/// v_sin_f32: the argument is in turns.
pub fn sin(turns: f64) -> f64 {
    // Exact where the sine is: half turns.
    let part = turns - turns.round_ties_even();
    if part == 0.0 || part.abs() == 0.5 { part * 0.0 } else { radians(turns).sin() }
}

/// v_cos_f32.
pub fn cos(turns: f64) -> f64 {
    let part = turns - turns.round_ties_even();
    if part.abs() == 0.25 { 0.0 } else { radians(turns).cos() }
}

/// v_exp_f16.
pub fn exp2_f16(x: Half) -> Half {
    Half(super::half::from_f64(x.to_f64().exp2()))
}

/// v_log_f16.
pub fn log2_f16(x: Half) -> Half {
    Half(super::half::from_f64(log2(x.to_f64())))
}

/// Bits of 2/pi after the binary point, the first in the top bit: 1201 of them.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_0000,
];

/// 53 bits of 2/pi from bit `at` after the binary point; bits beyond the table are zero.
fn two_over_pi(at: u32) -> u64 {
    let word = |k: usize| TWO_OVER_PI.get(k).copied().unwrap_or(0);
    let (k, shift) = ((at / 64) as usize, at % 64);
    let pair = u128::from(word(k)) << 64 | u128::from(word(k + 1));
    (pair << shift >> 75) as u64
}

/// v_trig_preop_f64: the segment of 2/pi that matters for reducing `x`.
pub fn trig_preop(x: f64, segment: u32) -> f64 {
    let exponent = (x.to_bits() >> 52 & 0x7ff) as u32;
    let at = (segment & 31) * 53 + exponent.saturating_sub(1077);
    let scale = -53 - at as i32 + if exponent >= 1968 { 128 } else { 0 };
    let bits = (two_over_pi(at) as f64).to_bits();
    f64::from_bits(soft::scale(bits, scale, soft::F64, soft::Round::Nearest))
}

/// v_cubeid_f32: the face of a cube map.
pub fn cube_id(x: f32, y: f32, z: f32) -> f32 {
    match major(x, y, z) {
        Axis::Z => 4.0 + f32::from(z < 0.0),
        Axis::Y => 2.0 + f32::from(y < 0.0),
        Axis::X => f32::from(x < 0.0),
    }
}

/// v_cubema_f32: twice the major axis.
pub fn cube_ma(x: f32, y: f32, z: f32) -> f32 {
    2.0 * match major(x, y, z) {
        Axis::Z => z,
        Axis::Y => y,
        Axis::X => x,
    }
}

/// v_cubesc_f32: the coordinate across the face.
pub fn cube_sc(x: f32, y: f32, z: f32) -> f32 {
    match major(x, y, z) {
        Axis::Z if z < 0.0 => -x,
        Axis::Z | Axis::Y => x,
        Axis::X if x < 0.0 => z,
        Axis::X => -z,
    }
}

/// v_cubetc_f32: the coordinate down the face.
pub fn cube_tc(x: f32, y: f32, z: f32) -> f32 {
    match major(x, y, z) {
        Axis::Y if y < 0.0 => -z,
        Axis::Y => z,
        Axis::Z | Axis::X => -y,
    }
}

enum Axis {
    X,
    Y,
    Z,
}

fn major(x: f32, y: f32, z: f32) -> Axis {
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        Axis::Z
    } else if y.abs() >= x.abs() {
        Axis::Y
    } else {
        Axis::X
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests_rng::Rng;
    use super::*;

    #[test]
    fn turns_have_exact_quarters() {
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0, -0.25, 1e6].map(sin),
            [0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0]
        );
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(cos), [1.0, 0.0, -1.0, 0.0, 1.0]);
        assert!(sin(f64::INFINITY).is_nan() && cos(f64::NAN).is_nan());
    }

    #[test]
    fn exponent_and_logarithm_flush_denormals() {
        assert_eq!(exp2_f32(-126.0), f32::MIN_POSITIVE);
        assert_eq!(exp2_f32(-127.0), 0.0);
        assert_eq!(exp2_f32(f32::NEG_INFINITY), 0.0);
        assert_eq!(log2_f32(1e-40), f32::NEG_INFINITY);
        assert_eq!(log2_f32(-0.0), f32::NEG_INFINITY);
        assert!(log2_f32(-1.0).is_nan());
        assert_eq!((exp2_f32(10.0), log2_f32(0.125)), (1024.0, -3.0));
        assert_eq!((rsq(-0.0), rsq(4.0)), (f64::NEG_INFINITY, 0.5));
    }

    #[test]
    fn segments_of_two_over_pi_add_up_to_it() {
        let sum = trig_preop(1.0, 0) + trig_preop(1.0, 1);
        assert_eq!(sum, std::f64::consts::FRAC_2_PI);
        // A large argument skips the bits that only give whole turns.
        let big = 2f64.powi(200);
        let skipped = 1023 + 200 - 1077;
        let shifted = trig_preop(big, 0) * 2f64.powi(skipped);
        let mut want = 0.0;
        for segment in 0..4 {
            want += trig_preop(1.0, segment) * 2f64.powi(skipped) % 1.0;
        }
        assert!((shifted - want % 1.0).abs() < 2f64.powi(-40), "{shifted} {want}");
        assert_eq!(trig_preop(1.0, 31), 0.0);
    }

    #[test]
    fn cube_faces_are_those_of_the_largest_axis() {
        let mut rng = Rng::new(60);
        for _ in 0..10_000 {
            let v = [(); 3].map(|()| rng.below(2001) as f32 - 1000.0);
            let face = cube_id(v[0], v[1], v[2]) as usize;
            let axis = face / 2;
            assert!(v.iter().all(|c| c.abs() <= v[axis].abs()));
            assert_eq!(face % 2 == 1, v[axis] < 0.0);
            assert_eq!(cube_ma(v[0], v[1], v[2]), 2.0 * v[axis]);
            let others: Vec<f32> = (0..3).filter(|&k| k != axis).map(|k| v[k].abs()).collect();
            let mut got = [cube_sc(v[0], v[1], v[2]).abs(), cube_tc(v[0], v[1], v[2]).abs()];
            if axis == 0 {
                got.swap(0, 1);
            }
            assert_eq!(got.to_vec(), others);
        }
    }
}
