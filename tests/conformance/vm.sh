#!/usr/bin/env bash
# Boots a stock Debian kernel with amdgpu loaded and no GPU, in QEMU without KVM, and runs programs in it.
#
# vm.sh RELEASE OUTPUT PROGRAM...
#
# RELEASE is 6.1 or 6.12: the newest kernel package of that series that apt knows is taken. Each
# PROGRAM is a static executable, with arguments if quoted; what it prints and its exit status go to
# the file OUTPUT. Kernel and initial RAM disk are kept in target/conformance for the next run.
set -euo pipefail
release=$1 output=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${CARGO_TARGET_DIR:-$root/target}/conformance/$release
mkdir -p "$work"

# Package names change with each security update.
package=$(apt-cache pkgnames "linux-image-$release." | grep -E '^linux-image-[0-9.+~a-z-]*[0-9]-?(\+deb12-)?amd64$' |
    grep -vE 'unsigned|dbg|cloud|rt-' | sort -V | tail -n 1)
[ -n "$package" ] || { echo "apt knows no linux-image-$release package" >&2; exit 1; }

if [ "$(cat "$work/package" 2>/dev/null)" != "$package" ]; then
    rm -rf "$work"
    mkdir -p "$work/modules"
    (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$package" && dpkg -x ./*.deb kernel && rm ./*.deb)
    version=$(ls "$work/kernel/lib/modules")
    depmod -b "$work/kernel" "$version"
    number=0
    modprobe -d "$work/kernel" -S "$version" --show-depends amdgpu | awk '{print $2}' |
        while read -r file; do
            number=$((number + 1))
            name=$(basename "${file%.xz}")
            to=$work/modules/$(printf %02d $number)-$name
            case $file in *.xz) xz -dc "$file" >"$to" ;; *) cp "$file" "$to" ;; esac
        done
    strip --strip-debug "$work"/modules/*.ko
    cp "$work/kernel/boot/vmlinuz-$version" "$work/vmlinuz"
    rm -rf "$work/kernel"
    echo "$package" >"$work/package"
fi

disk=$work/disk
rm -rf "$disk"
mkdir -p "$disk"/{bin,dev,proc,sys,tmp,programs}
cp "$(command -v busybox)" "$disk/bin/busybox"
cp -r "$work/modules" "$disk/modules"
{
    echo '#!/bin/busybox sh'
    echo '/bin/busybox mount -t proc proc /proc'
    echo '/bin/busybox mount -t sysfs sys /sys'
    echo '/bin/busybox mount -t devtmpfs dev /dev'
    echo 'for module in /modules/*.ko; do /bin/busybox insmod $module; done'
    number=0
    for program in "$@"; do
        number=$((number + 1))
        read -r file arguments <<<"$program"
        cp "$file" "$disk/programs/$number"
        echo "echo '=== begin $number'"
        echo "/programs/$number $arguments 2>&1"
        echo "echo \"=== end $number, status \$?\""
    done
    echo '/bin/busybox poweroff -f'
} >"$disk/init"
chmod +x "$disk/init"
(cd "$disk" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/disk.gz"
rm -rf "$disk"

# KVM is not used: the machines that this runs on may offer one that does not boot such a kernel.
timeout 300 qemu-system-x86_64 -accel tcg -cpu max -m 512 -smp 1 -nodefaults -no-reboot \
    -display none -serial stdio -kernel "$work/vmlinuz" -initrd "$work/disk.gz" \
    -append "console=ttyS0 panic=-1 quiet loglevel=1" </dev/null | tr -d '\r' >"$work/console"
grep -q '^=== end' "$work/console" || { cat "$work/console" >&2; exit 1; }
sed -n '/^=== begin/,/^=== end/p' "$work/console" >"$output"
