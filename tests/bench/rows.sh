# sh tests/bench/rows.sh COMMIT: every elementwise op and reduction of float32, forward and with its gradient, at 4, 64,
# 4,096 and 1,000,000 elements (rows.c), with eager.h of that commit and the present one, in turns on one core. Prints the
# rows of the present one that are slower by more than 10 ns (4 and 64 elements; gradients without what the tape itself
# takes) or by more than 5% (above), with its vectors as they are found and with those of 16 bytes (EAGER_ISA=base); what
# seems slower is measured once more, in ROUNDS (8) more turns. Some 60 seconds, and two compilations.
cd "$(dirname "$0")/../.."
commit=${1:?usage: sh tests/bench/rows.sh COMMIT}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
pin=$RUN                # RUN: a command that runs the programs, as 'nice -n -15'
command -v taskset >/dev/null && pin="$RUN taskset -c $(($(nproc) - 1))"
mkdir "$T/old" "$T/new"
git show "$commit:eager.h" >"$T/old/eager.h" && cp eager.h "$T/new/eager.h" || exit 1
sed -n 's/^ *\(ROW[123](.*)\) *$/\1/p' tests/core/ops.c | grep -v '#' >"$T/all"
while read -r row; do
    name=$(echo "$row" | sed 's/^ROW[123](\([a-z0-9_]*\).*/\1/')
    if grep -qw "eg_$name" "$T/old/eager.h"; then echo "$row"; else lacks="$lacks $name"; fi
done <"$T/all" >"$T/rows.h"
echo "$commit lacks:${lacks:- nothing}"
for version in old new; do
    ${CC:-cc} -std=c11 -O2 -w -DEAGER_STATIC -I"$T/$version" -I"$T" tests/bench/rows.c -o "$T/$version/rows" -lm -lpthread || exit 1
done

turns() {       # rounds, ISA (or nothing), file of rows (or nothing): adds to $T/old.txt and $T/new.txt
    for round in $(seq "$1"); do
        $pin "$T/old/rows" $3 >>"$T/old.txt" || exit 1
        env ${2:+EAGER_ISA=$2} $pin "$T/new/rows" $3 >>"$T/new.txt" || exit 1
    done
}
# The least of all rounds: what is slower, with a line for each size; or its names alone. A gradient of 4 or 64 elements is
# also compared without what the tape itself takes: that is what it takes for identity, or add where there are more
# operands, whose gradients have no kernel.
compare() {
    awk -v only="$1" '
        { key = $1 " " $2 " " $3; old = FILENAME ~ /old.txt$/; operands[key] = $4
          if (!(key in seen)) { seen[key] = 1; order[++n] = key }
          if (old) { if (!(key in a) || $5 < a[key]) a[key] = $5 } else if (!(key in b) || $5 < b[key]) b[key] = $5 }
        END { for (i = 1; i <= n; i++) { key = order[i]; split(key, part, " ")
                  small = part[2] <= 64; slower = small ? b[key] > a[key] + 10 : b[key] > a[key] * 1.05
                  base = (operands[key] > 1 ? "add " : "identity ") part[2] " gradient"
                  tape = small && part[3] == "gradient" ? b[base] - a[base] : 0
                  left = slower && (!small || b[key] - a[key] - tape > 10)
                  group = part[2] " " part[3]
                  count[group]++; many[group] += slower; beyond[group] += left; sum[group] += log(b[key] / a[key])
                  if (only == "names" && (slower || key ~ /^(identity|add) /)) print key
                  if (only != "names" && left) printf "| %s | %.0f | %.0f | %+.0f | %.2f |\n", key, a[key], b[key],
                                                      b[key] - a[key] - tape, b[key] / a[key] }
              if (only == "names") exit
              groups = split("4 forward,64 forward,4096 forward,1000000 forward,4 gradient,64 gradient,4096 gradient," \
                             "1000000 gradient", each, ",")
              for (i = 1; i <= groups; i++) {
                  g = each[i]
                  printf "%s: %d measurements, %d slower, %d of these by more than the tape itself, %.2f times the time by the " \
                         "geometric mean\n", g, count[g], many[g], beyond[g],
                         exp(sum[g] / count[g])
              }
              split("4 64", size, " ")
              for (i = 1; i <= 2; i++) for (k = 1; k <= 2; k++) {
                  base = (k == 1 ? "identity " : "add ") size[i] " gradient"
                  printf "the tape, %s: %.0f ns before, %.0f now\n", base, a[base], b[base]
              } }' "$T/old.txt" "$T/new.txt"
}
for isa in '' base; do
    rm -f "$T/old.txt" "$T/new.txt"
    turns 3 "$isa" ''
    compare names >"$T/slower"
    [ ! -s "$T/slower" ] || turns "${ROUNDS:-8}" "$isa" "$T/slower"
    echo
    echo "EAGER_ISA=${isa:-as found}; row, elements, form, ns before, ns now, more by (without the tape), ratio:"
    compare all
done
