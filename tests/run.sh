# tests/run.sh [CONFIG...] [NAME...]: for each configuration builds eager.o once, links every tests/GROUP/*.c and *.cpp with it and
# runs them; with plain it runs the check_*.sh too (check_cuda only where it is named: nvcc takes minutes); adds up. build.sh starts it
# and says what the names mean and what tools were found. CI asks for all it wants in one call, so that no core waits for another one's
# last test: CONFIG:NAME,NAME is a configuration of which only these files run, and long:CONFIG:NAME,NAME are files that run with
# EAGER_LONG=1, before all others, since they take longest.
set -u
WARN='-Wall -Wextra -Wpedantic -Wshadow -Wconversion'

# The library of this configuration is configuration $1's, with the stand-in for CUDA where there is a C++ compiler for it: one eager.o
# serves the processor's tests and the stand-in's.
with_cuda() {
    library=$B/$1/eager.o
    [ -z "$CXX" ] || { flags="$flags -DEAGER_CUDA" gpu=$B/$1/eager_cuda.o; libs="$gpu -lstdc++ $libs"; }
}
# How configuration $1 compiles eager.c, tests in C and in C++, and links; lacks: why it cannot be. The library may be one that several
# configurations share; defines is what only the tests are told. TEST_AGAIN is for those whose kernels are the same text in the same hands
# as plain's or clang's, which run the sweeps over sizes whole.
configure() {
    eager="$CC -std=c11 -x c" c="$CC -std=c11" cpp=${CXX:+$CXX -std=c++17} link=$CC flags=-O2 libs=$LIBS wrap='' lacks='' defines='' sanitizer=''
    clangpp=${CLANGXX:+$CLANGXX -std=c++17} out=$B/$1 library=$B/$1/eager.o gpu=''
    sanitized='-g1 -O1 -fno-omit-frame-pointer'             # functions and lines, which a report names
    covered='-g -O1 -fno-inline -DTEST_SLOW -DTEST_COVERED --coverage -fprofile-update=atomic'        # at -O0, branches on constants count too
    case $1 in
    plain) ;;
    optional) flags="-O1 $OPTIONS" defines=-DTEST_AGAIN libs="$OPTION_LIBS $LIBS"; [ -n "$OPTIONS" ] || lacks='none of OpenBLAS, zlib, libpng and libjpeg found'
        ! grep -q avx512f /proc/cpuinfo 2>&1 || wrap='env EAGER_ISA=avx2' ;;     # with AVX-512, nothing goes to OpenBLAS
    debug) flags='-O1 -g1 -DEAGER_DEBUG' defines=-DTEST_AGAIN ;;
    guard) flags='' defines='-DTEST_GUARD -DTEST_AGAIN' ;;         # without -O, as users debug
    cuda-host) flags=$sanitized defines='-DTEST_CUDA -DTEST_CUDA_HOST -DTEST_SLOW'; with_cuda cuda-host; [ -n "$CXX" ] || lacks='no C++ compiler found' ;;
    nothreads) flags='-O1 -DEAGER_NO_THREADS' defines=-DTEST_AGAIN ;;
    c++) eager="$cpp -x c++" link=$CXX defines=-DTEST_AGAIN; [ -n "$CXX" ] || lacks='no C++ compiler found' ;;
    clang) eager="$CLANG -std=c11 -x c" c="$CLANG -std=c11" cpp=$clangpp link=$CLANG; [ -n "$CLANG" ] || lacks='no clang found' ;;
    clang++) eager="$clangpp -x c++" c="$CLANG -std=c11" cpp=$clangpp link=$CLANGXX defines=-DTEST_AGAIN; [ -n "$clangpp" ] || lacks='no clang++ found' ;;
    address | cuda-address) flags="$sanitized -DEAGER_DEBUG -fsanitize=address,undefined -fno-sanitize-recover=all" defines='-DTEST_NO_SIGNALS -DTEST_SLOW'; with_cuda address
        case $1 in cuda-*) defines="$defines -DTEST_CUDA -DTEST_CUDA_HOST"; [ -n "$CXX" ] || lacks='no C++ compiler found' ;; esac ;;
    thread) flags="$sanitized -fsanitize=thread" defines='-DTEST_NO_SIGNALS -DTEST_SLOW' ;;
    # What looks for leaks alone is linked, and changes no code.
    leak) flags=$sanitized defines='-DTEST_NO_SIGNALS -DTEST_SLOW' sanitizer=-fsanitize=leak; with_cuda cuda-host; libs="$sanitizer $libs" ;;
    valgrind) flags=$sanitized defines=-DTEST_SLOW; with_cuda cuda-host; wrap='valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite'
        command -v valgrind >/dev/null || lacks='no valgrind found' ;;
    # All with the readers of packed files and pictures; without OpenBLAS, which takes the products away from eager.h's own tiles. One
    # eager.o, which counts what the tests take of it on the processor, with its vectors and with those of 16 bytes, on the guarded device
    # and, in the files of gpu/, on the stand-in for CUDA, where the other files take minutes and 0.3% more of the branches.
    coverage | coverage-base | coverage-guard | coverage-cuda)
        flags="$covered $READERS" libs="$READER_LIBS $LIBS"; with_cuda coverage
        case $1 in *-base) wrap='env EAGER_ISA=base' ;; *-guard) defines=-DTEST_GUARD ;; *-cuda) defines='-DTEST_CUDA -DTEST_CUDA_HOST' ;; esac ;;
    *) return 1 ;;
    esac
    flags="$flags $CFLAGS" fast="$flags $defines -O0 $CFLAGS"         # the tests themselves need no speed, but a quick build
}

# compile TARGET 'WHAT IT IS MADE FROM' COMMAND...: runs the command where the target is older than its sources or was made by
# another command. Whatever the compiler says is a failure, a warning too.
compile() {
    target=$1 sources=$2; shift 2
    [ -f "$target" ] && [ "$(cat "$target.how" 2>&1)" = "$*" ] && [ -z "$(find $sources -newer "$target")" ] && return
    rm -f "$target.how"
    "$@" -o "$target" >"$target.said" 2>&1 && [ ! -s "$target.said" ] && printf %s "$*" >"$target.how" && times >"$target.times" && return
    echo "$*"; head -n 40 "$target.said"
    return 1
}

seconds() { cat "$@" | tr ms '  ' | awk '{ sum += 60 * ($1 + $3) + $2 + $4 } END { print sum }'; }             # that `times` told
lacking() {                                                    # whether configuration $1 cannot be, which it says
    configure "$1"
    printf 'int main(void) { return 0; }' >"$out/probe.c"
    case "$flags $sanitizer" in *-fsanitize=*)
        { $link $flags "$out/probe.c" -o "$out/probe" $sanitizer && "$out/probe"; } >/dev/null 2>&1 || lacks="$link has no sanitizer for it" ;;
    esac
    [ -n "$lacks" ] || return
    echo "$1: skipped: $lacks" >&2
    echo "0 0 1" >"$out/eager.count"
}
core() {                                                       # eager.o of configuration $1
    core_build "$1"
    rm -f "$library.pending"
}
core_build() {
    configure "$1"
    {   compile "$library" "eager.h $B/eager.c" $eager $WARN $flags -I. -c "$B/eager.c" && case $gpu in ?*)
            # One of the two with cublasLt, so that what is there without it is tested, too.
            case $1 in *address) ;; *) lt=-DEAGER_CUBLASLT ;; esac
            # As nvcc does: a product and a sum are fused, where the processor can.
            ! grep -qsw fma /proc/cpuinfo || fused='-mfma -fexpensive-optimizations'
            case $1 in coverage*) flags="-O1 -DEAGER_CUDA $CFLAGS" ;; esac       # nothing is counted in it
            compile "$gpu" "eager.h eager_cuda.cu $(find tests/gpu/cuda_host -name '*.h' | tr '\n' ' ')" $CXX ${lt-} ${fused-} -ffp-contract=fast -std=c++17 -x c++ -Wall -Wextra $flags \
                -Itests/gpu/cuda_host -I. -c eager_cuda.cu ;;
        esac
    } >"$out/eager.log" && return
    printf '%s: eager.o does not build cleanly: 1 failed\n%s\n' "$1" "$(cat "$out/eager.log")"
    echo "0 1 0" >"$out/eager.count"
    { echo "$1 eager.o:"; head -n 40 "$out/eager.log"; } >"$out/eager.failed"
}

early() { grep -L 'plain/eager\.o' "$@"; grep -l library_wait "$@"; }                     # scripts that may begin before there is a library
core_wait() {                   # until another process, which began before, has made the library; if it does not build cleanly, that is said already
    for second in $(seq 1200); do [ -f "$library.pending" ] || break; sleep 1; done
    [ ! -f "$out/eager.count" ] || exit 0
}
object() {                      # configuration $1, test file $2: compiles it, which needs no library
    configure "$1"
    source=$2 name=$(basename "$2") compiler=$c
    name=${name%.*}
    program=$out/$name
    [ ! -f "$out/eager.count" ] || exit 0
    case $source in *.cpp) [ -n "$cpp" ] || exit 0; compiler=$cpp link=${cpp%% *} ;; esac
    compile "$program.o" "$source eager.h $B/nulls.h $(find tests -name "*.h" | tr "\n" " ")" $compiler $WARN $fast -I. -Itests -c "$source" >"$program.log"
}
one() {                         # configuration $1, test file $2, with EAGER_LONG if there is a $3; its counts and seconds of CPU go to NAME.count
    configure "$1"
    config=$1 source=$2 name=$(basename "$2")
    [ -z "${3-}" ] || export EAGER_LONG=1
    name=${name%.*}
    program=$out/$name
    [ ! -f "$out/eager.count" ] || exit 0
    case $source in
    *.sh) wrap="sh $source"; [ -n "$(early "$source")" ] || core_wait ;;
    *.c | *.cpp)
        { object "$1" "$2" && core_wait && compile "$program" "$program.o $library $gpu" $link $flags "$program.o" "$library" $libs >"$program.log"; } || {
            printf '%s %s: does not build cleanly: 1 failed\n%s\n' "$config" "$name" "$(cat "$program.log")"
            echo "0 1 0" >"$program.count"
            head -n 40 "$program.log" >"$program.failed"
            exit 0
        }
        wrap="$wrap $program" ;;
    esac
    export TEST_TEMP="$program.temp"
    # LeakSanitizer's own list of threads has a race (gcc 12): of two threads that create and join others at once, one may find the
    # entry of a thread that the other has just joined, since handles are used again. It ends the program, whatever that is; another run tells.
    for try in 1 2 3; do
        rm -rf "$TEST_TEMP"; mkdir -p "$TEST_TEMP"
        $LIMIT $wrap $NAMES >"$program.log" 2>&1 </dev/null
        status=$?
        grep -q 'LeakSanitizer: CHECK failed: sanitizer_thread_registry' "$program.log" || break
        echo "$config $name: LeakSanitizer tripped over its own list of threads (run $try of 3)"
    done
    # A program says its counts in its last line; one that does not, or ends badly after it, has failed once more.
    set -- $(sed -n "s/^$name: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped\$/\1 \2 \3/p" "$program.log" | tail -n 1) 0 0 0
    if [ $# -lt 6 ] || { [ $status != 0 ] && [ "$2" = 0 ]; }; then
        echo "$name: ended with status $status: 1 failed" >>"$program.log"
        set -- "$1" "$(($2 + 1))" "$3"
    fi
    times >"$program.times"
    echo "$1 $2 $3 $(seconds "$program.times" $(find "$out" -name "$name.o.times"))" >"$program.count"
    [ "$2" = 0 ] || { echo "$config $name:"; tail -n 40 "$program.log"; } >"$program.failed"
    [ "$1 $2 $3" = "0 0 0" ] || printf '%s\n' "$(tail -n 200 "$program.log" | sed "s/^$name: /$config $name: /")"
}

case ${1-} in --core | --object | --one) step=${1#--}; shift; "$step" "$@"; exit ;; esac

groups='core training files gpu checks fixtures'
file_of() { for group in $groups; do ls tests/$group/"$1".c tests/$group/"$1".cpp tests/$group/"$1".sh 2>/dev/null; done; }
lines_of() {                                                   # CONFIG:NAME,NAME as lines, each with what follows: CONFIG FILE $2
    configure "${1%%:*}" || { echo "tests/run.sh: $1: no such configuration" >&2; exit 2; }
    for part in $(echo "${1#*:}" | tr , ' '); do
        chapter=$(file_of "$part")
        [ -n "$chapter" ] || { echo "tests/run.sh: $1: no test file $part" >&2; exit 2; }
        for file in $chapter; do
            case $1:$file in plain:*) ;; *.sh) continue ;; esac    # cuda is gpu/cuda.c, never the script of a real GPU's tests
            echo "${1%%:*} $file${2:+ $2}"
        done
    done
}
configs='' files='' NAMES='' chosen='' long=''
for word; do
    if configure "$word"; then configs="$configs $word"; continue; fi
    case $word in
    long:*) lines=$(lines_of "${word#long:}" long) || exit
        long="$long$lines
" ;;
    *:*) lines=$(lines_of "$word" '') || exit
        chosen="$chosen$lines
" ;;
    *) chapter=$(file_of "$word")
        [ -n "$chapter" ] && files="$files $chapter" || NAMES="$NAMES $word" ;;
    esac
done
named=$files$NAMES
# Where nothing is named, what takes long and shows only a developer more is left out: CI names its configurations.
quick=''
[ -n "$configs$files$NAMES$chosen$long${EAGER_LONG-}" ] || quick=yes
[ -n "$configs$chosen$long" ] || configs="plain$([ -n "$quick" ] || echo "${OPTIONS:+ optional} guard")"     # the longest to compile first
[ -n "$files" ] || files=$(early tests/checks/check_*.sh; for group in checks gpu core training files fixtures; do ls tests/$group/check_*.sh tests/$group/*.c tests/$group/*.cpp 2>/dev/null; done)
[ -n "$named" ] || files=$(echo "$files" | grep -v '/check_cuda\.sh$')
# A file that compiles a copy of the library for itself takes its time. It shows nothing more on another device or beside other
# libraries, and where C++ is tested it is the very program that was made without (a test is C, and is not linked with eager.o here).
# With debug and leak it is the program of address, which has sanitizers, LeakSanitizer among them. Those of files/, core and
# ops_rows have one thread, and the others show the kernels without threads as the library's own are.
# Likewise what asks for the bits at any number of threads, or beside PyTorch's: it takes half a minute of both cores.
copies=$(grep -l '^#define EAGER_STATIC' tests/*/*.c)
once="$copies
tests/core/team.c
tests/training/gpt.c"
[ -z "$quick" ] || {
    slow='check_cluster check_compile check_dlpack check_flags check_lib check_overhead check_size team' copying=$(echo "$copies" | sed 's,.*/,,; s,\..*,,')
    for name in $slow $copying; do files=$(echo "$files" | grep -v "/$name\.[a-z]*\$"); done
    echo "Left out, as they take long:" $slow, what check_docs does with docs/change.md, and what compiles a copy of the
    echo "library:" $copying "(./build.sh test plain runs them all); all configurations but plain"
}
export QUICK=$quick
LIMIT=$(command -v timeout >/dev/null && echo timeout 1200)
export NAMES LIMIT

printf '#define EAGER_IMPLEMENTATION\n#include "eager.h"\n' >"$B/eager.c.new"
awk -f tests/core/nulls.awk tests/core/nulls.c eager.h >"$B/nulls.h.new"
for file in eager.c nulls.h; do cmp -s "$B/$file.new" "$B/$file" || cp "$B/$file.new" "$B/$file"; done
all=$(for config in $configs $(printf '%s' "$chosen$long" | cut -d' ' -f1); do echo "$config"; done | awk '!seen[$0]++')
# Each library is made once, of the first configuration that has it; what takes longest to compile comes first.
libraries=$(for config in $all; do
    mkdir -p "$B/$config"; rm -f "$B/$config"/*.count "$B/$config"/*.failed
    lacking "$config" || { mkdir -p "${library%/*}"; : >"$library.pending"; echo "$config $library"; }
done | awk '!seen[$2]++ { print $1 }')
trap 'kill 0' INT                                              # what runs beside a shell's own commands does not hear of ctrl-C
[ -z "$libraries" ] || { echo "$libraries" | grep address; echo "$libraries" | grep -v address; } | xargs -n 1 -P "$JOBS" sh tests/run.sh --core &
{ printf '%s' "$long$chosen"; for config in $configs; do
    for file in $files; do
        case $config:$file in
        plain:*) ;;
        *.sh) continue ;;
        coverage-base:tests/core/* | coverage-base:tests/training/*) ;;                # where vectors are
        coverage-base:*) continue ;;
        coverage-cuda:tests/gpu/*) ;;                          # what only a GPU's backend reaches
        coverage-cuda:*) continue ;;
        cuda-host:tests/gpu/*) ;;
        *:tests/gpu/*) [ -n "$named" ] || continue ;;          # they have no test elsewhere
        address:*/core.c | address:*/checkpoints_kill.c) [ -n "$named" ] || continue ;;     # other files run the same code; what is killed leaves a file
        leak:tests/core/*) ! echo "$once" | grep -qx "$file" || [ -n "$named" ] || continue ;;
        leak:*) [ -n "$named" ] || continue ;;                 # address finds leaks, too, but with EAGER_DEBUG, which is another core
        optional:*/team.c | nothreads:*/team.c) ;;             # beside OpenBLAS's threads; what is checked without any
        thread:tests/files/* | thread:*/core.c | thread:*/ops_rows.c | nothreads:* | guard:* | optional:* | debug:* | cuda-host:* | c++:* | clang++:*)
            [ -n "$named" ] || ! echo "$once" | grep -qx "$file" || continue ;;
        esac
        echo "$config $file"
    done
done; } | awk '!seen[$1 " " $2]++' >"$B/tests"
# The tests themselves are compiled beside the libraries; what needs a library waits for it.
! grep -q '\.c' "$B/tests" || grep '\.c' "$B/tests" | xargs -L 1 -P "$JOBS" sh tests/run.sh --object
xargs -L 1 -P "$JOBS" sh tests/run.sh --one <"$B/tests"
wait

set --
for config in $all; do set -- "$@" "$B/$config"/*.count; done
[ $# -lt 100 ] || {
    echo '-- what took longest, in seconds of CPU, compiling included:'
    {   for count; do awk -v name="${count%.count}" '{ print 0 + $4, name }' "$count" 2>/dev/null; done
        for config in $all; do                                 # eager_cuda.o is made after eager.o, whose seconds its own have in them
            for times in eager_cuda.o eager.o; do [ ! -f "$B/$config/$times.times" ] || { echo "$(seconds "$B/$config/$times.times") $B/$config/$times"; break; }; done
        done
    } | sort -rn | awk -v folder="$B/" '{ sub(folder, ""); sum += $1; by[substr($2, 1, index($2, "/") - 1)] += $1 } NR <= 30 { print }
        END { for (config in by) printf "%s %.0f, ", config, by[config]; printf "%.0f in all\n", sum }'
}
for config in $all; do cat "$B/$config"/*.failed 2>/dev/null; done | sed '1i\
-- what failed:
'
cat "$@" 2>/dev/null | awk '{ p += $1; f += $2; s += $3 }
    END { printf "%d passed, %d failed%s\n", p, f, s ? ", " s " skipped" : ""; exit f > 0 || p + f == 0 }'
