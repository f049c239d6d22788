# Every examples/NAME.c is compiled by the build line in its own head comment, run, and must print what tests/checks/examples/NAME.expected
# says (compare.awk tells how that is written). Only the first compiles the library, as the line says; the others are linked with
# the eager.o of the plain configuration, since it is the same text, and compiling it two dozen times would take minutes.
. tests/checks/check.sh
T=$TEST_TEMP here=$PWD

# The build line begins with cc and names the file: `//   cc -DEAGER_STATIC -I.. 02_chain_rule.c -lm` in the folder of the examples, or
# `//   cc -DEAGER_STATIC -I. examples/02_chain_rule.c -lm` in the one above. An example is a program of one file, so its line has
# -DEAGER_STATIC; what is linked with eager.o must not have it.
example() {
    name=$1
    line=$(sed -n "1,12s,^[/ *]*\(cc .*$name\.c[^&;]*\).*,\1,p" "examples/$name.c" | head -n 1)
    [ -n "$line" ] || { echo "no build line (cc ... $name.c) in its first lines"; return 1; }
    case $line in *-DEAGER_STATIC*) ;; *) echo "no -DEAGER_STATIC: $line"; return 1 ;; esac
    line=$(echo "$line" | sed 's/-o *[^ ]*//')
    case $line in *examples/*) folder=. ;; *) folder=examples ;; esac
    if [ "$name" != "$first" ]; then
        sed '/^#define EAGER_IMPLEMENTATION/d' "examples/$name.c" >"$T/$name.c"
        line="$(echo "$line" | sed "s/-DEAGER_STATIC//; s,[^ ]*$name\.c,-I$here/examples $here/$T/$name.c $here/$B/plain/eager.o,") $LIBS"
    fi
    (cd $folder && $CC -Werror=implicit-function-declaration ${line#cc} -o "$here/$T/$name") || return
    ran || return
    # once more with all functions eager, those of eg_fit included: the numbers are the same
    [ -n "${EAGER_LONG-}" ] && [ "$name" != "$first" ] && [ "$name" != 24_traced ] || return 0
    (cd $folder && $CC -Werror=implicit-function-declaration ${line#cc} "$here/$T/eagerly.o" -o "$here/$T/$name") && ran
}
ran() {
    (cd "$T" && "./$name") >"$T/$name.out" 2>&1 </dev/null || { echo "status $?"; tail -n 5 "$T/$name.out"; return 1; }
    awk -f tests/checks/compare.awk "tests/checks/examples/$name.expected" "$T/$name.out"
}
printf '%s\n' '#include "eager.h"' 'void eagerly(void);' \
    '__attribute__((constructor)) void eagerly(void) { (void)eg_run_functions_eagerly(true); }' >"$T/eagerly.c"
$CC -I. -c "$T/eagerly.c" -o "$T/eagerly.o"
first=''
cp examples/*.safetensors "$T"                       # what examples read lies where they run
for file in examples/*.c; do
    [ -f "$file" ] || continue
    name=$(basename "$file" .c) first=${first:-$name}
    check "$name" example "$name"
done

# The README's way to run them finds what an example reads.
if [ -n "${QUICK-}" ]; then skip by_build_sh "./build.sh test plain check_examples asks for it"; else check by_build_sh sh build.sh examples 17_transfer; fi

# Example 12 on the real digits: in some epoch at least so many of the held-out ones are read right. Minutes, so only where EAGER_LONG
# asks for it. (The better model reads 98.5 to 99.0 % of them right in PyTorch.)
learns() {
    least=$1; shift
    [ -x "$T/digits_fit" ] || $CC -std=c11 -O2 -DEAGER_STATIC $OPTIONS -I. examples/12_digits_fit.c -o "$T/digits_fit" $OPTION_LIBS $LIBS || return
    "$T/digits_fit" "$EAGER_DATA/mnist" "$@" >"$T/digits_fit.out" 2>&1 </dev/null || { tail -n 5 "$T/digits_fit.out"; return 1; }
    grep val_accuracy "$T/digits_fit.out"
    awk -v least="$least" '/val_accuracy/ && $NF > best { best = $NF } END { print "best:", best, "at least:", least; exit !(best >= least) }' "$T/digits_fit.out"
}
why=''
case " $OPTIONS " in *EAGER_ZLIB*) ;; *) why='no zlib, and the files are packed' ;; esac
[ -f "${EAGER_DATA-}/mnist/t10k-images-idx3-ubyte.gz" ] || why='EAGER_DATA names no folder with mnist in it'
[ -n "${EAGER_LONG-}" ] || why='EAGER_LONG is not set'
for model in plain better; do
    case $model in plain) set -- 0.965 --epochs 3 ;; *) set -- 0.985 --epochs 8 --better ;; esac
    if [ -n "$why" ]; then skip "${model}_model_learns_digits" "$why"; else check "${model}_model_learns_digits" learns "$@"; fi
done
finish
