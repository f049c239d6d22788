# sh tests/bench/compile.sh: what including eager.h costs, and what compiling its implementation costs. The best of three
# measurements, in milliseconds of CPU; sizes of the object file's parts in KB.
cd "$(dirname "$0")/../.."
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
: >"$T/empty.c"
echo '#include "eager.h"' >"$T/include.c"
printf '#define EAGER_IMPLEMENTATION\n#include "eager.h"\n' >"$T/eager.c"

cost() {        # how many runs are one measurement, then the command
    runs=$1; shift
    for round in 1 2 3; do
        sh -c 'n=$1; shift; while [ $n -gt 0 ]; do "$@" || exit 1; n=$((n - 1)); done; times' sh "$runs" "$@" | tail -n 1 | tr 'ms' '  ' |
            awk -v n="$runs" '{ printf "%.0f\n", (60 * $1 + $2 + 60 * $3 + $4) * 1000 / n }'
    done | sort -n | head -n 1
}

echo '| compiler | include only | over an empty file | implementation -O0 | -O1 | -O2 | code at -O2 |'
echo '|---|---:|---:|---:|---:|---:|---:|'
for cc in gcc clang; do
    command -v $cc >/dev/null 2>&1 || continue
    empty=$(cost 20 $cc -std=c11 -c "$T/empty.c" -o "$T/o")
    include=$(cost 20 $cc -std=c11 -I. -c "$T/include.c" -o "$T/o")
    for switch in '' -DEAGER_CORE; do
        row="| $($cc --version | head -n 1 | sed 's/ (.*) / /') $switch | $include ms | $((include - empty)) ms |"
        for level in -O0 -O1 -O2; do
            row="$row $(cost 1 $cc -std=c11 $level $switch -I. -c "$T/eager.c" -o "$T/eager.o") ms |"
        done
        echo "$row $(size "$T/eager.o" | awk 'NR == 2 { printf "%.0f", $1 / 1024 }') KB |"
    done
done

# Where a single-file program's code comes from: KB of code (with constants) for each chapter of eager.h, by the lines of
# the functions. Texts of kernels stand in chapter 38, whoever is stamped from them.
echo
echo "| chapter | $(echo 05_tape 12_digits_fit | sed 's/ / | /g') |"
echo '|---|---:|---:|'
for name in 05_tape 12_digits_fit; do
    gcc -std=c11 -O2 -g1 -DEAGER_STATIC -I. -c examples/$name.c -o "$T/$name.o" &&
        nm -S -l "$T/$name.o" | awk -v name=$name '$3 ~ /^[tTrR]$/ && /eager.h:[0-9]+$/ { n = $NF; sub(/.*:/, "", n); print name, n, $2 }'
done | awk '
    FNR == NR { if (match($0, /^\/\/# [0-9]+  /)) { count++; first[count] = FNR; title[count] = $0
                    sub(/^\/\/# /, "", title[count]); sub(/ -+$/, "", title[count]) } next }
    { k = count; while (k > 1 && first[k] > $2) k--; bytes = 0
      for (i = 1; i <= length($3); i++) bytes = bytes * 16 + index("0123456789abcdef", substr($3, i, 1)) - 1
      kb[$1, k] += bytes / 1024; sum[$1] += bytes / 1024 }
    END { for (k = 1; k <= count; k++) if (kb["05_tape", k] + kb["12_digits_fit", k] > 0)
              printf "| %s | %.1f | %.1f |\n", title[k], kb["05_tape", k], kb["12_digits_fit", k]
          printf "| together | %.1f | %.1f |\n", sum["05_tape"], sum["12_digits_fit"] }' eager.h -
