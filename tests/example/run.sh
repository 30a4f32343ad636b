#!/bin/sh
# Installs the build into a folder of its own and builds the example against that copy, by pkg-config and by CMake.
set -eu
example=$CDACQ_SOURCE_DIR/tests/example
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/^project(cdacq VERSION \([0-9.]*\).*/\1/p' "$CDACQ_SOURCE_DIR/CMakeLists.txt")

cmake --install "$CDACQ_BUILD_DIR" --prefix "$work/prefix" >/dev/null
pc=$(find "$work/prefix" -name libcdacq.pc)
libdir=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH

"${CDACQ_CC:-cc}" -std=c17 -Wall -Wextra -pedantic -Werror -o "$work/by-pkg-config" "$example/method_at.c" \
    $(pkg-config --cflags --libs libcdacq)
LD_LIBRARY_PATH=$libdir "$work/by-pkg-config" | grep -Fx "cdacq $version"

cmake -S "$example" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="${CDACQ_CC:-cc}" >/dev/null
cmake --build "$work/build" >/dev/null
"$work/build/method_at" | grep -Fx "cdacq $version" # by the RPATH that CMake sets

[ "$(pkg-config --modversion libcdacq)" = "$version" ]
if [ -n "${CDACQ_TOOL:-}" ]; then
    "$work/prefix/bin/cdacq" --version | grep -F "$version"
fi
