#!/bin/bash
# test_roots.sh PACKAGES [SUITE...]: what `scripts/package all PACKAGES` made, in roots with nothing but what debootstrap
# puts there (bookworm and trixie): the packages install, the examples of the README answer, the manual and the
# completions are found, and a removal leaves nothing. The tar runs in an empty root. Needs root and a Debian mirror.
# Roots are kept in $CDACQ_ROOTS (a temporary folder) between runs.
# With CDACQ_PACKAGE_MACHINE=arm64, packages of arm64 in roots of arm64, whose programs the kernel starts by qemu-user.
set -euo pipefail
packages=$(realpath "${1:?the folder of the packages}")
shift
suites=("$@")
((${#suites[@]})) || suites=(bookworm trixie)
source=$(cd "$(dirname "$0")/../.." && pwd)
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
ours=(libcdacq0 libcdacq-dev cdacq cdacq-gdb python3-cdacq)
case ${CDACQ_PACKAGE_MACHINE:=$(dpkg --print-architecture)} in
amd64) cpu=x86_64 ;;
arm64) cpu=aarch64 ;;
*) echo "test_roots.sh: no packages are built for '$CDACQ_PACKAGE_MACHINE'" >&2 && exit 64 ;;
esac
work=$(mktemp -d)
roots=${CDACQ_ROOTS:-$work}
root=
finish() {
    [[ -z $root ]] || umount -R "$root" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap finish EXIT

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

expect() { # text command...: the text is in what the command writes
    local text=$1 output
    shift
    output=$("$@" 2>&1) || fail "$*: $output"
    grep -qF -- "$text" <<<"$output" || fail "not in the output of $*: $text: $output"
    echo "ok: $* -> $text"
}

in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"; }
apt() { in_root DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends "$@" >"$work/apt.log" 2>&1 || fail "apt-get $*: $(tail -n 20 "$work/apt.log")"; }

# Once for all programs of the machine, in every root.
register_emulator() {
    [[ $cpu != "$(uname -m)" ]] || return 0
    "$source/scripts/setup" qemu-user-static binfmt-support
    mountpoint -q /proc/sys/fs/binfmt_misc || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
    update-binfmts --enable "qemu-$cpu"
}

bare_root() { # suite
    local base=$roots/$1-$CDACQ_PACKAGE_MACHINE
    "$source/scripts/setup" debootstrap
    if [[ ! -e $base/etc/debian_version ]]; then
        debootstrap --variant=minbase --arch="$CDACQ_PACKAGE_MACHINE" "$1" "$base" "$("$source/scripts/mirror")" >"$work/debootstrap.log" ||
            fail "$(tail "$work/debootstrap.log")"
    fi
    root=$work/root
    mkdir "$root" "$work/upper" "$work/overlay"
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/overlay" "$root" 2>/dev/null ||
        { cp -a "$base/." "$root" && mount --bind "$root" "$root"; }
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
    cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
    mkdir "$root/packages"
    cp "$packages"/*.deb "$root/packages/"
}

files() { # every file of the root, except those that each run of apt writes
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./packages -o -path ./tmp -o -path ./var/cache \
        -o -path ./var/lib/apt -o -path ./var/log -o -path ./root -o -path './var/lib/dpkg/*-old' \) -prune -o -print | sort)
}

test_packages() { # suite
    echo "== $1"
    bare_root "$1"
    apt update
    # What ours need, and what the checks use. The rest of the test is about our files alone.
    local needed
    needed=$(cd "$root/packages" && for name in "${ours[@]}"; do dpkg-deb -f "$name"_*.deb Depends; done |
        tr ',' '\n' | sed 's/^ *//' | grep -vE '^(libcdacq|python3-cdacq|cdacq)' | sort -u | paste -sd,)
    apt satisfy "$needed, man-db, bash-completion, gcc, libc6-dev, pkg-config"
    files >"$work/before"

    local deb=()
    for name in "${ours[@]}"; do deb+=("/packages/$(cd "$root/packages" && echo "$name"_*.deb)"); done
    apt install "${deb[@]}"
    local examples=/usr/share/doc/cdacq/examples
    expect 'Demo.Outer<T>.Inner<int>..ctor() +0xf [jit]' in_root cdacq ip2method $examples/net10-x64.core.gz 7f91e58aed0f
    expect 'Unhandled exception.' in_root cdacq report --brief $examples/crash-net10-x64.core.gz
    expect 'CDACQ(1)' in_root sh -c 'man cdacq | head -n 1'
    # The file by which bash-completion finds it, and what it then offers for `cdacq ip2m`
    expect 'ip2method' in_root bash -c '. /usr/share/bash-completion/completions/cdacq
COMP_WORDS=(cdacq ip2m) COMP_CWORD=1; _cdacq 2>/dev/null; echo "${COMPREPLY[@]}"'
    expect 'Demo.Outer<T>.Inner<int>..ctor()' in_root python3 -B -c "import cdacq
with cdacq.open('$examples/net10-x64.core.gz') as target:
    print(target.method_at(0x7f91e58aed0f).name)"
    in_root sh -c "cp /bin/true /tmp/libcoreclr.so"
    expect 'cdacq ip2method' in_root PYTHONDONTWRITEBYTECODE=1 gdb -q -batch -ex 'file /tmp/libcoreclr.so' -ex 'help cdacq'
    in_root sh -c 'cc -o /tmp/method_at /usr/share/doc/libcdacq-dev/examples/method_at.c $(pkg-config --cflags --libs libcdacq)'
    expect 'Demo.Outer<T>.Inner<int>..ctor() +0xf' in_root /tmp/method_at $examples/net10-x64.core.gz 7f91e58aed0f
    expect "" in_root dpkg --verify "${ours[@]}"

    apt purge "${ours[@]}"
    files >"$work/after"
    diff "$work/before" "$work/after" || fail "$1: a removal leaves files"
    echo "ok: a removal leaves nothing"
    umount -R "$root"
    root=
    rm -rf --one-file-system "$work/root" "$work/upper" "$work/overlay"
}

# In a root with nothing but the tool and a core
test_tar() {
    echo '== tar'
    local alone=$work/alone
    mkdir "$alone"
    tar -x -C "$alone" --strip-components=1 -f "$packages"/cdacq-*-linux-$cpu.tar.xz
    cp "$source/tests/fixtures/net10-x64/core" "$alone/core"
    cp "$source/tests/fixtures/crash-net10-x64/core" "$alone/crash"
    expect 'Demo.Outer<T>.Inner<int>..ctor() +0xf [jit]' chroot "$alone" /bin/cdacq ip2method /core 7f91e58aed0f
    expect 'Unhandled exception.' chroot "$alone" /bin/cdacq report --brief /crash
    local format
    mkdir "$alone/tmp"
    for format in gzip xz zstd lz4; do
        command -v $format >/dev/null || continue
        $format -c <"$alone/core" >"$alone/core.$format"
        expect 'Demo.Outer<T>.Inner<int>..ctor() +0xf [jit]' chroot "$alone" /bin/cdacq ip2method /core.$format 7f91e58aed0f
    done
}

# By rpm's own database, in an empty root
test_rpm() {
    echo '== rpm'
    local alone=$work/rpm name
    mkdir "$alone"
    "$source/scripts/setup" rpm
    name=$(cd "$packages" && echo cdacq-*.rpm)
    rpm --root "$alone" --install "$packages/$name"
    cp "$source/tests/fixtures/net10-x64/core" "$alone/core"
    expect 'Demo.Outer<T>.Inner<int>..ctor() +0xf [jit]' chroot "$alone" /usr/bin/cdacq ip2method /core 7f91e58aed0f
    rpm --root "$alone" --erase cdacq
    [[ -z $(find "$alone/usr" ! -type d) ]] || fail "an erased rpm leaves files"
}

register_emulator
test_tar
[[ ! -e $(echo "$packages"/cdacq-*.rpm) ]] || test_rpm
for suite in "${suites[@]}"; do
    test_packages "$suite"
done
echo "packages: ok (tar, ${suites[*]})"
