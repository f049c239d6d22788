# eager.h compiles without a word: every compiler, language and switch; only what the compiler says is looked at. The core alone
# is linked and run, too.
. tests/check.sh
T=$TEST_TEMP
WARN='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror'

printf '#include <stdio.h>\n#define EAGER_IMPLEMENTATION\n#include "eager.h"\n#include "eager.h"\n' >"$T/implementation.c"
printf '#include <stdio.h>\n#include "eager.h"\n#include "eager.h"\n' >"$T/header.c"

for compiler in "$CC" "$CXX" "$CLANG" "$CLANGXX"; do
    [ -n "$compiler" ] || continue
    case $compiler in *++*) languages='c++17' form='-x c++' ;; *) languages='c11 gnu11' form='-x c' ;; esac
    for language in $languages; do
        for switch in '' EAGER_DEBUG EAGER_NO_THREADS EAGER_NO_STDIO EAGER_STATIC EAGER_CORE ${OPTIONS:+OPTIONS}; do
            case $switch in '') defines='' ;; OPTIONS) defines=$OPTIONS ;; *) defines=-D$switch ;; esac
            name=$(basename "$compiler")_$language${switch:+_$switch}
            check "$name" $compiler -std=$language $WARN $defines -I. -fsyntax-only $form "$T/implementation.c"
        done
        check "$(basename "$compiler")_${language}_header_alone" $compiler -std=$language $WARN -I. -fsyntax-only $form "$T/header.c"
    done
done
core() { $CC -std=c11 -O0 -DEAGER_CORE -I. examples/05_tape.c -o "$T/core" $LIBS && "$T/core"; }
check core_alone core
finish
