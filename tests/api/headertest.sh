#!/bin/sh
# Each public header compiles by itself, without a warning, as C and as C++. jitdump.h does not need target.h.
set -eu
cc=${CDACQ_CC:-cc}
headers=$(cd include && echo cdacq.h cdacq/*.h)
check() { # language standard
    for header in $headers; do
        echo "#include <$header>" | "$cc" -x "$1" -std="$2" -Wall -Wextra -pedantic -Werror -fsyntax-only -Iinclude -
    done
    echo "$1 $2: $headers: ok"
}
included=$(echo '#include <cdacq/jitdump.h>' | "$cc" -x c -M -Iinclude - | tr -s ' \\' '\n' | grep '^include/')
[ "$(echo $included)" = 'include/cdacq/jitdump.h include/cdacq/error.h' ]
check c c99
check c c17
if echo | "$cc" -x c++ -fsyntax-only - 2>/dev/null; then
    check c++ c++11
    check c++ c++17
else
    echo "c++: skipped, $cc has no C++ compiler"
fi
