#!/usr/bin/env python3
"""Makes golden/instructions.txt: encodings and LLVM 19's text of them, for the decoder's ordinary tests.

Every opcode number of every format and target once, in its fullest form, and a sample of the special forms
(operand classes, modifiers, literals, DPP, SDWA). One line each: mask of targets (bit i: Target::ALL[i]),
words, text as compare.py normalises it; a text that is one word is compared by mnemonic only.
"""
import collections
import os
import random
from concurrent.futures import ThreadPoolExecutor

from compare import normal
from generate import HERE, best
from operands import FIELDS, SREG, VREG, questions, registers
from probe import TARGETS, disassemble, probe

PER_KIND = 5  # examples of each special form for each format


def collect(target):
    """[(words, text)] for one target."""
    out, special = [], collections.defaultdict(list)
    for (fmt, op), hits in probe(target).items():
        valid = [h for h in hits if "/*" not in h[1]]
        if not valid or fmt == "VOP3SD" and not any(("s", 64) in registers(h[1]) for h in valid):
            continue
        words, text, size = best(valid)
        out.append((words[:size], text))
        if fmt in FIELDS:
            regs = registers(text)
            used = [any((k, b) in regs for k, b in (("v", VREG[i]), ("a", VREG[i]), ("s", SREG[i]))) for i in range(len(FIELDS[fmt]))]
            for name, w in questions(target, fmt, words[:size], used):
                special[fmt, name].append(w)
    rng = random.Random(7)
    asked = [w for key in sorted(special) for w in rng.sample(special[key], min(3 * PER_KIND, len(special[key])))]
    kinds = [key for key in sorted(special) for _ in range(min(3 * PER_KIND, len(special[key])))]
    taken = collections.Counter()
    for key, words, got in zip(kinds, asked, disassemble(target, asked)):
        # LLVM shows a neg bit of an integer source in DPP as sext; there is no such thing.
        if got and "/*" not in got[0] and not (key[1][0] == "d" and "sext(" in got[0]) and got[1] == len(words) and taken[key] < PER_KIND:
            taken[key] += 1
            out.append((words, got[0]))
    return out


def main():
    masks = collections.defaultdict(int)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for i, found in enumerate(pool.map(collect, TARGETS)):
            for words, text in found:
                if not text.startswith("v_interp"):
                    masks[tuple(words), normal(text)] |= 1 << i
    os.makedirs(os.path.join(HERE, "golden"), exist_ok=True)
    with open(os.path.join(HERE, "golden", "instructions.txt"), "w") as f:
        for (words, text), mask in sorted(masks.items(), key=lambda item: (item[0][0], item[0][1])):
            f.write("%03x %s %s\n" % (mask, ",".join("%08x" % w for w in words), text))


if __name__ == "__main__":
    main()
