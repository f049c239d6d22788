# ./build.sh test-cuda [NAME...]: all tests on the GPU of this machine, the comparisons with the CPU first; compute-sanitizer's memcheck
# and racecheck where it is found; the examples. A short table at the end; everything that was said is in .build/cuda/test.log.
set -u
. tests/cuda_build.sh
log=$C/test.log table=$C/test.table
: >"$log"; : >"$table"
row() { printf '%-28s %s\n' "$1" "$2" | tee -a "$table"; }
files="tests/cuda.c tests/devices.c $(ls tests/*.c | grep -v -e tests/cuda -e tests/devices.c)"
[ $# -eq 0 ] || files=$(for name; do ls tests/"$name".c; done)
failed=0
# All are compiled first, several at once: a GPU is borrowed by the minute.
printf '%s\n' $files | xargs -P "$JOBS" -I{} sh -c 'n=$(basename {} .c); '"$CC"' -std=c11 -O1 -DTEST_CUDA -DEAGER_CUDA -I. -Itests -c {} -o '"$C"'/$n.test.o >'"$C"'/$n.said 2>&1 &&
    '"$CC"' '"$C"'/$n.test.o '"$C"'/eager.o '"$CUDA_LINK $LIBS"' -o '"$C"'/$n.test >>'"$C"'/$n.said 2>&1'
for file in $files; do
    name=$(basename "$file" .c)
    if [ ! -x "$C/$name.test" ]; then
        row "$name" "does not build: $(head -n 1 "$C/$name.said")"
        cat "$C/$name.said" >>"$log"
        failed=1
        continue
    fi
    export TEST_TEMP="$C/$name.temp"
    rm -rf "$TEST_TEMP"; mkdir -p "$TEST_TEMP"
    timeout 300 "$C/$name.test" >"$C/$name.out" 2>&1
    status=$?
    cat "$C/$name.out" >>"$log"
    said=$(tail -n 1 "$C/$name.out")
    case $said in *": 0 passed, 0 failed"*) [ $status = 0 ] && continue ;; esac
    [ $status = 0 ] || { failed=1; said="status $status: $said"; head -n 12 "$C/$name.out"; }
    row "$name" "$said"
done
sanitizer=$(command -v compute-sanitizer || ls "$(dirname "$(command -v "$NVCC")")"/compute-sanitizer 2>/dev/null || true)
if [ -z "$sanitizer" ]; then row compute-sanitizer "not found"
else for tool in memcheck racecheck synccheck; do
    timeout 280 "$sanitizer" --tool $tool --error-exitcode 9 "$C/cuda.test" cuda_rows_int32 cuda_reductions cuda_rows_of cuda_cumsum cuda_argsort cuda_matmul cuda_convolution \
        cuda_pooling cuda_gather cuda_optimizers cuda_copies >"$C/$tool.out" 2>&1
    status=$?
    cat "$C/$tool.out" >>"$log"
    [ $status = 0 ] || failed=1
    row "$tool" "status $status: $(grep 'ERROR SUMMARY\|RACECHECK SUMMARY' "$C/$tool.out" | tail -n 1)"
done; fi
$CC -std=c11 -O2 -DEAGER_CUDA -I. examples/22_devices.c $CUDA_LINK $LIBS -o "$C/devices" 2>>"$log" && "$C/devices" 1000 >"$C/devices.out" 2>&1 || failed=1
cat "$C/devices.out"
[ $failed = 0 ] && verdict="everything passed" || verdict="SOMETHING FAILED: $log"
printf '\n== the tests on a GPU\n'; cat "$table"; echo "$verdict"
exit $failed
