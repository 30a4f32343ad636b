#!/bin/bash -eu
# Builds every tests/fuzz/fuzz_NAME.c in the way of OSS-Fuzz, whose builder sets SRC, OUT, WORK, CC, CXX, CFLAGS, CXXFLAGS
# and LIB_FUZZING_ENGINE. Nothing shared is linked but the C library, because the targets run elsewhere.
source=$SRC/cdacq
build=$WORK/cdacq

cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE= -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS="$CFLAGS" \
    -DBUILD_TESTING=ON -DCDACQ_STATIC=ON -DCDACQ_CJSON_SOURCE="$SRC/cJSON"
cmake --build "$build" --parallel "$(nproc)" --target cdacq_archive test_support mocktarget_archive

for target in "$source"/tests/fuzz/fuzz_*.c; do
    name=$(basename "$target" .c)
    $CC $CFLAGS -std=gnu17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I"$source" -I"$source/include" \
        -c "$target" -o "$build/$name.o"
    $CXX $CXXFLAGS "$build/$name.o" -o "$OUT/$name" $LIB_FUZZING_ENGINE \
        "$build/tests/libtest_support.a" "$build/libcdacq_archive.a" "$build/libmocktarget.a" \
        $(find "$build" -name libcdacq_cjson.a) \
        -Wl,-Bstatic $(pkg-config --libs --static check | sed 's/-pthread//; s/-l\(pthread\|rt\|m\)\b//g') \
        -lzstd -llzma -llz4 -lz -Wl,-Bdynamic -lm -lrt -lpthread
    corpus=$source/tests/fuzz/corpus/$name
    if [ -d "$corpus" ]; then
        rm -f "$OUT/${name}_seed_corpus.zip"
        (cd "$corpus" && zip -q -X -r "$OUT/${name}_seed_corpus.zip" .)
    fi
    dictionary=$source/oss-fuzz/dictionaries/${name#fuzz_}.dict
    if [ -f "$dictionary" ]; then
        cp "$dictionary" "$OUT/$name.dict"
    fi
done
