#!/bin/sh
# abi.sh [--store] LIBRARY: compares the binary interface of a libcdacq.so that has debug information with that of the
# last release, libcdacq.abi beside this file; --store replaces the description instead. Needs abigail-tools.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
include=$here/../../include
if [ "$1" = --store ]; then
    abidw --headers-dir "$include" --drop-private-types --no-corpus-path --no-comp-dir-path --no-show-locs \
        --no-elf-needed --no-architecture --type-id-style hash "$2" >"$here/libcdacq.abi"
    exit
fi
# 4: there are changes; 8: incompatible ones; 1, 2: errors
status=0
abidiff --headers-dir2 "$include" --drop-private-types --no-added-syms --no-architecture \
    "$here/libcdacq.abi" "$1" || status=$?
echo "abidiff: status $status"
[ $((status & ~4)) = 0 ]
