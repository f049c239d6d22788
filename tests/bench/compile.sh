# sh tests/bench/compile.sh [aims] [profile] [chapters] [levels]: what including and compiling eager.h costs; all four parts without a word.
#   aims      user seconds of the programs that RESULTS.md names ("What is aimed at"), the best of ROUNDS (3), and bytes by `size`
#   profile   where the time goes: gcc's -ftime-report and clang's -ftime-trace
#   chapters  KB of code in four programs, by chapter of eager.h
#   levels    the implementation at -O0, -O1 and -O2, whole and with EAGER_CORE
# Other programs on the machine make user seconds longer: run it on one that does nothing else.
cd "$(dirname "$0")/../.."
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
[ $# -gt 0 ] || set -- aims profile chapters levels
: >"$T/empty.c"
echo '#include "eager.h"' >"$T/include.c"
printf '#define EAGER_IMPLEMENTATION\n#include "eager.h"\n' >"$T/eager.c"
sed -n '/^cat >"$T\/perceptron.c"/,/^END$/p' tests/checks/check_size.sh | sed '1d;$d' >"$T/perceptron.c"

cost() {        # user milliseconds: how many runs are one measurement, then the command
    runs=$1; shift
    for round in $(seq "${ROUNDS:-3}"); do
        sh -c 'n=$1; shift; while [ $n -gt 0 ]; do "$@" || exit 1; n=$((n - 1)); done; times' sh "$runs" "$@" | tail -n 1 | tr 'ms' '  ' |
            awk -v n="$runs" '{ printf "%.0f\n", (60 * $1 + $2) * 1000 / n }'
    done | sort -n | head -n 1
}
name_of() { $1 --version | head -n 1 | sed 's/ (.*) / /'; }

aim() {         # what the row says, the aim, compiler, source, flags
    title=$1 most=$2 cc=$3 source=$4; shift 4
    command -v "$cc" >/dev/null 2>&1 || return 0
    ms=$(cost 1 "$cc" -std=c11 -w "$@" -I. -Iexamples -c "$source" -o "$T/aim.o")
    echo "| $title | $most s | $(awk -v ms="$ms" 'BEGIN { printf "%.1f", ms / 1000 }') s |"
}
bytes() {       # what the row says, the aim, text or all, compiler, source, flags
    title=$1 most=$2 what=$3 cc=$4 source=$5; shift 5
    command -v "$cc" >/dev/null 2>&1 || return 0
    "$cc" -std=c11 -w -DEAGER_STATIC "$@" -I. -Iexamples "$source" -o "$T/aim" -lm -lpthread || return
    echo "| $title | $most KB | $(size "$T/aim" | awk -v what="$what" 'NR == 2 { printf "%.1f", (what == "text" ? $1 : $1 + $2) / 1000 }') KB |"
}
aims() {
    echo "load $(cut -d' ' -f1 /proc/loadavg 2>/dev/null), $(name_of gcc), $(command -v clang >/dev/null && name_of clang)"
    echo
    echo '| | aim | reached |'
    echo '|---|---:|---:|'
    S=-DEAGER_STATIC
    aim 'examples/05_tape.c, gcc -O2' 4.5 gcc examples/05_tape.c $S -O2
    aim 'examples/05_tape.c, clang -O2' 4.5 clang examples/05_tape.c $S -O2
    aim 'examples/05_tape.c, gcc -O0' 3 gcc examples/05_tape.c $S -O0
    aim 'examples/12_digits_fit.c, gcc -O2' 8 gcc examples/12_digits_fit.c $S -O2
    aim 'eager.c whole, gcc -O2' 8.5 gcc "$T/eager.c" -O2
    aim 'eager.c whole, clang -O2' 11 clang "$T/eager.c" -O2
    for cc in gcc clang; do
        command -v $cc >/dev/null 2>&1 || continue
        echo "| including the header, $cc | 30 ms | $(($(cost 20 $cc -std=c11 -I. -c "$T/include.c" -o "$T/o") - $(cost 20 $cc -std=c11 -c "$T/empty.c" -o "$T/o"))) ms |"
    done
    bytes 'examples/05_tape.c, gcc -O2, text and data' 150 all gcc examples/05_tape.c -O2
    bytes 'perceptron of three layers, gcc -Os with sections, text' 80 text gcc "$T/perceptron.c" -Os -ffunction-sections -fdata-sections -Wl,--gc-sections
}

profile() {
    for name in perceptron 05_tape 12_digits_fit whole; do
        case $name in
        perceptron) set -- -DEAGER_STATIC -Os -ffunction-sections -fdata-sections "$T/perceptron.c" ;;
        whole) set -- -O2 "$T/eager.c" ;;
        *) set -- -DEAGER_STATIC -O2 examples/$name.c ;;
        esac
        echo "gcc $* -ftime-report, user seconds: the phases, then the longest passes"
        gcc -std=c11 -w -I. -Iexamples -ftime-report "$@" -c -o "$T/o" 2>"$T/report"
        awk '/^ *(phase|TOTAL)/ { print; next } /:/ { p = $0; sub(/^[^:]*: */, "", p); split(p, n, " "); print n[1] "\t" $0 >(out) }' out="$T/passes" "$T/report" | cut -c1-60
        sort -rn "$T/passes" | head -n 12 | cut -f2 | cut -c1-60
        : >"$T/passes"
    done
    command -v clang >/dev/null 2>&1 || return 0
    for name in 05_tape 12_digits_fit; do
        echo "clang -O2 -ftime-trace of $name: milliseconds of the whole and of its parts"
        clang -std=c11 -O2 -w -DEAGER_STATIC -I. -Iexamples -ftime-trace -c examples/$name.c -o "$T/trace.o" || return
        tr '{' '\n' <"$T/trace.json" | awk 'match($0, /"name":"Total [^"]*"/) { name = substr($0, RSTART + 8, RLENGTH - 9)
            if (match($0, /"dur":[0-9]+/)) printf "%8.0f  %s\n", substr($0, RSTART + 6, RLENGTH - 6) / 1000, name }' |
            sort -rn | head -n 14
    done
}

# Where a single-file program's code comes from: KB of code (with constants) for each chapter of eager.h, by the lines of
# the functions. Texts of kernels stand in chapter 38, whoever is stamped from them.
# perceptron: linked at -Os with gc-sections; whole: the implementation.
chapters() {
    echo "| chapter | perceptron | 05_tape | 12_digits_fit | whole |"
    echo '|---|---:|---:|---:|---:|'
    for name in perceptron 05_tape 12_digits_fit whole; do
        case $name in
        perceptron) set -- -DEAGER_STATIC -Os -ffunction-sections -fdata-sections -Wl,--gc-sections "$T/perceptron.c" -lm -lpthread ;;
        whole) set -- -O2 -c "$T/eager.c" ;;
        *) set -- -DEAGER_STATIC -O2 -c examples/$name.c ;;
        esac
        gcc -std=c11 -g1 -w -I. -Iexamples "$@" -o "$T/$name.o" &&
            nm -S -l "$T/$name.o" | awk -v name=$name '$3 ~ /^[tTrR]$/ && /eager.h:[0-9]+$/ { n = $NF; sub(/.*:/, "", n); print name, n, $2 }'
    done | awk '
        FNR == NR { if (match($0, /^\/\/# [0-9]+  /)) { count++; first[count] = FNR; title[count] = $0
                        sub(/^\/\/# /, "", title[count]); sub(/ -+$/, "", title[count]) } next }
        { k = count; while (k > 1 && first[k] > $2) k--; bytes = 0
          for (i = 1; i <= length($3); i++) bytes = bytes * 16 + index("0123456789abcdef", substr($3, i, 1)) - 1
          kb[$1, k] += bytes / 1024; sum[$1] += bytes / 1024 }
        function row(what, k,    i, text) {
            for (i = 1; i <= 4; i++) text = text sprintf(" %.1f |", k ? kb[name[i], k] : sum[name[i]])
            print "| " what " |" text
        }
        END { split("perceptron 05_tape 12_digits_fit whole", name, " ")
              for (k = 1; k <= count; k++) if (kb["whole", k] > 0) row(title[k], k)
              row("together", 0) }' eager.h -
}

levels() {
    echo '| compiler | implementation -O0 | -O1 | -O2 | code at -O2 |'
    echo '|---|---:|---:|---:|---:|'
    for cc in gcc clang; do
        command -v $cc >/dev/null 2>&1 || continue
        for switch in '' -DEAGER_CORE; do
            row="| $(name_of $cc) $switch |"
            for level in -O0 -O1 -O2; do
                row="$row $(cost 1 $cc -std=c11 $level $switch -I. -c "$T/eager.c" -o "$T/eager.o") ms |"
            done
            echo "$row $(size "$T/eager.o" | awk 'NR == 2 { printf "%.0f", $1 / 1024 }') KB |"
        done
    done
}

for part; do
    case $part in aims | profile | chapters | levels) $part ;; *) echo "compile.sh: no part '$part'" >&2; exit 1 ;; esac
    echo
done
