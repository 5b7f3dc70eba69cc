"""Second round of questions to LLVM: what each operand field of a vector or scalar instruction accepts,
which modifier bits mean something, whether DPP and SDWA forms exist."""
import re

from names import strip
from probe import GFX9, SRC0, SRC1, SRC2, SSRC0, SSRC1, SSRC2, disassemble

V = 256
LIT = 0x12345678
# Bits of an operand class.
ACCEPTS = {"v": 1, "s": 2, "c": 4, "l": 8}
HALF = 16  # VGPR field of 7 bits and a half select (gfx11, 16-bit operand of VOP1, VOP2, VOPC)
VREG = (SRC0, SRC1, SRC2)
SREG = (SSRC0, SSRC1, SSRC2)

# Where the source fields are: (word, shift, bits).
FIELDS = {
    "SOP1": [(0, 0, 8)], "SOP2": [(0, 0, 8), (0, 8, 8)], "SOPC": [(0, 0, 8), (0, 8, 8)],
    "VOP1": [(0, 0, 9)], "VOP2": [(0, 0, 9), (0, 9, 8)], "VOPC": [(0, 0, 9), (0, 9, 8)],
    "VOP3": [(1, 0, 9), (1, 9, 9), (1, 18, 9)], "VOP3SD": [(1, 0, 9), (1, 9, 9), (1, 18, 9)],
    "VOP3P": [(1, 0, 9), (1, 9, 9), (1, 18, 9)],
}
# Modifier bits in the order of `Sig::mods`: (word, bit).
VOP3_MODS = [(0, b) for b in range(8, 16)] + [(1, b) for b in range(27, 32)]


def put(words, word, shift, bits, value):
    words = list(words)
    words[word] = words[word] & ~(((1 << bits) - 1) << shift) & 0xFFFFFFFF | value << shift
    return words


def registers(text):
    """Registers named in an operand list: {(kind, first): width}."""
    out = {}
    for kind, lo, hi, single in re.findall(r"\b([vas])(?:\[(\d+):(\d+)\]|(\d+)\b)", text):
        out[kind, int(lo or single)] = int(hi) - int(lo) + 1 if lo else 1
    return out


def questions(target, fmt, words, used):
    """[(name, words)] to ask about one instruction whose accepted form is `words`."""
    g9 = target in GFX9
    ask = []
    fields = FIELDS[fmt]
    e32 = fmt in ("VOP1", "VOP2", "VOPC")
    for i, (word, shift, bits) in enumerate(fields):
        if not used[i]:
            continue
        if bits == 9:
            ask.append(("v%d" % i, put(words, word, shift, bits, V + VREG[i])))
        if bits >= 8 and not (e32 and i == 1):
            ask.append(("s%d" % i, put(words, word, shift, bits, SREG[i])))
            ask.append(("c%d" % i, put(words, word, shift, bits, 0x81)))
            ask.append(("l%d" % i, put(words, word, shift, bits, 255)[:len(words)] + [LIT]))
        if e32 and not g9:
            ask.append(("h%d" % i, put(words, word, shift, bits, 200 + (V if bits == 9 else 0))))
    if e32 and not g9 and fmt != "VOPC":
        ask.append(("hd", put(words, 0, 17, 8, 200)))
    if fmt in ("VOP3", "VOP3P", "VOP3SD"):
        for n, (word, bit) in enumerate(VOP3_MODS):
            if fmt == "VOP3SD" and n < 7:
                continue
            flipped = list(words)
            flipped[word] ^= 1 << bit
            ask.append(("m%d" % n, flipped))
        if not g9:
            ask.append(("dpp", put(words, 1, 0, 9, 250) + [0xFF00E400 | SRC0]))
            ask.append(("dpp8", put(words, 1, 0, 9, 233) + [0xFAC68800 | SRC0]))
    if e32:
        one = words[:1]
        ctrl = 0xFF00E400 | SRC0
        ask.append(("dpp", put(one, 0, 0, 9, 250) + [ctrl]))
        # On gfx90a and gfx942 64-bit operations take row_newbcast only.
        ask.append(("dppbc", put(one, 0, 0, 9, 250) + [0xFF015000 | SRC0]))
        for n, bit in ((10, 20), (0, 21), (11, 22), (1, 23)):
            ask.append(("d%d" % n, put(one, 0, 0, 9, 250) + [ctrl | 1 << bit]))
        if g9:
            # dst_sel (or sdst), src0_sel, src1_sel: dword
            sdwa = {"VOP1": 0x00060600, "VOP2": 0x06060600, "VOPC": 0x06060000}[fmt] | SRC0
            ask.append(("sdwa", put(one, 0, 0, 9, 249) + [sdwa]))
            bits = [(10, 20), (0, 21)]
            bits += [] if fmt == "VOP1" else [(11, 28), (1, 29)]
            bits += [] if fmt == "VOPC" else [(7, 13), (8, 14), (9, 15)]
            for n, bit in bits:
                ask.append(("w%d" % n, put(one, 0, 0, 9, 249) + [sdwa | 1 << bit]))
            ask.append(("sext", put(one, 0, 0, 9, 249) + [sdwa | 1 << 19]))
        else:
            ask.append(("dpp8", put(one, 0, 0, 9, 233) + [0xFAC68800 | SRC0]))
    return ask


def answers(target, rows):
    """For rows {(fmt, op): (words, text, used)}: {(fmt, op): set of accepted names}."""
    keys, words = [], []
    for key, (base, _, used) in rows.items():
        for name, w in questions(target, key[0], base, used):
            keys.append((key, name))
            words.append(w)
    out = {key: set() for key in rows}
    plain = {}  # what the instruction looks like without the modifier in question
    for (key, name), w, got in zip(keys, words, disassemble(target, words)):
        if got is not None and name in ("dpp", "sdwa"):
            plain[key, "d" if name == "dpp" else "w"] = got[0]
        if got is None or "Invalid register" in got[0]:
            continue
        if strip(got[0].split()[0]) != strip(rows[key][1].split()[0]) or got[1] != len(w):
            continue
        if name[0] == "h" and ".h" in got[0]:
            continue  # the high bit selects a half, and this LLVM knows
        if name[0] in "mdw" and name[1:].isdigit() and got[0] == plain.get((key, name[0]), rows[key][1]):
            continue  # accepted, but means nothing
        out[key].add(name)
    return out
