# The branches of eager.h that the tests take, by gcov: the percentage, and in .build/coverage/missed.txt the others, line by line.
# Less than 90% of all, where all tests ran, is a failure.
set -u
out=$B/coverage
rm -f "$out"/*.gcda 2>/dev/null
sh tests/run.sh coverage coverage-base coverage-guard ${CXX:+coverage-cuda} "$@"
status=$?
case $($CC --version | head -n 1) in *clang*) gcov='llvm-cov gcov' ;; *) gcov=gcov ;; esac
ln -sf ../../eager.h "$out/eager.h"
(cd "$out" && $gcov -b -c eager.o >gcov.log 2>&1 && [ -f eager.h.gcov ]) || { cat "$out/gcov.log"; echo "coverage: no figures"; exit 1; }
awk -F: -v missed="$out/missed.txt" -v least=$([ $# = 0 ] && echo 90 || echo 0) '
    /^branch/ { all++; if ($0 ~ /never executed|taken 0( |$)/) { none++; miss[line]++ } ; next }
    /^(call|function|unconditional)/ { next }
    { line = $2 + 0; text = $0; sub(/^[^:]*:[^:]*:/, "", text); source[line] = text; last = line }
    END {
        for (i = 1; i <= last; i++) if (miss[i]) printf "eager.h:%d: %d: %s\n", i, miss[i], source[i] >missed
        printf "coverage: %d of %d branches of eager.h taken, %.1f%%; the others: %s\n", all - none, all, all ? 100 * (all - none) / all : 0, missed
        if (100 * (all - none) < least * all) { print "coverage: less than " least "%"; exit 1 }
    }' "$out/eager.h.gcov" || status=1
exit $status
