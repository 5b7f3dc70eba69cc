//! Integer operations that have a name of their own.

/// Low 24 bits.
#[inline(always)]
pub const fn u24(x: u32) -> u32 {
    x & 0x00ff_ffff
}

/// Low 24 bits, sign-extended.
#[inline(always)]
pub const fn i24(x: u32) -> i32 {
    (x as i32) << 8 >> 8
}

/// v_bfe_u32.
#[inline(always)]
pub const fn bfe_u32(x: u32, offset: u32, width: u32) -> u32 {
    (x >> (offset & 31)) & ((1 << (width & 31)) - 1)
}

/// v_bfe_i32: a width of 0 gives 0.
#[inline(always)]
pub const fn bfe_i32(x: u32, offset: u32, width: u32) -> u32 {
    let width = width & 31;
    let shifted = (x as i32) >> (offset & 31);
    // Two shifts by up to 31, the first by at least 1, so that neither is by 32.
    let up = 31 - width;
    let extended = shifted << up << 1 >> up >> 1;
    if width == 0 { 0 } else { extended as u32 }
}

/// v_bfm_b32.
#[inline(always)]
pub const fn bfm(width: u32, offset: u32) -> u32 {
    ((1 << (width & 31)) - 1) << (offset & 31)
}

/// v_alignbit_b32: the low word of `{high, low}` shifted right.
#[inline(always)]
pub const fn alignbit(high: u32, low: u32, by: u32) -> u32 {
    (((high as u64) << 32 | low as u64) >> (by & 31)) as u32
}

/// v_alignbyte_b32.
#[inline(always)]
pub const fn alignbyte(high: u32, low: u32, by: u32) -> u32 {
    alignbit(high, low, (by & 3) * 8)
}

/// v_perm_b32: each selector byte picks a byte of `{high, low}`, a sign, zeros or ones.
pub const fn perm(high: u32, low: u32, selectors: u32) -> u32 {
    let data = (high as u64) << 32 | low as u64;
    let mut out = 0;
    let mut k = 0;
    while k < 4 {
        let byte = match selectors >> (8 * k) & 0xff {
            s @ 0..8 => (data >> (8 * s) & 0xff) as u32,
            // Signs of the four halves of the pair.
            s @ 8..12 => (data >> (16 * (s - 8) + 15) & 1) as u32 * 0xff,
            12 => 0,
            _ => 0xff,
        };
        out |= byte << (8 * k);
        k += 1;
    }
    out
}

const fn byte(x: u32, k: u32) -> u32 {
    x >> (8 * k) & 0xff
}

/// v_sad_u8.
pub const fn sad_u8(a: u32, b: u32, c: u32) -> u32 {
    let sum = byte(a, 0).abs_diff(byte(b, 0))
        + byte(a, 1).abs_diff(byte(b, 1))
        + byte(a, 2).abs_diff(byte(b, 2))
        + byte(a, 3).abs_diff(byte(b, 3));
    c.wrapping_add(sum)
}

/// v_msad_u8: bytes that are zero in the reference `b` are left out.
pub const fn msad_u8(a: u32, b: u32, c: u32) -> u32 {
    let mut sum = c;
    let mut k = 0;
    while k < 4 {
        if byte(b, k) != 0 {
            sum = sum.wrapping_add(byte(a, k).abs_diff(byte(b, k)));
        }
        k += 1;
    }
    sum
}

/// v_sad_u16.
pub const fn sad_u16(a: u32, b: u32, c: u32) -> u32 {
    let low = (a & 0xffff).abs_diff(b & 0xffff);
    let high = (a >> 16).abs_diff(b >> 16);
    c.wrapping_add(low).wrapping_add(high)
}

/// v_qsad_pk_u16_u8 and v_mqsad_pk_u16_u8: four sums at byte offsets 0 to 3 of `a`.
pub const fn qsad_pk(a: u64, b: u32, c: u64, masked: bool) -> u64 {
    let mut out = 0;
    let mut k = 0;
    while k < 4 {
        let window = (a >> (8 * k)) as u32;
        let sum = (c >> (16 * k)) as u32 & 0xffff;
        let sum = if masked { msad_u8(window, b, sum) } else { sad_u8(window, b, sum) };
        out |= ((sum & 0xffff) as u64) << (16 * k);
        k += 1;
    }
    out
}

/// v_lerp_u8: per byte `(a + b + round) >> 1`, `round` the lowest bit of the byte of `c`.
pub const fn lerp_u8(a: u32, b: u32, c: u32) -> u32 {
    let mut out = 0;
    let mut k = 0;
    while k < 4 {
        out |= ((byte(a, k) + byte(b, k) + (byte(c, k) & 1)) >> 1) << (8 * k);
        k += 1;
    }
    out
}

/// v_ffbh_u32, v_clz_i32_u32: all ones when there is no set bit.
#[inline(always)]
pub const fn ffbh_u32(x: u32) -> u32 {
    if x == 0 { u32::MAX } else { x.leading_zeros() }
}

/// v_ffbl_b32, v_ctz_i32_b32.
#[inline(always)]
pub const fn ffbl(x: u32) -> u32 {
    if x == 0 { u32::MAX } else { x.trailing_zeros() }
}

/// v_ffbh_i32, v_cls_i32: distance from the top to the first bit unlike the sign.
#[inline(always)]
pub const fn ffbh_i32(x: u32) -> u32 {
    ffbh_u32(x ^ ((x as i32) >> 31) as u32)
}

/// Lanes below this one, as v_mbcnt_lo sees them (lanes 0..=31).
#[inline(always)]
pub const fn below_lo(lane: usize) -> u32 {
    if lane >= 32 { u32::MAX } else { (1 << lane) - 1 }
}

/// Lanes below this one, as v_mbcnt_hi sees them (lanes 32..=63).
#[inline(always)]
pub const fn below_hi(lane: usize) -> u32 {
    if lane < 32 { 0 } else { (1 << (lane - 32)) - 1 }
}

/// Middle of three.
#[inline(always)]
pub fn med3<T: Ord>(a: T, b: T, c: T) -> T {
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    low.max(high.min(c))
}

/// v_sat_pk_u8_i16.
pub const fn sat_pk_u8_i16(x: u32) -> u16 {
    const fn sat(x: i16) -> u16 {
        if x < 0 {
            0
        } else if x > 255 {
            255
        } else {
            x as u16
        }
    }
    sat(x as i16) | sat((x >> 16) as i16) << 8
}

/// v_screen_partition_4se_b32: which of four shader engines a rectangle of 32-pixel tiles touches.
/// The selector is two bits each of the tile coordinates x and y of the first corner, then of the
/// last; tile (x, y) belongs to engine `{x[0] ^ y[1], y[0] ^ x[1]}`.
pub const fn screen_partition(select: u32) -> u32 {
    let (x1, y1) = (select >> 2 & 3, select & 3);
    let mut engines = 0;
    let mut x = select >> 6 & 3;
    loop {
        let mut y = select >> 4 & 3;
        loop {
            engines |= 1 << (((x ^ y >> 1) & 1) << 1 | (y ^ x >> 1) & 1);
            if y == y1 {
                break;
            }
            y = (y + 1) & 3;
        }
        if x == x1 {
            return engines;
        }
        x = (x + 1) & 3;
    }
}

/// Products of packed integers, summed into `c`. `BITS` wide elements, each side signed or not.
pub fn dot<const BITS: u32>(a: u32, b: u32, c: i64, signed: [bool; 2]) -> i64 {
    let element = |x: u32, k: u32, signed: bool| {
        let up = x << (32 - BITS * (k + 1));
        if signed { i64::from(up as i32 >> (32 - BITS)) } else { i64::from(up >> (32 - BITS)) }
    };
    (0..32 / BITS).fold(c, |sum, k| sum + element(a, k, signed[0]) * element(b, k, signed[1]))
}

#[cfg(test)]
mod tests {
    use super::super::super::tests_rng::Rng;
    use super::*;

    #[test]
    fn field_operations_equal_wide_arithmetic() {
        let mut rng = Rng::new(40);
        for _ in 0..200_000 {
            let (x, y, z) = (rng.int(), rng.int(), rng.int());
            let (offset, width) = (y % 32, z % 32);
            let field = (u64::from(x) >> offset) % (1u64 << width);
            assert_eq!(u64::from(bfe_u32(x, y, z)), field);
            let signed = i64::from(x as i32) >> offset;
            let modulus = 1i64 << width;
            let want = (signed.rem_euclid(modulus) + modulus / 2) % modulus - modulus / 2;
            assert_eq!(
                i64::from(bfe_i32(x, y, z) as i32),
                if width == 0 { 0 } else { want },
                "{x:x} {offset} {width}"
            );
            assert_eq!(u64::from(bfm(y, z)), (((1u64 << (y % 32)) - 1) << (z % 32)) & 0xffff_ffff);
            let pair = u64::from(x) << 32 | u64::from(y);
            assert_eq!(alignbit(x, y, z), (pair >> (z % 32)) as u32);
            assert_eq!(alignbyte(x, y, z), (pair >> (z % 4 * 8)) as u32);
            assert_eq!(u24(x), x % (1 << 24));
            assert_eq!(i64::from(i24(x)), (i64::from(x) + (1 << 23)) % (1 << 24) - (1 << 23));
        }
    }

    #[test]
    fn perm_picks_bytes_signs_and_constants() {
        let (high, low) = (0x8877_6655, 0x4433_2211);
        assert_eq!(perm(high, low, 0x0706_0100), 0x8877_2211);
        assert_eq!(perm(high, low, 0x0c0d_ff04), 0x00ff_ff55);
        // Signs: byte 1, byte 3, byte 5, byte 7.
        assert_eq!(perm(0x8000_0000, 0x0000_8000, 0x0b0a_0908), 0xff00_00ff);
        assert_eq!(perm(0x0000_8000, 0x8000_0000, 0x0b0a_0908), 0x00ff_ff00);
    }

    #[test]
    fn sums_of_differences_equal_their_definition() {
        let mut rng = Rng::new(41);
        for _ in 0..100_000 {
            let (a, b, c) = (rng.u32(), rng.u32() & rng.u32(), rng.u32());
            let (x, y) = (a.to_le_bytes(), b.to_le_bytes());
            let terms = x.iter().zip(y).map(|(&p, q)| (u32::from(p.abs_diff(q)), q));
            let all = terms.clone().fold(c, |s, (d, _)| s.wrapping_add(d));
            let masked = terms.filter(|&(_, q)| q != 0).fold(c, |s, (d, _)| s.wrapping_add(d));
            assert_eq!(sad_u8(a, b, c), all);
            assert_eq!(msad_u8(a, b, c), masked);
            let wide = u64::from(rng.u32()) << 32 | u64::from(a);
            let got = qsad_pk(wide, b, 0, false);
            for k in 0..4 {
                let window = (wide >> (8 * k)) as u32;
                assert_eq!((got >> (16 * k)) as u16, sad_u8(window, b, 0) as u16);
            }
            let lerp = lerp_u8(a, b, c).to_le_bytes();
            for k in 0..4 {
                let want =
                    (u32::from(x[k]) + u32::from(y[k]) + u32::from(c.to_le_bytes()[k] & 1)) / 2;
                assert_eq!(u32::from(lerp[k]), want);
            }
        }
    }

    #[test]
    fn screen_partitions_equal_the_published_table() {
        // Rows of 16 entries of the "Vega" document's table, the first entry in the low digit.
        for (row, entries) in [
            (0, 0xffff_fff7_fff5_f731u64),
            (1, 0xffff_ffbf_ffaf_e62f),
            (7, 0x7fff_6ff6_2fe6_ffff),
            (12, 0xfec8_ffff_fffd_fff9),
            (15, 0x1fd9_ffff_bfff_9ff9),
        ] {
            let got = (0..16)
                .fold(0, |got, k| got | u64::from(screen_partition(16 * row + k)) << (4 * k));
            assert_eq!(got, entries, "row {row}");
        }
        assert_eq!(screen_partition(0xffff_ff00), 1, "only eight bits count");
    }

    #[test]
    fn bit_searches_scan_from_their_end() {
        let mut rng = Rng::new(42);
        for _ in 0..100_000 {
            let x = rng.int();
            let top = (0..32).find(|k| x >> (31 - k) & 1 == 1).unwrap_or(u32::MAX);
            let low = (0..32).find(|k| x >> k & 1 == 1).unwrap_or(u32::MAX);
            let sign = (1..32).find(|k| x >> (31 - k) & 1 != x >> 31).unwrap_or(u32::MAX);
            assert_eq!((ffbh_u32(x), ffbl(x), ffbh_i32(x)), (top, low, sign), "{x:x}");
        }
    }

    #[test]
    fn the_median_and_dot_products_equal_their_definition() {
        let mut rng = Rng::new(43);
        for _ in 0..100_000 {
            let mut v = [rng.int() as i32, rng.int() as i32, rng.int() as i32];
            let got = med3(v[0], v[1], v[2]);
            v.sort();
            assert_eq!(got, v[1]);
            let (a, b) = (rng.u32(), rng.u32());
            let (x, y) = (a.to_le_bytes(), b.to_le_bytes());
            let want: i64 = (0..4).map(|k| i64::from(x[k] as i8) * i64::from(y[k])).sum();
            assert_eq!(dot::<8>(a, b, 5, [true, false]), want + 5);
            let nibbles = (0..8)
                .map(|k| i64::from(a >> (4 * k) & 15) * i64::from(b >> (4 * k) & 15))
                .sum::<i64>();
            assert_eq!(dot::<4>(a, b, 0, [false, false]), nibbles);
        }
    }

    #[test]
    fn lanes_below_count_the_lane_number() {
        for lane in 0..64 {
            assert_eq!((below_lo(lane).count_ones() + below_hi(lane).count_ones()) as usize, lane);
        }
    }
}
