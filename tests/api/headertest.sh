#!/bin/sh
# The public header stands alone: it compiles by itself, without a warning, as C and as C++.
set -eu
cc=${CDACQ_CC:-cc}
check() { # language standard
    echo '#include <cdacq.h>' | "$cc" -x "$1" -std="$2" -Wall -Wextra -pedantic -Werror -fsyntax-only -Iinclude -
    echo "$1 $2: ok"
}
check c c99
check c c17
if echo | "$cc" -x c++ -fsyntax-only - 2>/dev/null; then
    check c++ c++11
    check c++ c++17
else
    echo "c++: skipped, $cc has no C++ compiler"
fi
