# The form of eager.h: its contents list, its names, what including it costs and changes.
. tests/checks/check.sh
T=$TEST_TEMP
trim() { sed 's/[ -]*$//; s/  */ /g'; }

# The list under CONTENTS in the head comment says ` *   1  TITLE`, a chapter's banner `//# 1  TITLE ----`.
contents() {
    sed -n 's,^//# *,,p' eager.h | trim >"$T/banners"
    awk '/\*\// { exit } on; /^ \* CONTENTS/ { on = 1 }' eager.h | sed -n 's,^ \* *\([0-9]\),\1,p' | trim >"$T/contents"
    [ -s "$T/banners" ] && diff "$T/contents" "$T/banners"
}

# Whatever eager.o defines for a linker begins with eg_ or egi_: in C++ too, where everything public is extern "C" and only the
# standard library's inline functions and the compiler's references for unwinding (DW.ref) come along.
symbols() {                                 # of an object file
    nm -g --defined-only "$1" >"$T/nm" && grep -q ' T eg_' "$T/nm" &&
        ! awk '$2 ~ /^[A-Z]$/ { print $3 }' "$T/nm" | grep -vE '^_?egi?_|^_+ZN?K?S|^DW\.ref\.'
}
symbols_in_cpp() {                          # of the configuration c++, where it has been built
    cpp=$B/c++/eager.o
    library_wait "$cpp"
    [ -n "$(find "$cpp" -newer eager.h 2>/dev/null)" ] || { cpp=$T/symbols.o; "$@" -I. -c "$B/eager.c" -o "$cpp" || return; }
    symbols "$cpp"
}

# The macros after including eager.h are those of the standard headers it includes, and EG_, EGI_, EAGER_, eg_, egi_.
macros() {                                 # what to define before, the compiler
    define=$1; shift
    { echo "$define"; sed -n 's/^ *# *include *\(<.*>\).*/\1/p' eager.h | sort -u | while read -r file; do
        printf '#if __has_include(%s)\n#include %s\n#endif\n' "$file" "$file"
    done; } >"$T/before.c"
    { cat "$T/before.c"; echo '#include "eager.h"'; } >"$T/after.c"
    for file in before after; do
        "$@" -I. $OPTIONS -dM -E "$T/$file.c" >"$T/$file.macros" || return
        sed 's/^#define \([A-Za-z0-9_]*\).*/\1/' "$T/$file.macros" | sort >"$T/$file.names"
    done
    comm -13 "$T/before.names" "$T/after.names" | grep -vE '^(EG|EGI|EAGER|eg|egi)_' >"$T/new"
    comm -23 "$T/before.names" "$T/after.names" >"$T/lost"
    ! grep . "$T/new" "$T/lost"
}

# Two files of one program include it, twice each; a third is the library.
two_files() {
    printf '#include "eager.h"\n#include "eager.h"\neg_tensor *two(void);\neg_tensor *two(void) { return eg_scalar(2); }\n' >"$T/two.c"
    printf '%s\n' '#include <stdio.h>' '#include "eager.h"' '#include "eager.h"' 'eg_tensor *two(void);' \
        'int main(void) { return eg_item(eg_add(two(), 1)) == 3 ? 0 : 1; }' >"$T/main.c"
    "$@" -I. "$T/two.c" "$T/main.c" "$B/plain/eager.o" -o "$T/two" $LIBS && "$T/two"
}
# The header once more after the implementation, in one file. With EAGER_STATIC the program's own symbol is the only one.
one_file() {
    printf '%s\n' '#define EAGER_IMPLEMENTATION' '#include "eager.h"' '#include "eager.h"' \
        'int main(void) { return eg_item(eg_scalar(3)) == 3 ? 0 : 1; }' >"$T/once.c"
    "$@" -I. -DEAGER_STATIC -c "$T/once.c" -o "$T/once.o" && $CC "$T/once.o" -o "$T/once" $LIBS && "$T/once"
}
static_symbols() {
    [ -f "$T/once.o" ] || one_file $CC -std=c11 -w || return
    nm -g --defined-only "$T/once.o" | awk '{ print $3 }' | sed 's/^_//' >"$T/nm"
    [ "$(cat "$T/nm")" = main ] || { cat "$T/nm"; return 1; }
}

# A single-file program has the elementwise rows that it calls, those of their gradients, and no others: of tanh and its gradient
# g (1 - y y) tanh, mul and sub, of sub's own gradient negative, and add, by which a tape adds gradients.
rows_of_a_program() {
    printf '%s\n' '#define EAGER_IMPLEMENTATION' '#include "eager.h"' \
        'int main(void) { eg_tensor *x = eg_scalar(3); eg_tape *t = eg_tape_begin(); eg_tape_watch(t, x); return eg_tape_gradient(t, eg_tanh(x), x) == NULL; }' >"$T/rows.c"
    $CC -std=c11 -O1 -w -I. -DEAGER_STATIC -c "$T/rows.c" -o "$T/rows.o" || return
    sed -n 's/^    [A-Z]*ARY\(_ND\)*([A-Z]*, *\([a-z0-9_]*\),.*/\2/p' eager.h | sort >"$T/table"
    nm "$T/rows.o" | sed -n 's/.* _*egi_op_//p' | sort | comm -12 - "$T/table" >"$T/rows"
    [ "$(wc -l <"$T/table")" -gt 60 ] && [ "$(tr '\n' ' ' <"$T/rows")" = 'add mul negative sub tanh ' ] && ! nm "$T/rows.o" | grep ' egi_op_row$' || { cat "$T/rows"; return 1; }
}

# Every function that the library defines is declared in the public part with a comment, beside it or above, and used in some test.
public_names() { nm -g --defined-only "$B/plain/eager.o" | sed -n 's/.* T _*\(eg_.*\)/\1/p' | sort; }
documented() {
    awk '/^#if .*defined\(EAGER_IMPLEMENTATION\)/ { exit }
        /^ *$/ { said = 0 }
        /\/\// { said = 1 }
        said { while (match($0, /eg_[a-z0-9_]+/)) { print substr($0, RSTART, RLENGTH); $0 = substr($0, RSTART + RLENGTH) } }' eager.h |
        sort -u >"$T/documented"
    public_names | comm -23 - "$T/documented" >"$T/undocumented"
    ! grep . "$T/undocumented"
}
declared_and_defined() {                    # what the reference page lists is what eager.o has, and macros
    awk -f docs/reference.awk eager.h | sed -n '/^## By name/,$p' | grep -o '`eg_[a-z0-9_]*`' | tr -d '`' | sort >"$T/declared"
    { public_names; sed -n 's/^#define \(eg_[a-z0-9_]*\)(.*/\1/p' eager.h; } | sort -u >"$T/defined"
    public_names | comm -13 "$T/declared" - >"$T/missing"
    comm -23 "$T/declared" "$T/defined" >>"$T/missing"
    ! grep . "$T/missing"
}
tested() {
    cat tests/*/*.c tests/*/*.cpp tests/*.h tests/fixtures/*.txt 2>/dev/null | grep -oE '(eg_|^case |ROW[123]\()[a-z0-9_]+' | sed 's/^case \|^ROW[123](/eg_/' | sort -u >"$T/used"
    public_names | comm -23 - "$T/used" >"$T/untested"
    ! grep . "$T/untested"
}

# Each function notes the program's line by a macro of its name, in C and in C++; these cannot fail, or are called where there is no line.
noted() {                                   # the compiler
    printf '%s\n' eg_cluster_counts eg_cluster_rank eg_cluster_size eg_default_float eg_device_count eg_dtype_name eg_dtype_size eg_error eg_error_clear eg_error_count eg_error_details eg_error_message \
        eg_error_name eg_executing_eagerly eg_graph_after_end eg_integer eg_is_variable eg_memory eg_memory_reset_peak eg_memory_trim eg_num_threads eg_number eg_raise \
        eg_random_get_state eg_random_set_state eg_recording_pause eg_run_functions_eagerly eg_seed eg_set_error_handler eg_set_printer \
        eg_summary_due eg_summary_set_step eg_summary_step eg_tape_unconnected_reason eg_training eg_trap_nonfinite >"$T/unnoted.want"
    echo '#include "eager.h"' >"$T/noted.c"
    "$@" -I. -dM -E "$T/noted.c" | sed -n 's/^#define \(eg_[a-z0-9_]*\)(.*/\1/p' | sort >"$T/noted"
    public_names | comm -23 - "$T/noted" >"$T/unnoted"
    diff "$T/unnoted.want" "$T/unnoted"
}

# A struct of options begins with EG_BY_NAME, so that a value without a name is noticed; that each function with options does so,
# tests/core/options.c holds against it.
guarded() {
    awk '/^#if .*defined\(EAGER_IMPLEMENTATION\)/ { exit }
        /^typedef struct eg_[a-z0-9_]*_options/ { struct = $3; count++; if (!/[{]$/) check($0); next }
        struct { check($0) }
        function check(line) { if (line !~ /^(typedef struct [a-z0-9_]+ [{])? *EG_BY_NAME;/) { print struct ": does not begin with EG_BY_NAME"; bad = 1 } struct = "" }
        END { exit bad || count < 30 }' eager.h
}
refusing() {
    awk '/^#if .*defined\(EAGER_IMPLEMENTATION\)/ { exit }
        /^EAGER_API.*EGI_DEFAULT\(eg_[a-z0-9_]*_options\)/ { match($0, /eg_[a-z0-9_]+\(/); print substr($0, RSTART, RLENGTH - 1) }' eager.h | sort >"$T/with_options"
    grep -E 'BARE(_AS)?\(' tests/core/options.c | grep -oE 'eg_[a-z0-9_]+' | sort -u | comm -23 "$T/with_options" - >"$T/unasked"
    [ -s "$T/with_options" ] && ! grep . "$T/unasked"
}

# A function of the user's is called inside a frame (EGI_FRAMED), whichever member holds it; a deleter, a generator, a schedule ...
framed() {
    awk '/^#if .*defined\(EAGER_IMPLEMENTATION\)/ { on = 1 }
        !on || /^ *(\/\/|\*)/ { next }
        /EGI_FRAMED/ { count++; depth = gsub(/\(/, "(") - gsub(/\)/, ")"); next }
        depth > 0 { depth += gsub(/\(/, "(") - gsub(/\)/, ")"); next }
        { gsub(/type->call\(/, "") }
        /(->|\.)(call|call_multi|one|map|generator|dataset|make|rate|deleter|user_release|release|backward|print)\(/ { print FNR ": " $0; bad = 1 }
        END { exit bad || count < 20 }' eager.h
}
# What a thread has of its own is one struct, egi_this.
one_thread_local() { [ "$(grep -cE '(__thread|_Thread_local|thread_local|EGI_THREAD_LOCAL) +[a-z]' eager.h)" = 1 ]; }

# No line of C, C++ or CUDA is longer than 120 columns; none of eager.h has 128 bytes, behind which each line takes twice
# as many of the numbers that gcc has for places, and including the file for a stamp of kernels (KERNELS) becomes slow
# twice as soon.
no_line_is_long() {
    ! LC_ALL=C awk '{ text = $0; gsub(/[\200-\277]/, "", text) }
        length(text) > 120 || (FILENAME == "eager.h" && length($0) > 127) { print FILENAME ":" FNR ": " length(text) }' \
        eager.h eager_cuda.cu docs/*.c examples/*.[ch] tests/*.h tests/*/*.c tests/*/*.cpp tests/gpu/cuda_host/*.h | grep .
}

# No function has more than 60 lines, its head, of one line or more, with them.
functions_over_60_lines() {                 # of the files given
    awk 'FNR == 1 { begun = 0 }
        /^[A-Za-z_].*\(/ && !/^typedef/ && !/;( *\/\/.*)?$/ { begun = FNR; head = $0 }
        /;$/ && begun && FNR > begun && !body[begun] { begun = 0 }
        /[{]$/ && begun { body[begun] = 1 }
        /^}/ { if (begun && FNR - begun >= 60) print FILENAME ":" begun ": " FNR - begun + 1 " lines: " head
               begun = 0; delete body }' "$@"
}
functions_are_short() {
    for n in 57 58 59; do
        printf 'static int f_%s(int a,\n           int b) {\n' $n
        awk -v n=$n 'BEGIN { for (i = 0; i < n - 1; i++) print "    a += b;"; print "    return a;" }'
        printf '}\nint declared_%s(int a,\n    int b);\n' $n
    done >"$T/lengths.c"
    [ "$(functions_over_60_lines "$T/lengths.c" | sed 's/.*: \(6.*\)(.*/\1/')" = "$(printf '%s\n' '61 lines: static int f_58' '62 lines: static int f_59')" ] || return
    ! functions_over_60_lines eager.h eager_cuda.cu | grep .
}

# What it costs to compile, in milliseconds of CPU: figures to look at, no test, for a busy machine must not fail one.
milliseconds() { tr 'ms' '  ' | awk -v n="$1" 'END { printf "%.0f", (60 * $1 + $2 + 60 * $3 + $4) * 1000 / n }'; }
# Every row of the op table, an object egi_op_<name> in eager.o, stands in one of the two lists, from which the registry and the tests come.
rows_are_listed() {
    nm "$B/plain/eager.o" | sed -n 's/.* [dDrR] _*egi_op_//p' | sort >"$T/rows"
    {   printf '#define EAGER_BACKEND\n#include "eager.h"\n#define ROW(kind, name, ...) listed name\n#define OTHER(name) listed name\n'
        echo 'EGI_ELEMENTWISE_TABLE(ROW, ROW, ROW, ROW, ROW, a, b, c, y, g) EGI_OTHER_TABLE(OTHER, OTHER)'
    } >"$T/listed.c"
    $CC -I. -E -P "$T/listed.c" | grep -o 'listed [a-z_0-9]*' | cut -d' ' -f2 | sort >"$T/listed"
    [ -s "$T/rows" ] && diff "$T/rows" "$T/listed"
}
cost() { sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do "$@" || exit 1; done; times' sh "$@" 2>&1 | milliseconds 10; }
check contents_list_equals_banners contents
check macros_are_prefixed macros '' $CC -std=c11
check macros_of_implementation_are_prefixed macros '#define EAGER_IMPLEMENTATION' $CC -std=c11
check include_after_implementation one_file $CC -std=c11 -w
check static_leaves_no_symbol static_symbols
check a_program_has_the_rows_it_calls rows_of_a_program
check every_struct_of_options_is_guarded guarded
check every_function_of_the_users_is_framed framed
check a_thread_has_one_struct one_thread_local
check every_function_with_options_refuses_bare_values refusing
check no_line_is_longer_than_120_columns no_line_is_long
check no_function_is_longer_than_60_lines functions_are_short
check licence_is_at_the_end sh -c 'tail -n 60 eager.h | grep -q "Unlicense" && tail -n 60 eager.h | grep -q "MIT"'
if [ -n "$CXX" ]; then
    if [ -z "${EAGER_LONG-}" ]; then skip symbols_are_prefixed_in_cpp "EAGER_LONG is not set"
    else check symbols_are_prefixed_in_cpp symbols_in_cpp $CXX -std=c++17 -x c++; fi
    check macros_are_prefixed_in_cpp macros '#define EAGER_IMPLEMENTATION' $CXX -std=c++17 -x c++
fi

library_wait                                # what follows looks at eager.o
check symbols_are_prefixed symbols "$B/plain/eager.o"
check two_files_of_one_program two_files $CC -std=c11
check every_function_is_declared_and_defined declared_and_defined
check every_function_is_documented documented
check every_function_is_tested tested
check every_row_is_listed rows_are_listed
check every_function_notes_the_line noted $CC -std=c11
[ -z "$CXX" ] || check every_function_notes_the_line_in_cpp noted $CXX -std=c++17 -x c++
if [ "$wanted" = "  " ]; then
    echo '#include "eager.h"' >"$T/include.c"; : >"$T/empty.c"
    empty=$(cost $CC -std=c11 -c "$T/empty.c" -o "$T/o") include=$(cost $CC -std=c11 -I. -c "$T/include.c" -o "$T/o")
    echo "note: including eager.h costs $((include - empty)) ms; the implementation at -O2 $(milliseconds 1 <"$B/plain/eager.o.times") ms"
fi
finish
