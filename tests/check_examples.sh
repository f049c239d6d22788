# Every examples/NAME.c is compiled by the build line in its own head comment, run, and must print what tests/examples/NAME.expected
# says (compare.awk tells how that is written). Only the first compiles the library, as the line says; the others are linked with
# the eager.o of the plain configuration, since it is the same text, and compiling it two dozen times would take minutes.
. tests/check.sh
T=$TEST_TEMP here=$PWD

# The build line begins with cc and names the file: `//   cc -O2 -I.. 02_chain_rule.c -lm` in the folder of the examples, or
# `//   cc -O2 -I. examples/02_chain_rule.c -lm` in the one above.
example() {
    name=$1
    line=$(sed -n "1,12s,^[/ *]*\(cc .*$name\.c[^&;]*\).*,\1,p" "examples/$name.c" | head -n 1)
    [ -n "$line" ] || { echo "no build line (cc ... $name.c) in its first lines"; return 1; }
    line=$(echo "$line" | sed 's/-o *[^ ]*//')
    case $line in *examples/*) folder=. ;; *) folder=examples ;; esac
    if [ "$name" != "$first" ]; then
        sed '/^#define EAGER_IMPLEMENTATION/d' "examples/$name.c" >"$T/$name.c"
        line="$(echo "$line" | sed "s,[^ ]*$name\.c,-I$here/examples $here/$T/$name.c $here/$B/plain/eager.o,") $LIBS"
    fi
    (cd $folder && $CC ${line#cc} -o "$here/$T/$name") || return
    (cd "$T" && "./$name") >"$T/$name.out" 2>&1 </dev/null || { echo "status $?"; tail -n 5 "$T/$name.out"; return 1; }
    awk -f tests/compare.awk "tests/examples/$name.expected" "$T/$name.out"
}
first=''
cp examples/*.safetensors "$T"                       # what examples read lies where they run
for file in examples/*.c; do
    [ -f "$file" ] || continue
    name=$(basename "$file" .c) first=${first:-$name}
    check "$name" example "$name"
done
finish
