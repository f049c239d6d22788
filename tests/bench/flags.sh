# sh tests/bench/flags.sh [WORKLOAD...]: what the compiler's flags cost: rows of bench.c, eager.h alone, one thread, built by
# gcc and clang with each of FLAGS. The programs run in turns on one core, ROUNDS (3) times for SECONDS_EACH (0.05) each, and of
# each row the least time counts. Prints the row's time with -O2, then for each of the other flags the time by that of
# -O2 of the same compiler; over 1.2 it stands between stars. COMPILERS ('gcc clang'), BUILDS (a folder that keeps the programs
# and takes those that are there) and RUN (a command that runs the programs, as 'nice -n -15') may be set.
cd "$(dirname "$0")/../.."
FLAGS='-O2 -O3,-march=native -O3,-ffast-math -Os -O1 -O0'
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
builds=${BUILDS:-$T} pin=$RUN compilers=
command -v taskset >/dev/null && pin="$RUN taskset -c $(($(nproc) - 1))"
for cc in ${COMPILERS:-gcc clang}; do
    command -v "$cc" >/dev/null && compilers="$compilers $cc" || continue
    for flags in $FLAGS; do
        [ -x "$builds/bench_$cc$flags" ] ||
            $cc -std=c11 -w $(echo "$flags" | tr , ' ') -I. tests/bench/bench.c -o "$builds/bench_$cc$flags" -lm -lpthread || exit 1
    done
done
# plain and stream are loops of bench.c's own
[ $# -gt 0 ] || set -- $(sed -n 's/^    {"\([a-z0-9_]*\)", "[mun]*s", 1e.*make_.*/\1/p' tests/bench/bench.c | grep -v -e entries_10m -e x200 -e _plain -e _stream) startup
for name; do
    for round in $(seq "${ROUNDS:-3}"); do
        for cc in $compilers; do
            for flags in $FLAGS; do
                EAGER_NUM_THREADS=1 $pin "$builds/bench_$cc$flags" "$name" 1 "${SECONDS_EACH:-0.05}" 2 |
                    sed -n "s/.*\"min\": \([^,]*\),.*/$name $cc $flags \1/p" >>"$T/times"
            done
        done
    done
done
awk -v flags="$FLAGS" -v compilers="$compilers" '
    { key = $1 " " $2 " " $3; if (!(key in least) || $4 < least[key]) least[key] = $4; if (!($1 in seen)) { seen[$1]; row[++rows] = $1 } }
    END { n = split(flags, flag, " "); c = split(compilers, compiler, " "); line = "| row |"; rule = "|---|"
          for (k = 1; k <= c; k++) for (i = 1; i <= n; i++) {
              text = flag[i]; sub(",", " ", text)
              line = line " " compiler[k] " " text (i == 1 ? ", us" : "") " |"; rule = rule "---:|" }
          print line; print rule
          for (r = 1; r <= rows; r++) {
              line = "| " row[r] " |"
              for (k = 1; k <= c; k++) for (i = 1; i <= n; i++) {
                  base = least[row[r] " " compiler[k] " " flag[1]]; ratio = least[row[r] " " compiler[k] " " flag[i]] / base
                  over += i > 1 && ratio > 1.2
                  line = line (i == 1 ? sprintf(" %.3g |", 1e6 * base) : sprintf(ratio > 1.2 ? " **%.2f** |" : " %.2f |", ratio)) }
              print line }
          print over + 0 " ratios over 1.2" }' "$T/times"
