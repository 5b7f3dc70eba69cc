#!/usr/bin/env bash
# Makes the tables anew from Debian's header packages, none of which need be installed, and fails when
# they differ from the committed ones. With --write it replaces those instead.
set -euo pipefail
cd "$(dirname "$0")"
write=no
[ "${1:-}" != --write ] || write=yes

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# apt's own user must be able to write here.
chmod 755 "$work"

# newest REGEX: the matching package with the highest version.
newest() {
    apt-cache search --names-only "$1" | awk '{print $1}' | while read -r package; do
        printf '%s %s\n' "$(apt-cache show --no-all-versions "$package" | sed -n 's/^Version: //p')" "$package"
    done | sort -V | tail -n 1 | awk '{print $2}'
}

# headers PACKAGE: downloads and unpacks it; prints the directory that has linux/kfd_ioctl.h.
headers() {
    local package=$1 file
    mkdir "$work/$package"
    (cd "$work/$package" && apt-get -qq download "$package" 2>"$work/log") || {
        cat "$work/log" >&2
        echo "cannot download $package" >&2
        return 1
    }
    dpkg -x "$work/$package/"*.deb "$work/$package/files"
    # Its own list of files says where the header is.
    file=$(dpkg -c "$work/$package/"*.deb | awk '{print $6}' | grep '/linux/kfd_ioctl\.h$')
    dirname "$(dirname "$work/$package/files/$file")"
}

failed=no
# table VERSION PACKAGE
table() {
    local version=$1 package=$2 directory
    [ -n "$package" ] || {
        echo "no package for KFD $version: is bookworm-security among apt's sources?" >&2
        exit 1
    }
    directory=$(headers "$package")
    {
        echo "# KFD $version, from linux/kfd_ioctl.h and linux/kfd_sysfs.h. Made by check.sh: do not edit."
        cargo run --quiet -p kfd-header-check -- "$directory"
    } >"$work/$version.txt"
    if [ $write = yes ]; then
        cp "$work/$version.txt" "tables/$version.txt"
    elif diff -u "tables/$version.txt" "$work/$version.txt"; then
        echo "KFD $version: $(($(wc -l <"tables/$version.txt") - 1)) rows as in $package"
    else
        failed=yes
    fi
}

table 1.11 linux-libc-dev
table 1.17 "$(newest '^linux-headers-6\.12\.[0-9]+\+(deb|bpo)[0-9u]*-common$')"
[ $failed = no ]
