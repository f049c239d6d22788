# ./build.sh test-cuda [NAME...]: all tests on the GPU of this machine, the comparisons with the CPU first; compute-sanitizer's memcheck,
# racecheck and synccheck where it is found; an example. A short table at the end; everything that was said is in test.log,
# in the folder OUT or .build/cuda.
# Ends after $limit seconds, whatever is left.
set -u
limit=${CUDA_SECONDS:-520}
. tests/gpu/cuda_build.sh
log=$figures/test.log table=$figures/test.table
: >"$log"; : >"$table"
row() { printf '%-28s %s\n' "$1" "$2" >>"$table"; }
files="tests/gpu/cuda.c tests/core/devices.c $(ls tests/*.c | grep -v -e tests/cuda -e tests/core/devices.c)"
[ $# -eq 0 ] || files=$(for name; do ls tests/"$name".c; done)
names=$(for file in $files; do basename "$file" .c; done)
failed=0

awk -f tests/core/nulls.awk tests/core/nulls.c eager.h >"$B/nulls.h"
# What is compiled needs no GPU: several at once, beside nvcc.
rm -f "$C"/*.test "$C"/*.said.test "$C"/*.status
printf '%s\n' $names | xargs -P "$JOBS" -I{} sh -c "$CC -std=c11 -O1 -DTEST_CUDA -DEAGER_CUDA -I. -Itests -c tests/{}.c -o $C/{}.test.o >$C/{}.said.test 2>&1"
cuda_ready
printf '%s\n' $names | xargs -P "$JOBS" -I{} sh -c "[ ! -f $C/{}.test.o ] || $CC $C/{}.test.o $C/eager.o $CUDA_LINK $LIBS -o $C/{}.test >>$C/{}.said.test 2>&1"

# Four at once: most of a test's time is the CPU's.
end=$((begun + limit)) here=$(pwd)
export C end here
printf '%s\n' $names | xargs -P 4 -I{} sh -c '
    [ -x $C/{}.test ] || exit 0
    left=$((end - $(date +%s) - 20)); [ $left -gt 0 ] || exit 0
    [ $left -lt 200 ] || left=200
    rm -rf $C/{}.temp; mkdir -p $C/{}.temp
    TEST_TEMP=$here/$C/{}.temp timeout $left $C/{}.test >$C/{}.out 2>&1 </dev/null
    echo $? >$C/{}.status'
passed=0 bad=0 skipped=0
for name in $names; do
    if [ ! -x "$C/$name.test" ]; then
        row "$name" "does not build: $(head -n 1 "$C/$name.said.test")"
        cat "$C/$name.said.test" >>"$log"
    elif [ ! -f "$C/$name.status" ]; then row "$name" "not run: no time was left"
    else
        cat "$C/$name.out" >>"$log"
        set -- $(sed -n "s/^.*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped\$/\1 \2 \3/p" "$C/$name.out" | tail -n 1) 0 0 0
        passed=$((passed + $1)) bad=$((bad + $2)) skipped=$((skipped + $3))
        [ "$(cat "$C/$name.status")" != 0 ] || continue
        row "$name" "status $(cat "$C/$name.status") (124: too long), $1 passed, $2 failed"
        grep -v ': skipped ' "$C/$name.out" | tail -n 16 | sed 's/^/    /' >>"$table"
    fi
    failed=1
done
row "tests on the GPU" "$passed passed, $bad failed, $skipped skipped, after $((limit - $(left))) s"

sanitizer=$(command -v compute-sanitizer || ls "$home"/bin/compute-sanitizer "$home"/compute-sanitizer/compute-sanitizer 2>/dev/null | head -n 1)
if [ -z "$sanitizer" ]; then row compute-sanitizer "not found"
elif [ ! -x "$C/cuda.test" ]; then row compute-sanitizer "not run: cuda.test is not there"
elif [ "$(left)" -lt 60 ]; then row compute-sanitizer "not run: no time was left"
else
    # Our own kernels alone, where it can do so: cuBLAS's take long, and racecheck has its doubts about some.
    only='--kernel-name kns=egi_'
    timeout 60 "$sanitizer" $only "$C/probe" >>"$log" 2>&1 || only=''
    some=$(($(left) - 30)); [ $some -lt 200 ] || some=200
    for tool in memcheck racecheck synccheck; do
        { timeout $some "$sanitizer" $only --tool $tool --error-exitcode 9 "$C/cuda.test" cuda_reductions cuda_rows_of cuda_cumsum cuda_argsort cuda_matmul cuda_dense cuda_convolution \
            cuda_pooling cuda_gather cuda_scatter cuda_optimizers cuda_layer_norm cuda_attention cuda_recurrent cuda_prefetched >"$C/$tool.out" 2>&1; echo $? >"$C/$tool.status"; } &
    done
    wait
    for tool in memcheck racecheck synccheck; do
        status=$(cat "$C/$tool.status")
        cat "$C/$tool.out" >>"$log"
        # That it takes too long, or cannot look at this device, is no fault of the kernels. What it found until then is.
        case $status in 0) ;; 124) status="124 (too long)"; ! grep -q '^=====.*\(Invalid\|Misaligned\|Race reported\|hazard\|Barrier error\)' "$C/$tool.out" || { status="$status, errors found"; failed=1; } ;; *) grep -q 'Device not supported' "$C/$tool.out" && status="$status (cannot run here)" || failed=1 ;; esac
        row "$tool" "status $status: $(grep 'ERROR SUMMARY\|RACECHECK SUMMARY' "$C/$tool.out" | tail -n 1)"
    done
fi
if $CC -std=c11 -O2 -DEAGER_CUDA -I. examples/22_devices.c $CUDA_LINK $LIBS -o "$C/example" 2>>"$log" && timeout 40 "$C/example" 1000 >"$C/example.out" 2>&1; then
    row "examples/22_devices.c" "runs"
    sed 's/^/    /' "$C/example.out" >>"$table"
else
    row "examples/22_devices.c" "FAILS"
    failed=1
fi
[ $failed = 0 ] && verdict="everything passed" || verdict="SOMETHING FAILED: $log has all of it"
printf '\n== the tests on a GPU\n'; cat "$table"; echo "$verdict, after $((limit - $(left))) s"
exit $failed
