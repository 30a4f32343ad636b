#!/bin/sh
# Installs the build into a folder of its own, builds the examples against that copy, by pkg-config and by CMake, as C and
# as C++, and runs them on a bundled core of a real process and on a mock.
set -eu
examples=$CDACQ_SOURCE_DIR/examples
fixture=$CDACQ_FIXTURES/net10-x64/core
{ read -r jit; read -r r2r; } <"$CDACQ_FIXTURES/net10-x64/first-light.ips"
nobody=$(printf '%x' $((0x$r2r + 26))) # after the end of the method
cc=${CDACQ_CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/^project(cdacq VERSION \([0-9.]*\).*/\1/p' "$CDACQ_SOURCE_DIR/CMakeLists.txt")
flags='-Wall -Wextra -pedantic -Werror'

cmake --install "$CDACQ_BUILD_DIR" --prefix "$work/prefix" >/dev/null
pc=$(find "$work/prefix" -name libcdacq.pc)
libdir=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
[ "$(pkg-config --modversion libcdacq)" = "$version" ]
if [ -n "${CDACQ_TOOL:-}" ]; then
    "$work/prefix/bin/cdacq" --version | grep -F "$version"
fi

run() { LD_LIBRARY_PATH=$libdir "$@"; }
expect() { # text, in the output
    grep -qe "$1" "$work/output" || { echo "not in the output: $1"; cat "$work/output"; exit 1; }
}

# The smallest program
$cc -std=c17 $flags -o "$work/method_at" "$examples/method_at.c" $(pkg-config --cflags --libs libcdacq)
run "$work/method_at" | grep -Fx "cdacq $version"
run "$work/method_at" "$fixture" "$jit" | grep -Fx 'Demo.Outer<T>.Inner<int>..ctor() +0xf'

cmake -S "$examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" >/dev/null
cmake --build "$work/build" >/dev/null
"$work/build/method_at" | grep -Fx "cdacq $version" # by the RPATH that CMake sets
"$work/build/extension" "$fixture" "$jit" | grep -F '[jit]'

# An example for each of the main calls
"$work/build/methods_at" "$fixture" "$jit" "$r2r" "$nobody" >"$work/output"
expect "^0x$jit  Demo.Outer<T>.Inner<int>..ctor() +0xf\$"
expect "^0x$r2r  System.Collections.Generic.Stack<T>..ctor() +0x19\$"
expect "^0x$nobody  \\[none\\]\$"
"$work/build/visit_methods" "$fixture" System.Collections.Generic.Stack >"$work/output" 2>"$work/stopped"
grep -Fx 'stopped at System.Collections.Generic.Stack' "$work/stopped"
tail -n 1 "$work/output" | grep -F ' r2r System.Collections.Generic.Stack<T>'
"$work/build/block" "$fixture" "$jit" >"$work/output"
expect '^jit type 1, method desc 0x[0-9a-f]*, start 0x[0-9a-f]*, offset 0xf$'
expect '^unwind info 0x'
"$work/build/perf_map" "$fixture" >"$work/perf.map" 2>"$work/output"
expect "^$(wc -l <"$work/perf.map") methods, $(wc -c <"$work/perf.map") bytes\$"
"$work/build/verify" "$fixture" "$work/perf.map" >"$work/output"
expect '^ *[0-9]*  match: '
sed 's/[^ ]*$/ELSE/' "$work/perf.map" >"$work/wrong.map"
if "$work/build/verify" "$fixture" "$work/wrong.map" >"$work/output"; then
    echo 'verify: other names agree'
    exit 1
fi
expect '^name-differs: 0x[0-9a-f]* .*ELSE: '
PYTHONPATH=$CDACQ_SOURCE_DIR/tests/support python3 -B - >"$work/jit.dump" <<'END'
import sys
from jitdump_writer import Jitdump
dump = Jitdump()
dump.debug_info(1, 0x1000, [(0x1000, 7, 0, b"a.cs")])
dump.load(1, 1, 1, 0x1000, b"code", 0, b"void [A] A::A()")
sys.stdout.buffer.write(dump.data)
END
"$work/build/jitdump" "$work/jit.dump" >"$work/output"
expect '^0x1000 4 void \[A\] A::A()$'
expect '^  0x1000 a.cs:7$'

# A debugger extension that provides its own callbacks
check_extension() { # program
    run "$1" "$fixture" "$jit" "$r2r" "$nobody" >"$work/output"
    expect "^0x$jit  Demo.Outer<T>.Inner<int>..ctor() +0xf \[jit\]\$"
    expect "^0x$r2r  System.Collections.Generic.Stack<T>..ctor() +0x19 \[r2r\]\$"
    expect "^0x$nobody  Unknown\$"
    [ "$(grep -c '^  code ' "$work/output")" = 2 ]
    [ "$(grep -c '^  unwind info   0x[0-9a-f]*, relative to 0x' "$work/output")" = 2 ]
    [ "$(grep -c '^  GC info       0x[0-9a-f]*, version 4$' "$work/output")" = 2 ]
    [ "$(grep -c '^  clause        none$' "$work/output")" = 2 ]
}
$cc -std=gnu17 $flags -o "$work/extension" "$examples/extension.c" $(pkg-config --cflags --libs libcdacq)
check_extension "$work/extension"
if echo 'int main() {}' | $cc -x c++ - -o "$work/any" -lstdc++ 2>/dev/null; then
    $cc -x c++ -std=gnu++17 $flags -o "$work/extension++" "$examples/extension.c" $(pkg-config --cflags --libs libcdacq) -lstdc++
    check_extension "$work/extension++"
    echo 'extension as C++: ok'
else
    echo "extension as C++: skipped, $cc has no C++ compiler"
fi

# Mock targets: the example of the manual, whose core the extension reads
[ -z "$(find "$work/prefix" -name '*mocktarget*')" ] # only when asked for
cmake --install "$CDACQ_BUILD_DIR" --prefix "$work/prefix" --component mocktarget >/dev/null
[ "$(pkg-config --modversion cdacq-mocktarget)" = "$version" ]
sed -n '/^```c$/,/^```$/p' "$CDACQ_SOURCE_DIR/docs/mocktarget.md" | grep -v '^```' >"$work/mock.c"
$cc -std=c17 $flags -o "$work/mock" "$work/mock.c" $(pkg-config --cflags --libs cdacq-mocktarget libcdacq)
start=$(run "$work/mock" "$work/core")
run "$work/extension" "$work/core" "$start" >"$work/output"
expect "^0x$start  dynamicClass.Emitted(...) +0 \[jit\]$"
expect '^  clause        typed: try \[0xa, 0x28), handler \[0x64, 0x7c)'
run "$work/extension" "$work/core" >"$work/output"
[ "$(grep -c '^heap 0x' "$work/output")" = 1 ]
printf '#include <cdacq/mocktarget.h>\nint main(void) { return 0; }\n' >"$work/alone.c" # by itself
$cc -std=c99 $flags -o "$work/alone" "$work/alone.c" $(pkg-config --cflags --libs cdacq-mocktarget)
if [ -x "$work/extension++" ]; then
    $cc -x c++ -std=c++11 $flags -fsyntax-only "$work/alone.c" $(pkg-config --cflags cdacq-mocktarget)
fi
# It exports no names that could collide with the program's.
[ -z "$(nm -g --defined-only "$libdir/libmocktarget.a" | awk 'NF == 3 { print $3 }' | grep -v '^mock_')" ]

# The program in the documentation compiles as it stands.
sed -n '/^```c$/,/^```$/p' "$CDACQ_SOURCE_DIR/docs/api.md" | grep -v '^```' >"$work/example_of_api.c"
$cc -std=gnu17 $flags -o "$work/example_of_api" "$work/example_of_api.c" $(pkg-config --cflags --libs libcdacq)
