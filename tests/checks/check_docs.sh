# The programs in README.md and docs/*.md compile, run and print what the page says.
#   ```c            a program; without main, what stands in column 0 as static, typedef, struct or # goes before main, the rest into it
#   ```c more       goes on with the program above
#   ```c fragment   is not compiled; in docs/change.md it is applied to a copy: see below
#   ```cpp          a program in C++, where there is a compiler for it
#   ```text         after a program: what it prints (compare.awk); so do lines after `// output:` in the program itself
# In the quick test (QUICK) docs/change.md's examples are not applied.
. tests/checks/check.sh
T=$TEST_TEMP

# Writes every program of page $1 to $T/PAGE_N.c, what it prints to $T/PAGE_N.expected.
extract() {
    awk -v out="$T/$(basename "$1" .md)" '
    function place() { return "#line " row " \"program.c\"\n" }
    function to_body() { body = body (row - 1 == in_body && row > 1 ? "" : place()) $0 "\n"; in_body = row }
    function flush() {
        if (n && (top != "" || body != "")) {
            if (whole) printf "%s%s", top, body >file
            else printf "#include \"eager.h\"\n#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n%s\nint main(void) {\n%s    return 0;\n}\n", top, body >file
            close(file)
            if (want != "") { printf "%s", want >(out "_" n ".expected"); close(out "_" n ".expected") }
        }
    }
    /^```/ && !inside {
        language = $0; sub(/^``` */, "", language)
        inside = language == "" ? "other" : language
        if (inside == "c" || inside == "cpp") { flush(); n++; file = out "_" n "." inside; top = body = want = ""; whole = inside == "cpp"; global = output = row = in_top = in_body = 0 }
        next
    }
    /^```/ { inside = ""; output = global = 0; next }
    inside == "text" && n { want = want $0 "\n" }
    inside != "c" && inside != "c more" && inside != "cpp" { next }
    { row++ }                                  # of the program as the page shows it, which errors say
    /^ *\/\/ output:/ { output = 1; next }
    output && /^ *\/\// { line = $0; sub(/^ *\/\/ ?/, "", line); want = want line "\n"; next }
    /^int main/ { whole = 1 }
    whole { to_body(); next }
    /^(static|typedef|struct|enum|#)/ { global = 1 }
    global { top = top (row - 1 == in_top && row > 1 ? "" : place()) $0 "\n"; in_top = row; if (/^}/ || /^#/ || /^[^ ].*[;}]( *\/\/.*)?$/) global = 0; next }
    { to_body() }
    END { flush() }' "$1"
}
program() {                                # README's that hold the implementation are compiled as a reader would, the pages' with the core alone, others with eager.o
    core=$B/plain/eager.o name=${1%.*} compiler="$CC -std=c11" static=''
    case $1 in *.cpp) compiler="$CXX -std=c++17" ;; esac
    ! grep -q 'define EAGER_IMPLEMENTATION' "$1" || { core='' static=-DEAGER_STATIC; case $1 in */README_*) ;; *) static='-DEAGER_STATIC -DEAGER_CORE' ;; esac; }
    [ -z "$core" ] || library_wait
    $compiler $static -Wall -Wextra -Wno-unused -Wno-unused-parameter -Werror -I. "$1" $core -o "$name" -lm ${core:+$LIBS} || { cat -n "$1"; return 1; }
    (cd "$T" && "./$(basename "$name")") >"$name.out" 2>&1 </dev/null || { echo "status $?"; cat "$name.out"; return 1; }
    [ ! -f "$name.expected" ] || awk -f tests/checks/compare.awk "$name.expected" "$name.out"
}
for page in README.md docs/*.md; do
    [ -f "$page" ] || continue
    extract "$page"
    for source in "$T/$(basename "$page" .md)"_*.c "$T/$(basename "$page" .md)"_*.cpp; do
        case $source in *.cpp) [ -n "$CXX" ] || continue ;; esac
        [ ! -f "$source" ] || check "$(basename "${source%.*}")" program "$source"
    done
done
# The toy tape of learn.md: an infinite slope on one path makes no NaN on another.
toy() {
    grep -l 'static int write_line' "$T"/learn_*.c >"$T/toys" && [ "$(wc -l <"$T/toys")" = 1 ] && sed 's/^int main(void) {/&\
    double slope[100];\
    int a = number(1), huge = mul(number(1e200), number(1e200)), sum = add(a, mul(huge, number(2)));\
    gradients(sum, slope);\
    return slope[a] == 1 ? 0 : 1;\
}\
int shown(void);\
int shown(void) {/' "$(cat "$T/toys")" >"$T/toy.c" && $CC -std=c11 "$T/toy.c" -o "$T/toy" -lm && "$T/toy"
}
check an_overflow_on_the_toy_tape_stays_on_its_path toy

# The examples of docs/change.md are applied to a copy, in their order, and tested there. What stands behind `c fragment` says where:
#   FILE after TEXT, FILE before TEXT    below or above the first line that holds TEXT
#   FILE for TEXT                        in place of it, in the first line that holds it
#   FILE has                             nothing is changed: the file holds it already
C=$T/change
fragments() {
    awk -v out="$C/fragment_" '
    /^```c fragment/ { n++; sub(/^```c fragment */, ""); printf "%s\n", $0 >(out n); body = 1; next }
    /^```/ { if (body) close(out n); body = 0; next }
    body { print >(out n) }
    END { print n + 0 }' docs/change.md
}
apply() {                                  # a fragment, the folder
    to=$2/$(sed 's/ .*//;q' "$1")
    awk '
    FNR == NR && FNR == 1 { verb = $2; at = $0; sub(/^[^ ]+ +[^ ]+ ?/, "", at); next }
    FNR == NR { body = body (FNR > 2 ? "\n" : "") $0; next }
    !done && verb == "has" { done = index($0, body) }
    !done && verb != "has" && (k = index($0, at)) {
        done = 1
        if (verb == "for") { print substr($0, 1, k - 1) body substr($0, k + length(at)); next }
        if (verb == "before") print body
        print
        if (verb == "after") print body
        next
    }
    { print }
    END { exit !done }' "$1" "$to" >"$2/applied" && mv "$2/applied" "$to" && return
    echo "docs/change.md: a fragment has no place: $(sed q "$1")"
    return 1
}
files() {                                  # a copy of what the page changes, and of what the checks of the form read
    mkdir -p "$1" && cp -r eager.h eager_cuda.cu tests docs examples "$1" && printf '#define EAGER_IMPLEMENTATION\n#include "eager.h"\n' >"$1/eager.c"
}
copy() {
    mkdir -p "$C" && n=$(fragments) && [ "$n" -gt 0 ] && files "$C" || return
    for added in $(cat "$C"/fragment_* | sed -n 's/^EAGER_API eg_tensor \*\(eg_[a-z0-9_]*\)(.*;.*/\1/p'); do
        ! grep -q "[^a-z0-9_]$added *(" eager.h || { echo "docs/change.md adds $added, which is in eager.h by now: find another example"; return 1; }
    done
    i=1
    while [ $i -le "$n" ]; do
        apply "$C/fragment_$i" "$C" || return
        i=$((i + 1))
    done
    touch "$C/whole"
}
# The first example alone, up to its macro, is whole: it compiles, and its tests pass.
first() {
    files "$F" || return
    i=1
    until grep -q '^#define eg_ln_cosh' "$C/fragment_$i"; do
        apply "$C/fragment_$i" "$F" || return
        i=$((i + 1))
    done
    apply "$C/fragment_$i" "$F" && $CC -std=c11 -O0 -Wall -Wextra -Werror -I"$F" -c "$F/eager.c" -o "$F/eager.o" || return
    for tested in ops ops_values; do
        $CC -std=c11 -O0 -I"$F" -I"$F/tests" "$F/tests/core/$tested.c" "$F/eager.o" -o "$F/$tested" $LIBS && TEST_TEMP=$F "$F/$tested" || return
    done
    printf '%s\n' '#include "eager.h"' 'int main(void) { return !(eg_item(eg_ln_cosh(eg_scalar(-100))) > 99.3) || eg_ln_cosh(NULL) || !strstr(eg_error_message(), "(at uses.c:"); }' |
        sed '1i #include <string.h>' >"$F/uses.c"
    $CC -std=c11 -O0 -I"$F" "$F/uses.c" "$F/eager.o" -o "$F/uses" $LIBS && "$F/uses" 2>/dev/null
}
# What the page says has the form that check_form.sh wants: names, macros, tests, options, lines of at most 120 columns.
form() {
    mkdir -p "$C/.build/plain" && cp "$C/eager.o" "$C/.build/plain/eager.o" &&
        (cd "$C" && B=.build TEST_TEMP=.build/form && export B TEST_TEMP && sh tests/checks/check_form.sh contents_list every_ no_line a_thread)
}
change() {                                 # where there is a C++ compiler, with eager_cuda.cu on the stand-in for CUDA, too
    cat "$T/change.log"
    [ -f "$C/whole" ] || return
    gpu=''
    if [ -n "$CXX" ]; then
        gpu="$C/eager_cuda.o -lstdc++"
        $CXX -std=c++17 -x c++ -O0 -Wall -Wextra -Werror -Itests/gpu/cuda_host -I"$C" -c "$C/eager_cuda.cu" -o "$C/eager_cuda.o" &
    fi
    $CC -std=c11 -O0 ${gpu:+-DEAGER_CUDA} -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I"$C" -c "$C/eager.c" -o "$C/eager.o"
    built=$?
    [ -z "$gpu" ] || wait $! || return
    [ $built = 0 ] || return
    for tested in ops ops_values options ops-guard; do
        guard=''
        case $tested in *-guard) guard=-DTEST_GUARD ;; esac
        $CC -std=c11 -O0 $guard -I"$C" -I"$C/tests" "$C/tests/core/${tested%-guard}.c" "$C/eager.o" -o "$C/$tested" $gpu $LIBS && TEST_TEMP=$C "$C/$tested" || return
    done
    printf '%s\n' '#include "eager.h"' 'static bool body(eg_tensor *const *in, eg_tensor **out, void *user) {' '    (void)user;' \
        '    out[0] = eg_reduce_squares(in[0], .axes = EG_AXES(1));' '    out[1] = eg_reduce_magnitude(in[0], .axes = EG_AXES(0));' '    return (out[2] = eg_triu(in[0], 1)) != NULL;' '}' \
        'int main(int argc, char **argv) {' '    if (argc > 1 && !eg_set_device(argv[1])) return 2;' \
        '    eg_print(eg_ln_cosh(eg_constant(EG_SHAPE(3), -100, 0, 100)));' \
        '    eg_tensor *x = eg_reshape(eg_range(EG_FLOAT32, 1, 7, 1), EG_SHAPE(2, 3));' \
        '    eg_print(eg_triu(x, 1));' '    eg_print(eg_triu(eg_cast(x, EG_UINT8), -9));' '    eg_print(eg_hypot(eg_scalar(3), eg_scalar(4)));' '    eg_print(eg_cbrt(eg_scalar(27)));' \
        '    eg_print(eg_reduce_squares(x));' '    eg_print(eg_reduce_squares(eg_cast(x, EG_INT32), .axes = EG_AXES(0), .keepdims = true));' \
        '    eg_print(eg_reduce_squares(eg_ones(EG_FLOAT32, EG_SHAPE(0))));' '    eg_tensor *far = eg_mul(eg_sub(eg_range(EG_FLOAT32, 0, 70, 1), 50), 1);' \
        '    eg_print(eg_reduce_magnitude(far));' '    eg_print(eg_reduce_magnitude(eg_reshape(eg_cast(far, EG_FLOAT64), EG_SHAPE(2, 5, 7)), .axes = EG_AXES(0, 2)));' \
        '    eg_print(eg_reduce_magnitude(eg_concat(EG_TENSORS(far, eg_reshape(eg_log(eg_scalar(-1)), EG_SHAPE(1)), far), 0)));' \
        '    eg_print(eg_reduce_magnitude(eg_ones(EG_FLOAT32, EG_SHAPE(0))));' \
        '    eg_tensor *out[3] = { NULL };' '    eg_function *f = eg_function_new(body, NULL), *g = NULL;' \
        '    if (eg_function_call(f, &x, 1, out, 3) && eg_function_save(f, "uses.safetensors")) g = eg_function_load("uses.safetensors");' \
        '    if (!g || !eg_function_call(g, &x, 1, out, 3)) return 3;' '    for (int i = 0; i < 3; i++) eg_print(out[i]);' \
        '    eg_function_release(g);' '    eg_function_release(f);' '}' >"$C/uses.c"
    printf '%s\n' '[99.306854  0.       99.306854]  shape=(3,) dtype=float32' '[[0. 2. 3.]' ' [0. 0. 6.]]  shape=(2, 3) dtype=float32' \
        '[[1 2 3]' ' [4 5 6]]  shape=(2, 3) dtype=uint8' '5.0  shape=() dtype=float32' '3.0  shape=() dtype=float32' \
        '91.0  shape=() dtype=float32' '[[17 29 45]]  shape=(1, 3) dtype=int32' '0.0  shape=() dtype=float32' \
        '50.0  shape=() dtype=float32' '[50. 43. 36. 29. 22.]  shape=(5,) dtype=float64' 'nan  shape=() dtype=float32' '0.0  shape=() dtype=float32' \
        '[14. 77.]  shape=(2,) dtype=float32' '[4. 5. 6.]  shape=(3,) dtype=float32' '[[0. 2. 3.]' ' [0. 0. 6.]]  shape=(2, 3) dtype=float32' >"$C/uses.expected"
    $CC -std=c11 -O0 -I"$C" "$C/uses.c" "$C/eager.o" -o "$C/uses" $gpu $LIBS || return
    for device in '' ${gpu:+gpu:0}; do
        (cd "$C" && ./uses $device) >"$C/uses.out" && diff "$C/uses.expected" "$C/uses.out" || return
    done
}
F=$T/first
if [ -n "${QUICK-}" ]; then skip change_is_done_as_it_stands "./build.sh test plain check_docs asks for it"
elif selected change_is_done_as_it_stands || selected changes_first_example_is_whole || selected changes_have_their_form || selected pages_name_what_is_there || selected pages_that_name_what_is_not_there_are_noticed; then
    rm -rf "$C" "$F"
    copy >"$T/change.log" 2>&1
    check change_is_done_as_it_stands change
    check changes_have_their_form form
    check changes_first_example_is_whole first
    # Pages name chapters by their titles, and only what is there (pages.awk).
    lies() {
        printf '%s\n' 'In chapter 4, and in chapter TENSERS, see THE OP TABEL and TENSORS;' 'chapters 2 and' '3. NVIDIA GPUs; EG_SCOPE; `eg_none` and' '[this](none.md) or [that](#nowhere).' '' \
            '| chapter | look for |' '|---|---|' '| 20 | `egi_apply` |' '| THE TAPE; KERNELS | `egi_apply`, `eg_tape_begin` |' >"$T/lies.md"
        awk -f tests/checks/pages.awk eager.h "$T/lies.md" >"$T/lies.out"
        for lie in 'not by its number' 'chapter is called TENSERS' 'chapter is called THE OP TABEL' 'nothing is called eg_none' 'no file .*none.md' \
            'no heading .*#nowhere' 'chapter is called 20' 'egi_apply is not in THE TAPE; KERNELS'; do
            grep -q "$lie" "$T/lies.out" || { echo "not noticed: $lie"; cat "$T/lies.out"; return 1; }
        done
        [ "$(wc -l <"$T/lies.out")" = 9 ] || { cat "$T/lies.out"; return 1; }
    }
    check pages_that_name_what_is_not_there_are_noticed lies
    check pages_name_what_is_there awk -f tests/checks/pages.awk "$C/eager.h" "$C/eager_cuda.cu" tests/*.h tests/*/*.[ch] tests/*/*.cpp tests/gpu/cuda_host/* examples/*.[ch] README.md docs/*.md
fi

# Rendered pages do not show what stands behind `c fragment`, so the line before each example says it to the reader.
places() {
    awk '
    /^```c fragment/ {
        n++; sub(/^```c fragment */, ""); file = $1; verb = $2; at = $0
        sub(/^[^ ]+ +[^ ]+ */, "", at); sub(/ +$/, "", at)
        words = verb == "after" ? "below the first line that holds" : verb == "before" ? "above the first line that holds" : "in place of"
        want = verb == "has" ? "(`" file "` holds this already.)" : "In `" file "`, " words " `" at "`:"
        if (said != want) { print FILENAME ":" FNR ": the line before the example is not: " want; bad = 1 }
    }
    NF { said = $0 }
    END { exit bad || !n }' "$1"
}
unplaced() { sed 's/below the first line/near the line/' docs/change.md >"$T/unplaced.md" && ! places "$T/unplaced.md" >"$T/unplaced"; }
check change_says_where_each_example_goes places docs/change.md
check an_example_without_its_place_is_noticed unplaced

pictures() {                               # the library draws the pictures that the pages show
    sed '/^#define EAGER_IMPLEMENTATION/d' docs/pictures.c >"$T/pictures.c"          # eager.o has it
    library_wait
    $CC -std=c11 -I. "$T/pictures.c" "$B/plain/eager.o" -o "$T/pictures" $LIBS && mkdir -p "$T/drawn" && "$T/pictures" "$T/drawn" || return
    for picture in "$T"/drawn/*.svg; do
        { echo '# tolerance 0.002'; cat "docs/$(basename "$picture")"; } >"$picture.expected"
        awk -f tests/checks/compare.awk "$picture.expected" "$picture" || { echo "docs/$(basename "$picture") is not what docs/pictures.c draws"; return 1; }
    done
}
check pictures_are_drawn_by_the_library pictures
if [ -f docs/reference.md ]; then
    awk -f docs/reference.awk eager.h >"$T/reference"
    check reference_is_up_to_date diff docs/reference.md "$T/reference"
    # What a program writes is in the list by name, where it is a macro over a function of another name, too.
    awk '/defined\(EAGER_IMPLEMENTATION\)/ { exit } sub(/^# *define eg_/, "eg_") { sub(/[^a-z0-9_].*/, ""); print }' eager.h | sort -u >"$T/macros"
    sed -n 's/^\[`\(eg_[a-z0-9_]*\)`.*/\1/p' docs/reference.md | sort -u >"$T/listed"
    check reference_lists_what_programs_write sh -c "comm -23 '$T/macros' '$T/listed' >'$T/unlisted'; cat '$T/unlisted'; [ -s '$T/macros' ] && [ ! -s '$T/unlisted' ]"
fi
finish
