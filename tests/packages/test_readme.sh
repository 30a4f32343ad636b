#!/bin/bash
# test_readme.sh [--here | --keep DIR] [SUITE...]: what README and CONTRIBUTING say of a fresh machine:
# scripts/first-light and scripts/test, and then scripts/package all, in roots with nothing but what debootstrap puts
# there, no .NET above all. Takes the commit that is checked out. With --keep, the packages stay, in DIR/SUITE.
#
# With --here, the two commands of README are run in this folder, which is mounted in a root of this machine's release of
# Debian, after what they built before is removed. What they build stays and works here, too.
#
# Exit status 77: no root can be made here.
#
# Needs root and a Debian mirror.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=0 keep=
case ${1:-} in
--here) here=1 && shift ;;
--keep) keep=$(realpath -m "${2:?a folder}") && shift 2 ;;
esac
suites=("$@")
((${#suites[@]})) || suites=(bookworm)
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
source=/cdacq shared=
if ((here)); then
    # The build has the path of this folder.
    source=$PWD shared=$PWD
    # shellcheck source=/dev/null
    suites=("$(. /etc/os-release && [[ $ID == debian ]] && echo "$VERSION_CODENAME")") || exit 77
fi

# Mounts in a namespace of its own, so that nothing that is removed here is ever more than the root. There the root is
# moved over the old one: in a mere chroot, the kernel allows no user namespaces.
in_root() { # command...
    unshare --mount bash -euc '
        root=$1 shared=$2
        shift 2
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --rbind /sys "$root/sys"
        [[ ! $shared ]] || mount --bind "$shared" "$root$shared"
        cd "$root"
        mount --move "$root" /
        exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
            ${CDACQ_REQUIRE_PTRACE:+CDACQ_REQUIRE_PTRACE=1} "$@"
    ' bash "$root" "$shared" "$@"
}

make_root() { # suite
    scripts/setup mmdebstrap git &&
        mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io "$1" "$root" "deb $(scripts/mirror) $1 main" &&
        cp /etc/resolv.conf "$root/etc/" &&
        cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" &&
        mkdir -p "$root$shared" &&
        in_root true
}

for suite in "${suites[@]}"; do
    echo "== $suite"
    root=$work/$suite
    make_root "$suite" || exit 77
    if ((here)); then
        rm -rf build/release build/dev # as configured for another system
    else
        git clone --quiet --no-hardlinks . "$root$source"
    fi

    in_root "$source"/scripts/first-light >"$work/light"
    cat "$work/light"
    # The two addresses are the end, and nothing is before but steps and the report of a core.
    tail -n 2 "$work/light" | grep -c '^0x[0-9a-f]* [A-Z].* \[\(jit\|r2r\)\]' | grep -qx 2
    head -n 2 "$work/light" | grep -c '^setup: installing\|^first-light: building' | grep -qx 2
    in_root "$source"/scripts/test --output-on-failure

    # README's commands that install what was built. The root has no sudo.
    install=$(sed -n '/^cmake --build --preset release/,/^sudo cmake --install/p' README.md)
    [[ $install == *"--target installed"*ldconfig ]]
    in_root sh -euc 'cd "$1"; sudo() { "$@"; }; eval "$2"' sh "$source" "$install"
    in_root /usr/local/bin/cdacq ip2method "$source/tests/fixtures/net10-x64/core" 7f91e58aed0f | grep -qF Demo.Outer
    in_root test -s /usr/local/share/man/man1/cdacq.1
    if in_root sh -c 'command -v dotnet'; then
        echo "FAILED: $suite has a dotnet" >&2
        exit 1
    fi
    ((here)) || in_root "$source"/scripts/package all
    [[ ! $keep ]] || { mkdir -p "$keep/$suite" && cp "$root$source"/build/packages/* "$keep/$suite/"; }
    rm -rf --one-file-system "$root"
done
echo "readme: ok (${suites[*]})"
