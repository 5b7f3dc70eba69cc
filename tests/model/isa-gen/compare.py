#!/usr/bin/env python3
"""Compares our decoder with LLVM 19's on random words of every format.

Both must agree on whether the words decode, on mnemonic and size, and (--text) on the whole text.
usage: compare.py [--count N] [--seed S] [--text] [--target T]...
The decoder is run through `cargo run -p kfd-model --example isa_print`, or --decoder PROGRAM. Every difference
is put under a reason; one that has none makes the exit code 1. --list writes what disagreements.txt holds.
"""
import argparse
import collections
import os
import random
import re
import subprocess

from probe import GFX9, MC, TARGETS, disassemble

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


def ours(lines, program):
    command = [program] if program else ["cargo", "run", "-q", "-p", "kfd-model", "--example", "isa_print"]
    run = subprocess.run(command, cwd=ROOT,
                         input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def heads(target):
    """(format, leading bits, their number) of every format of a target."""
    common = [("SOP1", 0x17D, 9), ("SOP2", 0b10, 2), ("SOPC", 0x17E, 9), ("SOPK", 0b1011, 4), ("SOPP", 0x17F, 9),
              ("VOP1", 0x3F, 7), ("VOP2", 0, 1), ("VOPC", 0x3E, 7), ("DS", 0x36, 6), ("FLAT", 0x37, 6), ("MUBUF", 0x38, 6),
              ("MTBUF", 0x3A, 6)]
    if target in GFX9:
        return common + [("SMEM", 0x30, 6), ("VOP3", 0x34, 6), ("VOP3P", 0x1A7, 9)]
    return common + [("SMEM", 0x3D, 6), ("VOP3", 0x35, 6), ("VOP3P", 0x198, 9), ("VOPD", 0x32, 6)]


def random_words(rng, target, fmt, head, bits):
    """Random words of a format, with operand fields that are likely to be valid, and few modifiers."""
    first = head << (32 - bits) | rng.getrandbits(32 - bits)
    second = rng.getrandbits(32)
    third = rng.getrandbits(32)
    g9 = target in GFX9
    calm = rng.random()
    # LLVM 19 crashes on some reserved operand codes of matrix instructions: keep those to registers.
    if g9 and fmt == "VOP3" and first >> 23 == 0x1A7:
        first ^= 1 << 25
    if g9 and fmt == "VOP1" and first >> 9 & 0xFF == 0x52:
        first |= 0x100
    if g9 and fmt == "VOP3P" and (first >> 16 & 0x7F) >= 0x40:
        second = second & 0xF8000000 | 0x100 | 0x20000 | rng.choice([0x4000000, 0x2000000]) | rng.getrandbits(26) & 0x3F9FCFE
        return [first, second, third]
    if fmt in ("VOP3", "VOP3P"):
        codes = [rng.choice([256 + rng.randrange(256), rng.randrange(106) & ~1, 128 + rng.randrange(81), 240 + rng.randrange(9),
                             rng.randrange(512)]) for _ in range(3)]
        keep = rng.getrandbits(5) if calm < 0.3 else 0
        second = codes[0] | codes[1] << 9 | codes[2] << 18 | keep << 27
        if calm > 0.3:
            first &= 0xFFFF00FF
            if fmt == "VOP3P":
                first |= 0x4000
                second |= 3 << 27
        if rng.random() < 0.5:  # unused sources are zero for LLVM 19
            second &= rng.choice([0x1FF, 0x3FFFF]) | 0xF8000000
    elif fmt in ("FLAT",):
        if calm > 0.1:
            second = second & ~(0x7F << 16) | rng.choice([0x7F if g9 else 124, rng.randrange(100) & ~1]) << 16
        if rng.random() < 0.5:
            second &= rng.choice([0x00FFFFFF, 0xFFFF00FF])
        first &= rng.choice([0xFFFFFFFF, ~(7 << 13) if not g9 else ~(1 << 25 | 3 << 16)])
    elif fmt == "DS":
        second &= rng.choice([0xFFFFFFFF, 0x00FFFFFF, 0xFF0000FF, 0x0000FFFF, 0xFF00FFFF, 0x000000FF, 0xFF000000])
        first &= ~(1 << 16 if g9 else 1 << 17) if calm > 0.2 else 0xFFFFFFFF
    elif fmt in ("MUBUF", "MTBUF"):
        second = second & 0x00FFFFFF | rng.choice([rng.randrange(106), 128 + rng.randrange(81), rng.getrandbits(8)]) << 24
        if calm > 0.2:
            second &= ~(1 << 23 if g9 else 1 << 21)
            if g9:
                first &= ~(1 << 16) if fmt == "MUBUF" else 0xFFFFFFFF
    elif fmt == "SMEM" and calm > 0.2:
        second = second & 0x1FFFFF | (124 << 25 if not g9 else 0)
        first &= ~3 if rng.random() < 0.5 else 0xFFFFFFFF
        if g9:
            first = first & ~(1 << 14) | 1 << 17
    elif fmt == "VOP2" and calm < 0.2:
        first = first & ~0x1FF | rng.choice([249, 250, 233, 255])
        second = dpp_word(rng) if first & 0x1FF != 255 else second
    elif fmt in ("VOP1", "VOPC") and calm < 0.4:
        first = first & ~0x1FF | rng.choice([249, 250, 233, 255])
        second = dpp_word(rng) if first & 0x1FF != 255 else second
    return [first, second, third]


def dpp_word(rng):
    ctrl = rng.choice([rng.getrandbits(8), 0x100 + rng.randrange(0x70)])
    return rng.getrandbits(32) & 0xFFF000FF | ctrl << 8 if rng.random() < 0.7 else rng.getrandbits(32) & 0x06061EFF


def assembles(target, texts):
    """Which texts LLVM's assembler takes."""
    run = subprocess.run([MC, "-triple=amdgcn", "-mcpu=" + target, "-filetype=null"], input="\n".join(texts) + "\n",
                         capture_output=True, text=True, env=dict(os.environ, LLVM_DISABLE_SYMBOLIZATION="1"))
    bad = {int(line) for line in re.findall(r"<stdin>:(\d+):\d+: error", run.stderr)}
    return [n not in bad for n in range(1, len(texts) + 1)]


# LLVM prints these operands by name, we by number.
SYMBOLIC = re.compile(r"(hwreg|sendmsg|gpr_idx)\([^)]*\)|swizzle\(.*\)|format:\S+|offset:\d+(?=.*swizzle)|depctr_\w+\(\d+\)")
NUMBERED = re.compile(r"s_(sendmsg|sendmsghalt|delay_alu|set_gpr_idx_on|set_gpr_idx_mode|waitcnt_depctr|sendmsg_rtn_b\d+|"
                      r"getreg_b32|atc_probe|atc_probe_buffer|setreg_b32|setreg_imm32_b32|set_inst_prefetch_distance|clause|ttracedata_imm)$")
BRANCH = re.compile(r"(s_(?:branch|cbranch\w*|call_b64|subvector\w*) (?:.*, )?)(\d+)$")


def normal(text):
    """A text without what LLVM and we print differently on purpose."""
    text = re.sub(r"/\*.*?\*/", "", text)
    text = re.sub(r"\s+", " ", text.split("//")[0].split(";")[0]).strip()
    name = text.split()[0]
    if NUMBERED.match(name) or name == "ds_swizzle_b32":
        return name
    branch = BRANCH.match(text)
    if branch:
        distance = (int(branch.group(2)) ^ 0x8000) - 0x8000
        return branch.group(1) + hex((4 + 4 * distance) & 0xFFFFFFFFFFFFFFFF)
    return re.sub(r"\b(v\d+)\.l\b", r"\1", SYMBOLIC.sub("", text))


def scalar_operands(text):
    """Different scalar registers and special values that a text reads."""
    operands = text.split(" ", 1)[-1]
    return set(re.findall(r"\b(?:s\d+|s\[\d+:\d+\]|ttmp\d+|ttmp\[\d+:\d+\]|vcc\w*|exec\w*|m0|src_\w+|"
                          r"flat_scratch\w*|xnack_mask\w*|0x[0-9a-f]+)", operands))


def odd_group(text):
    """Whether a text has a group of VGPRs that starts at an odd number."""
    return any(int(n) & 1 for n in re.findall(r"[va]\[(\d+):", text))


def reason(target, fmt, their, mine, kind):
    """Why LLVM and we differ, or None."""
    g9, unified = target in GFX9, target in ("gfx90a", "gfx942")
    if kind == "only LLVM":
        if "/*" in their:
            return "LLVM prints a DPP control that the target does not have"
        if "field sdwa" in mine:
            return "reserved SDWA selector"
        if g9 and "code 0x7d" in mine:
            return "gfx9 has no register 125"
        if "src_" in their:
            return "special value where the operand class has none"
        if "field soffset" in mine:
            return "literal as buffer offset"
        if mine.startswith("VINTERP"):
            return "interpolation is not compute"
        if "field lds" in mine or "field gds" in mine:
            return "lds or gds bit on an instruction without that form"
    if kind == "only ours":
        if their and "Lo128" in their or re.search(r"v\d+\.h", mine):
            return "high half of a 16-bit operand"
        if their and "XEXEC" in their and "XM0" not in their:
            return "EXEC or M0 as scalar memory data"
        if not g9 and "op_sel" in mine:
            return "op_sel of a 16-bit operation"
        if "s[100:103]" in mine:
            return "s[100:103] on gfx9, which LLVM decodes but does not assemble"
        if " gds" in mine:
            return "gds bit on an instruction that works within a wave"
        if "csub" in mine or "_pk_add_f16" in mine or "atomic_add_f32" in mine:
            return "atomic with or without a result against its only form"
        if fmt in ("MUBUF", "MTBUF") and ", null" in mine:
            return "null as resource or offset, which LLVM decodes but does not assemble"
        if re.match(r"buffer_(wb|inv|gl)", mine):
            return "cache maintenance with bits its form does not use"
        if fmt in ("MUBUF", "MTBUF") and "src_" in mine:
            return "special value as buffer offset"
        if "v_smfmac" in mine or "v_wmma" in mine:
            return "matrix modifiers that an assembler forbids"
        if re.match(r"v_(div_fmas|ldexp|cvt_pkaccum|cvt_pk_u8)|s_cbranch_g_fork", mine):
            return "modifier or literal that an assembler forbids"
        if " tfe" in mine or mine.endswith(" lds"):
            return "tfe and lds of buffer instructions"
        if unified and odd_group(mine):
            return "odd VGPR group (an assembler's rule)"
        if fmt == "VOPD":
            return "pairing that an assembler forbids"
        if fmt in ("VOP2", "VOPC", "VOP1", "VOP3", "VOP3P") and len(scalar_operands(mine)) >= 2 - (not g9):
            return "more scalar operands than an assembler allows"
        if fmt == "SMEM":
            return "scalar memory: fields that the form does not use"
        if target == "gfx908" and fmt == "VOP3P":
            return "gfx908 matrix operation with unused bits"
    if kind == "text":
        if "0.15915494" in their:
            return "LLVM spells 1/(2 pi) as double in some bf16 operands"
        if fmt == "FLAT" and not g9:
            return "gfx11 FLAT offset: 12 bits here, 13 in LLVM's text"
        if "sext(" in their:
            return "LLVM shows neg of an integer source in DPP as sext"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="words per target and format")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--target", action="append")
    parser.add_argument("--decoder", help="a built isa_print")
    parser.add_argument("--list", metavar="FILE", help="write the reasons with an example each")
    parser.add_argument("--show", type=int, default=4, help="examples per kind of difference")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    kinds = collections.Counter()
    reasons, samples = collections.Counter(), {}
    examples = collections.defaultdict(list)
    total = ignored = 0
    for target in args.target or TARGETS:
        words, formats = [], []
        for fmt, head, bits in heads(target):
            for _ in range(args.count):
                words.append(random_words(rng, target, fmt, head, bits))
                formats.append(fmt)
        wave = 64 if target in GFX9 else 32
        theirs = disassemble(target, words)
        lines = ours(("%s %d %s" % (target, wave, " ".join("%x" % w for w in ws)) for ws in words), args.decoder)
        good = assembles(target, [line.split(" ", 1)[1] if line[0] != "-" else "" for line in lines])
        for ws, fmt, their, line, is_good in zip(words, formats, theirs, lines, good):
            total += 1
            size, mine = line.split(" ", 1)
            invalid = their is not None and ("Invalid register" in their[0] or "Invalid" in their[0])
            if their is None or invalid:
                if size == "-":
                    continue
                if is_good:  # the same instruction with its unused fields cleared
                    ignored += 1
                    continue
                kind = (fmt, "only ours", mine.split()[0])
            elif size == "-":
                kind = (fmt, "only LLVM", their[0].split()[0])
            elif int(size) != their[1] or mine.split()[0] != their[0].split()[0]:
                kind = (fmt, "differs", their[0].split()[0] + " / " + mine.split()[0])
            elif args.text and normal(their[0]) != normal(mine):
                kind = (fmt, "text", their[0].split()[0])
            else:
                continue
            why = reason(target, fmt, their and their[0], mine, kind[1])
            if why:
                reasons[kind[1], why] += 1
                sample = "%s %s | LLVM: %s | ours: %s" % (target, " ".join("%08x" % w for w in ws), their and their[0], mine)
                samples.setdefault((kind[1], why, fmt), sample)
                continue
            kinds[kind] += 1
            if len(examples[kind]) < args.show:
                examples[kind].append("%s %s: LLVM %s, ours %s" % (target, " ".join("%08x" % w for w in ws), their and their[0], mine))
    summary = collections.Counter()
    for kind, n in kinds.items():
        summary[kind[:2]] += n
    for (fmt, what), n in sorted(summary.items()):
        print("## %s %s: %d" % (fmt, what, n))
        for kind in sorted(k for k in kinds if k[:2] == (fmt, what)):
            print("  %s (%d)" % (kind[2], kinds[kind]))
            for example in examples[kind]:
                print("    " + example)
    for (what, why), n in sorted(reasons.items()):
        print("%s: %s: %d" % (what, why, n))
    print("%d words: %d decode only here, but assemble from our text (unused fields); %d explained, %d other differences"
          % (total, ignored, sum(reasons.values()), sum(kinds.values())))
    if args.list:
        with open(args.list, "w") as f:
            f.write("# Where our decoder and LLVM 19's differ on random words, by reason, with an example for each format.\n"
                    "# Made by compare.py --text --count %d --seed %d --list.\n" % (args.count, args.seed))
            for what, why in sorted(reasons):
                f.write("\n## %s: %s (%d of %d words)\n" % (what, why, reasons[what, why], total))
                for key in sorted(samples):
                    if key[:2] == (what, why):
                        f.write("%s %s\n" % (key[2], samples[key]))
    raise SystemExit(1 if kinds else 0)


if __name__ == "__main__":
    main()
