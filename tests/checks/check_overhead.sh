# What an op costs beside its arithmetic, in instructions, which no other program on the machine changes: callgrind counts those of a
# program that repeats a piece of work, and of the same program with more repetitions; the difference is the piece's. The budgets are
# what gcc 12 and clang 14 need on x86-64, and a quarter more; elsewhere the counts are printed and held against nothing.
. tests/checks/check.sh
T=$TEST_TEMP

if ! command -v valgrind >/dev/null; then
    skip overhead "no valgrind found"
    finish
    exit
fi
cat >"$T/overhead.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    const int n = argc > 2 ? atoi(argv[2]) : 0;
    eg_tensor *some = eg_range(EG_FLOAT32, 1, 65, 1);
    eg_tensor *row = eg_constant(EG_SHAPE(4), 1, 2, 3, 4), *square = eg_reshape(eg_range(EG_FLOAT32, 0, 16, 1), EG_SHAPE(4, 4));
    for (int i = 0; i < n; i++) {
        EG_SCOPE;
        if (!strcmp(argv[1], "add")) eg_add(row, row);
        if (!strcmp(argv[1], "matmul")) eg_matmul(square, square);
        if (!strcmp(argv[1], "pow")) eg_pow(some, some);
        if (!strcmp(argv[1], "asinh")) eg_asinh(some);
        if (!strcmp(argv[1], "acosh")) eg_acosh(some);
        if (!strcmp(argv[1], "tape")) {
            eg_tape *tape = eg_tape_begin();
            eg_tape_watch(tape, row);
            eg_tape_gradient(tape, eg_mul(row, row), row);
        }
    }
    return eg_error() != EG_OK;
}
END
instructions() {                                 # of the program "$T/overhead" with the arguments given
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$T/overhead" "$@" 2>&1 | awk '/Collected/ { print $NF; found = 1 } END { exit !found }'
}
# what, most instructions a piece
costs() {
    few=$(instructions "$1" 100) && many=$(instructions "$1" 1100) || { echo "callgrind does not count"; return 1; }
    each=$(((many - few) / 1000))
    echo "$1: $each instructions, at most $2"
    case $(uname -m) in x86_64) [ "$each" -le "$2" ] ;; esac
}
built() { $CC -std=c11 -O2 -DEAGER_STATIC -I. "$T/overhead.c" -o "$T/overhead" $LIBS; }
check build built
check add costs add 940
check matmul costs matmul 3620
check tape_step costs tape 8150
# Of 64 elements, with vectors of 16 bytes: gcc made none of these three, while their formulas compared doubles.
export EAGER_ISA=base
check pow_of_64 costs pow 6200
check asinh_of_64 costs asinh 4500
check acosh_of_64 costs acosh 4400
finish
