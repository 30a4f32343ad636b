#!/bin/bash
# test_readme.sh [SUITE...]: what README and CONTRIBUTING say of a fresh machine: scripts/first-light and scripts/test, and
# then scripts/package all, in roots with nothing but what debootstrap puts there, no .NET above all. Takes the commit
# that is checked out. Needs root and a Debian mirror.
set -euo pipefail
cd "$(dirname "$0")/../.."
suites=("$@")
((${#suites[@]})) || suites=(bookworm)
work=$(mktemp -d)
root=
finish() {
    [[ -z $root ]] || umount -R "$root"/{proc,dev} 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap finish EXIT
scripts/setup mmdebstrap git

in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"; }

for suite in "${suites[@]}"; do
    echo "== $suite"
    root=$work/$suite
    mmdebstrap --quiet --variant=minbase "$suite" "$root" "deb $(scripts/mirror) $suite main"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    cp /etc/resolv.conf "$root/etc/"
    cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
    git clone --quiet --no-hardlinks . "$root/cdacq"

    in_root /cdacq/scripts/first-light >"$work/light"
    cat "$work/light"
    # The two addresses are the end, and nothing is before but steps and the report of a core.
    tail -n 2 "$work/light" | grep -c '^0x[0-9a-f]* [A-Z].* \[\(jit\|r2r\)\]' | grep -qx 2
    head -n 2 "$work/light" | grep -c '^setup: installing\|^first-light: building' | grep -qx 2
    in_root /cdacq/scripts/test --output-on-failure --quiet
    if in_root sh -c 'command -v dotnet'; then
        echo "FAILED: $suite has a dotnet" >&2
        exit 1
    fi
    in_root /cdacq/scripts/package all
    umount -R "$root/dev" "$root/proc"
    rm -rf --one-file-system "$root"
    root=
done
echo "readme: ok (${suites[*]})"
