#!/usr/bin/env bash
# Remakes the opcode tables and the golden files with Debian's llvm-19 and fails if they differ from the
# committed ones. About two minutes on two cores; after adding a code object fixture, run objects.py.
set -euo pipefail
cd "$(dirname "$0")"
python3 generate.py
python3 golden.py
python3 objects.py
git diff --exit-code -- ../src/isa/generated golden
