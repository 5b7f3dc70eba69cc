#!/bin/sh
# Fails when words.rs is not what the assembler makes of the sources.
exec "$(dirname "$0")/assemble.sh" --check
