#!/bin/bash
# test_readme.sh [--brief | --keep DIR] [SUITE...]: what README and CONTRIBUTING say of a fresh machine:
# scripts/first-light and scripts/test, and then scripts/package all, in roots with nothing but what debootstrap puts
# there, no .NET above all. Takes the commit that is checked out. With --brief, only scripts/first-light is run, in this
# folder, which is mounted in the root: what it builds stays. With --keep, the packages stay, in DIR/SUITE. Needs root and
# a Debian mirror.
set -euo pipefail
cd "$(dirname "$0")/../.."
brief=0 keep=
case ${1:-} in
--brief) brief=1 && shift ;;
--keep) keep=$(realpath -m "${2:?a folder}") && shift 2 ;;
esac
suites=("$@")
((${#suites[@]})) || suites=(bookworm)
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
scripts/setup mmdebstrap git

# Mounts in a namespace of its own, so that nothing that is removed here is ever more than the root.
in_root() { # command...
    unshare --mount bash -euc '
        root=$1 shared=$2
        shift 2
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        [[ ! $shared ]] || mount --bind "$shared" "$root$shared"
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"
    ' bash "$root" "$shared" "$@"
}

for suite in "${suites[@]}"; do
    echo "== $suite"
    root=$work/$suite
    mmdebstrap --quiet --variant=minbase "$suite" "$root" "deb $(scripts/mirror) $suite main"
    cp /etc/resolv.conf "$root/etc/"
    cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
    if ((brief)); then
        source=$PWD shared=$PWD # the build has its path
        mkdir -p "$root$shared"
    else
        source=/cdacq shared=
        git clone --quiet --no-hardlinks . "$root$source"
    fi

    in_root "$source"/scripts/first-light >"$work/light"
    cat "$work/light"
    # The two addresses are the end, and nothing is before but steps and the report of a core.
    tail -n 2 "$work/light" | grep -c '^0x[0-9a-f]* [A-Z].* \[\(jit\|r2r\)\]' | grep -qx 2
    head -n 2 "$work/light" | grep -c '^setup: installing\|^first-light: building' | grep -qx 2
    ((brief)) || in_root "$source"/scripts/test --output-on-failure --quiet
    if in_root sh -c 'command -v dotnet'; then
        echo "FAILED: $suite has a dotnet" >&2
        exit 1
    fi
    ((brief)) || in_root "$source"/scripts/package all
    [[ ! $keep ]] || { mkdir -p "$keep/$suite" && cp "$root$source"/build/packages/* "$keep/$suite/"; }
    rm -rf --one-file-system "$root"
done
echo "readme: ok (${suites[*]})"
