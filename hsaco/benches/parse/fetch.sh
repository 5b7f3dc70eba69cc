#!/usr/bin/env bash
# Gets Debian's librocrand, whose code for seven targets is the bench's large file, and prints its path.
# Usage: HSACO_BENCH_FILE=$(hsaco/benches/parse/fetch.sh DIRECTORY) cargo bench -p hsaco --bench parse
set -euo pipefail
mkdir -p "${1:?usage: fetch.sh DIRECTORY}"
cd "$1"
ls librocrand1_*.deb >/dev/null 2>&1 || apt-get download -qq librocrand1 >&2
dpkg -x librocrand1_*.deb .
realpath usr/lib/x86_64-linux-gnu/librocrand.so.1
