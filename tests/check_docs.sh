# The programs in README.md and docs/*.md compile, run and print what the page says.
#   ```c            a program; without main, what stands in column 0 as static, typedef, struct or # goes before main, the rest into it
#   ```c more       goes on with the program above
#   ```c fragment   is not compiled
#   ```cpp          a program in C++, where there is a compiler for it
#   ```text         after a program: what it prints (compare.awk); so do lines after `// output:` in the program itself
. tests/check.sh
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
program() {                                # one that holds the implementation is compiled as a reader would, others with eager.o
    core=$B/plain/eager.o name=${1%.*} compiler="$CC -std=c11"
    case $1 in *.cpp) compiler="$CXX -std=c++17" ;; esac
    ! grep -q 'define EAGER_IMPLEMENTATION' "$1" || core=''
    $compiler -Wall -Wextra -Wno-unused -Wno-unused-parameter -Werror -I. "$1" $core -o "$name" -lm ${core:+$LIBS} || { cat -n "$1"; return 1; }
    (cd "$T" && "./$(basename "$name")") >"$name.out" 2>&1 </dev/null || { echo "status $?"; cat "$name.out"; return 1; }
    [ ! -f "$name.expected" ] || awk -f tests/compare.awk "$name.expected" "$name.out"
}
for page in README.md docs/*.md; do
    [ -f "$page" ] || continue
    extract "$page"
    for source in "$T/$(basename "$page" .md)"_*.c "$T/$(basename "$page" .md)"_*.cpp; do
        case $source in *.cpp) [ -n "$CXX" ] || continue ;; esac
        [ ! -f "$source" ] || check "$(basename "${source%.*}")" program "$source"
    done
done
pictures() {                               # the library draws the pictures that the pages show
    sed '/^#define EAGER_IMPLEMENTATION/d' docs/pictures.c >"$T/pictures.c"          # eager.o has it
    $CC -std=c11 -I. "$T/pictures.c" "$B/plain/eager.o" -o "$T/pictures" $LIBS && mkdir -p "$T/drawn" && "$T/pictures" "$T/drawn" || return
    for picture in "$T"/drawn/*.svg; do
        { echo '# tolerance 0.002'; cat "docs/$(basename "$picture")"; } >"$picture.expected"
        awk -f tests/compare.awk "$picture.expected" "$picture" || { echo "docs/$(basename "$picture") is not what docs/pictures.c draws"; return 1; }
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
