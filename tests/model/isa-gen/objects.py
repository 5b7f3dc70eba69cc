#!/usr/bin/env python3
"""Makes golden/objects.txt: what llvm-objdump 19 says of the committed code objects' .text.

One line each: file, target, offset and bytes of .text in the file, instructions, and the FNV-1a-64 hash of
the lines "MNEMONIC WORDS\\n". With --dump FILE: prints those lines for one object instead.
"""
import argparse
import os
import re
import struct
import subprocess
import tempfile

from probe import TARGETS

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "..", "fixtures", "code-objects")
OBJDUMP = "llvm-objdump-19"


def text_section(data):
    """Offset and size of .text in an ELF64 file."""
    shoff, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * size) for i in range(count)]
    table = sections[names][4]
    for s in sections:
        name = data[table + s[0]:data.index(b"\0", table + s[0])]
        if name == b".text":
            return s[4], s[5]
    return None


def lines_of(path, target):
    """[(offset in .text, mnemonic, words)] by llvm-objdump."""
    run = subprocess.run([OBJDUMP, "-dz", "-j", ".text", "--mcpu=" + target, path], capture_output=True, text=True, check=True)
    found = []
    for line in run.stdout.splitlines():
        m = re.match(r"^\t(\S+).*// ([0-9A-F]+): ([0-9A-F ]+?)(?: <.*)?$", line)
        if m:
            found.append((int(m.group(2), 16), m.group(1), len(m.group(3).split())))
    return found


def clear(data, at):
    """Clears the first source of a VOP3 that is 0x80, if there is one."""
    if at + 8 > len(data):
        return False
    first, second = struct.unpack_from("<II", data, at)
    if first >> 26 not in (0x34, 0x35):
        return False
    for shift in (18, 9):
        if second >> shift & 0x1FF == 0x80:
            struct.pack_into("<I", data, at + 4, second & ~(0x1FF << shift))
            return True
    return False


def instructions(path, target):
    """The same, for objects of a compiler newer than LLVM 19 too: it fills the unused sources of VOP3 with
    0x80, which LLVM 19 takes for no instruction. Such fields are cleared before it looks again."""
    data = bytearray(open(path, "rb").read())
    offset, size = text_section(data)
    for _ in range(200):
        with tempfile.NamedTemporaryFile(suffix=".co") as copy:
            copy.write(data)
            copy.flush()
            lines = lines_of(copy.name, target)
        start = lines[0][0] if lines else 0
        if not any(name == ".long" and clear(data, offset + at - start) for at, name, _ in lines):
            return lines
    raise SystemExit("%s: too many unknown instructions" % path)


def fnv(lines):
    value = 0xCBF29CE484222325
    for byte in "".join("%s %d\n" % (name, words) for _, name, words in lines).encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dump", metavar="FILE")
    args = parser.parse_args()
    out = []
    for name in sorted(os.listdir(FIXTURES)):
        target = (re.search(r"\.(gfx[0-9a-f]+)[._]", name) or [None, None])[1]
        # A v2 object has kernel descriptors among its code, and nothing loads it.
        if not name.endswith(".co") or ".v2." in name or target not in TARGETS or args.dump and name != os.path.basename(args.dump):
            continue
        path = os.path.join(FIXTURES, name)
        lines = instructions(path, target)
        if args.dump:
            for at, mnemonic, words in lines:
                print("%#x %s %d" % (at, mnemonic, words))
            return
        offset, size = text_section(open(path, "rb").read())
        out.append("%s %s %d %d %d %016x\n" % (name, target, offset, size, len(lines), fnv(lines)))
    os.makedirs(os.path.join(HERE, "golden"), exist_ok=True)
    with open(os.path.join(HERE, "golden", "objects.txt"), "w") as f:
        f.write("".join(out))


if __name__ == "__main__":
    main()
