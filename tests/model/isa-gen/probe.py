"""Asks LLVM's disassembler what every opcode number of every format means on every target."""
import itertools
import os
import re
import subprocess

TARGETS = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942",
           "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151"]
GFX9 = TARGETS[:5]
MC = "llvm-mc-19"

# Register numbers of the probes. Each field gets its own, so that a printed operand names its field.
# Tuples of up to 32 registers must not collide.
VDST, SRC0, SRC1, SRC2 = 64, 32, 96, 0
SDST, SSRC0, SSRC1, SSRC2 = 64, 32, 48, 16
DATA1 = 128

CRASHES = []  # (target, words) that crash LLVM

ENC = re.compile(r"^\t(.*?)\s*; encoding: \[([0-9a-fx,]+)\]")


def disassemble(target, words_list, attrs=""):
    """Returns, for each list of words, LLVM's text of its first instruction and that one's size in
    words, or None."""
    out = []
    for start in range(0, len(words_list), 60000):
        out += _disassemble(target, words_list[start:start + 60000], attrs)
    return out


def _disassemble(target, words_list, attrs):
    lines = []
    for i, words in enumerate(words_list):
        data = b"".join(w.to_bytes(4, "little") for w in words)
        lines.append("0x%02x 0x%02x 0x80 0xbf" % (i & 255, i >> 8))
        lines.append("[" + " ".join("0x%02x" % b for b in data) + "]")
    run = subprocess.run([MC, "--disassemble", "-triple=amdgcn", "-mcpu=" + target, "--show-encoding"]
                         + (["-mattr=" + attrs] if attrs else []),
                         input="\n".join(lines) + "\n", capture_output=True, text=True,
                         env=dict(os.environ, LLVM_DISABLE_SYMBOLIZATION="1"))
    if run.returncode < 0:  # a few encodings crash LLVM 19: find them, call them undecodable
        if len(words_list) == 1:
            CRASHES.append((target, words_list[0]))
            return [None]
        half = len(words_list) // 2
        return _disassemble(target, words_list[:half], attrs) + _disassemble(target, words_list[half:], attrs)
    result = [None] * len(words_list)
    current, first = -1, True
    for line in run.stdout.splitlines():
        found = ENC.match(line)
        if not found:
            continue
        text, enc = found.group(1), bytes(int(b, 16) for b in found.group(2).split(","))
        nxt = current + 1
        if len(enc) == 4 and enc[2:] == b"\x80\xbf" and nxt < len(words_list) \
                and enc[0] | enc[1] << 8 == nxt and text.startswith("s_nop"):
            current, first = nxt, True
        elif first:
            first = False
            data = b"".join(w.to_bytes(4, "little") for w in words_list[current])
            if data.startswith(enc):
                result[current] = (text, len(enc) // 4)
    return result


def fills(target, fmt):
    """Encodings to try for one format: {opcode: [words, ...]}, the fullest operand fill first."""
    g9 = target in GFX9
    v = 256
    out = {}

    def put(op, *words):
        out.setdefault(op, []).append(list(words))

    lit = 0x12345678
    srcs = [(v + SRC0, v + SRC1, v + SRC2), (v + SRC0, v + SRC1, SSRC2), (v + SRC0, SSRC1, v + SRC2), (v + SRC0, SSRC1, SSRC2),
            (SSRC0, SSRC1, v + SRC2), (SSRC0, SSRC1, SSRC2),
            (v + SRC0, v + SRC1, 0), (v + SRC0, SSRC1, 0), (SSRC0, SSRC1, 0), (SSRC0, v + SRC1, 0),
            (v + SRC0, 0, 0), (SSRC0, 0, 0), (0, 0, 0)]
    if fmt == "SOP1":
        for op in range(256):
            put(op, 0xBE800000 | SDST << 16 | op << 8 | SSRC0)
            put(op, 0xBE800000 | SDST << 16 | op << 8)
            put(op, 0xBE800000 | op << 8 | SSRC0)
            put(op, 0xBE800000 | SDST << 16 | op << 8 | 0x80)
    elif fmt == "SOP2":
        for op in range(96):
            put(op, 0x80000000 | op << 23 | SDST << 16 | SSRC1 << 8 | SSRC0)
            put(op, 0x80000000 | op << 23 | SSRC1 << 8 | SSRC0)
            put(op, 0x80000000 | op << 23 | SDST << 16 | SSRC1 << 8 | SSRC0, lit)
    elif fmt == "SOPC":
        for op in range(128):
            put(op, 0xBF000000 | op << 16 | SSRC1 << 8 | SSRC0)
    elif fmt == "SOPK":
        for op in range(29):
            put(op, 0xB0000000 | op << 23 | SDST << 16 | 0x1234)
            put(op, 0xB0000000 | op << 23 | SDST << 16 | 0x1234, lit)
            put(op, 0xB0000000 | op << 23 | 0x1234)
            put(op, 0xB0000000 | op << 23 | 0x1234, lit)
            put(op, 0xB0000000 | op << 23 | 0x7c << 16 | 0x1234)
    elif fmt == "SOPP":
        for op in range(128):
            put(op, 0xBF800000 | op << 16 | 0x10)
            put(op, 0xBF800000 | op << 16)
    elif fmt == "SMEM":
        for op in range(256):
            if g9:
                put(op, 0xC0020000 | op << 18 | SDST << 6 | SSRC0 >> 1, 0x10)
                put(op, 0xC0020000 | op << 18 | 8 << 6 | SSRC0 >> 1, 0x10)
                put(op, 0xC0020000 | op << 18 | SSRC0 >> 1, 0x10)
                put(op, 0xC0000000 | op << 18 | SDST << 6, 0)
                put(op, 0xC0000000 | op << 18, 0)
            else:
                put(op, 0xF4000000 | op << 18 | SDST << 6 | SSRC0 >> 1, 124 << 25 | 0x10)
                put(op, 0xF4000000 | op << 18, 0)
    elif fmt == "VOP1":
        for op in range(256):
            put(op, 0x7E000000 | VDST << 17 | op << 9 | v + SRC0)
            put(op, 0x7E000000 | VDST << 17 | op << 9 | SSRC0)
            put(op, 0x7E000000 | op << 9)
    elif fmt == "VOP2":
        for op in range(62):
            put(op, op << 25 | VDST << 17 | SRC1 << 9 | v + SRC0)
            put(op, op << 25 | VDST << 17 | SRC1 << 9 | v + SRC0, lit)
    elif fmt == "VOPC":
        for op in range(256):
            put(op, 0x7C000000 | op << 17 | SRC1 << 9 | v + SRC0)
    elif fmt in ("VOP3", "VOP3SD"):
        base = 0xD0000000 if g9 else 0xD4000000
        sd = SDST << 8 if fmt == "VOP3SD" else 0
        for op in range(896 if g9 else 1024):
            for vdst in (VDST, 126, 0):  # 126 is EXEC, which gfx11's v_cmpx names
                for a, b, c in srcs:
                    put(op, base | op << 16 | sd | vdst, a | b << 9 | c << 18)
    elif fmt == "VOP3P":
        base = 0xD3800000 if g9 else 0xCC000000
        for op in range(128):
            for a, b, c in srcs:
                put(op, base | op << 16 | 0x4000 | VDST, 3 << 27 | a | b << 9 | c << 18)
            for a, b, c in srcs:
                put(op, base | op << 16 | VDST, a | b << 9 | c << 18)
            # gfx908: C, D and the sources may have to be AccVGPRs.
            for acc in (0, 1, 2, 3):
                for a, b, c in srcs:
                    put(op, base | op << 16 | 0x8000 | VDST, acc << 27 | a | b << 9 | c << 18)
    elif fmt == "VOPDX" and not g9:  # the Y half is v_dual_mov_b32
        for op, b, tail in itertools.product(range(16), (SRC1, 0), ((), (lit,))):
            put(op, 0xC8000000 | op << 22 | 8 << 17 | b << 9 | v + SRC0, VDST << 24 | 51 << 17 | v + 33, *tail)
    elif fmt == "VOPDY" and not g9:  # the X half is v_dual_mov_b32
        for op, b, tail in itertools.product(range(32), (SRC1, 0), ((), (lit,))):
            put(op, 0xC8000000 | 8 << 22 | op << 17 | v + 33, 51 << 24 | VDST >> 1 << 17 | b << 9 | v + SRC0, *tail)
    elif fmt == "DS":
        for op in range(256):
            base = 0xD8000000 | (op << 17 if g9 else op << 18) | 0x10
            gds = 1 << 16 if g9 else 1 << 17
            for g, vdst, data1, data0, addr in itertools.product((0, gds), (VDST, 0), (DATA1, 0), (SRC1, 0), (SRC0, 0)):
                put(op, base | g, vdst << 24 | data1 << 16 | data0 << 8 | addr)
    elif fmt in ("FLAT", "SCRATCH", "GLOBAL"):
        seg = {"FLAT": 0, "SCRATCH": 1, "GLOBAL": 2}[fmt]
        off = 0x7F if g9 else 124
        for op in range(128):
            for glc, vdst, data, addr, saddr, sve in itertools.product(
                    (0, 1), (VDST, 0), (SRC1, 0), (SRC0, 0), (16, off) if seg else (off, 0), (1, 0)):
                if g9:
                    put(op, 0xDC000010 | op << 18 | seg << 14 | glc << 16 | sve << 13,
                        vdst << 24 | saddr << 16 | data << 8 | addr)
                else:
                    put(op, 0xDC000010 | op << 18 | seg << 16 | glc << 14,
                        vdst << 24 | sve << 23 | saddr << 16 | data << 8 | addr)
    elif fmt == "MUBUF":
        for op in range(128 if g9 else 256):
            if g9:
                for vdst in (VDST, 0):
                    put(op, 0xE0001010 | op << 18, SSRC1 << 24 | SSRC2 >> 2 << 16 | vdst << 8 | SRC0)
                put(op, 0xE0000000 | op << 18, 0)
            else:
                for vdst in (VDST, 0):
                    put(op, 0xE0000010 | op << 18, SSRC1 << 24 | 1 << 22 | SSRC2 >> 2 << 16 | vdst << 8 | SRC0)
                put(op, 0xE0000000 | op << 18, 0)
    elif fmt == "MTBUF":
        for op in range(16):
            if g9:
                put(op, 0xE8001010 | 4 << 23 | 4 << 19 | op << 15, SSRC1 << 24 | SSRC2 >> 2 << 16 | VDST << 8 | SRC0)
            else:
                put(op, 0xE8000010 | 22 << 19 | op << 15, SSRC1 << 24 | 1 << 22 | SSRC2 >> 2 << 16 | VDST << 8 | SRC0)
    return out


FORMATS = ["SOP1", "SOP2", "SOPC", "SOPK", "SOPP", "SMEM", "VOP1", "VOP2", "VOPC", "VOP3", "VOP3SD", "VOP3P",
           "VOPDX", "VOPDY", "DS", "FLAT", "SCRATCH", "GLOBAL", "MUBUF", "MTBUF"]


def probe(target):
    """Returns {(format, opcode): [(words, text, size), ...]} of everything that decodes."""
    keys, words = [], []
    for fmt in FORMATS:
        for op, candidates in fills(target, fmt).items():
            for w in candidates:
                keys.append((fmt, op))
                words.append(w)
    found = {}
    for key, w, text in zip(keys, words, disassemble(target, words)):
        if text is not None:
            found.setdefault(key, []).append((w, text[0], text[1]))
    return found


if __name__ == "__main__":
    import pickle, sys, time
    t = time.time()
    everything = {t: probe(t) for t in TARGETS}
    pickle.dump(everything, open(sys.argv[1], "wb"))
    for t2, r in everything.items():
        print(t2, len(r))
    print(time.time() - t)
