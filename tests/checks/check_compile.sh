# eager.h compiles without a warning: every compiler, language and switch. The core alone is linked and run, too. The quick test tries
# each switch with one C compiler as C11 (eager.o of the plain and the optional configuration are the header without a switch and with
# the optional parts), and of the other compilers and languages those forms that differ most; EAGER_LONG asks for all switches in C11
# and C++17 but those that are the eager.o of some configuration, which CI builds with the same warnings. There two that have nothing to
# do with each other are tried at once: the text for each is compiled with it, and in the others without it.
. tests/checks/check.sh
T=$TEST_TEMP
WARN='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror'

printf '#include <stdio.h>\n#define EAGER_IMPLEMENTATION\n#include "eager.h"\n#include "eager.h"\n' >"$T/implementation.c"
printf '#include <stdio.h>\n#include "eager.h"\n#include "eager.h"\n' >"$T/header.c"

for compiler in "$CC" "$CXX" "$CLANG" "$CLANGXX"; do
    [ -n "$compiler" ] || continue
    case $compiler in *++*) languages='c++17' form='-x c++' ;; *) languages='c11 gnu11' form='-x c' ;; esac
    for language in $languages; do
        case $language:$compiler${EAGER_LONG:+ long} in
        c11:$CC\ long) switches='EAGER_NO_STDIO EAGER_STATIC EAGER_CORE' ;;
        c11:*long | c++17:*long) switches='EAGER_DEBUG+EAGER_NO_THREADS EAGER_NO_STDIO+EAGER_STATIC EAGER_CORE OPTIONS' ;;
        *long) switches='none OPTIONS' ;;        # what gnu11 shows of the system's headers, C++ shows under every switch
        c11:$CC) switches='EAGER_DEBUG EAGER_NO_THREADS EAGER_NO_STDIO EAGER_STATIC EAGER_CORE' ;;
        gnu11:*) switches='' ;;
        c11:*) switches='none EAGER_CORE OPTIONS' ;;
        *) switches='none EAGER_CORE' ;;
        esac
        for switch in $switches; do
            [ "$switch$OPTIONS" != OPTIONS ] || continue
            case $switch in none) defines='' switch='' ;; OPTIONS) defines=$OPTIONS ;; *) defines=$(echo "-D$switch" | sed 's/+/ -D/') ;; esac
            name=$(basename "$compiler")_$language${switch:+_$switch}
            check "$name" $compiler -std=$language $WARN $defines -I. -fsyntax-only $form "$T/implementation.c"
        done
        check "$(basename "$compiler")_${language}_header_alone" $compiler -std=$language $WARN -I. -fsyntax-only $form "$T/header.c"
    done
done
# A program that saves a model and its parts and loads them again, with nothing but the calls' arguments, is quiet in C and in C++.
cat >"$T/files.c" <<'END'
#include "eager.h"
int main(void) {
    eg_layer *model = eg_sequential(eg_layer_dense(2), eg_layer_dense(1)), *again, *other;
    if (!eg_layer_build(model, EG_SHAPE(-1, 3)) || !eg_model_save(model, "model.safetensors")) return 1;
    again = eg_model_load("model.safetensors");
    other = eg_sequential(eg_layer_dense(2), eg_layer_dense(1));
    if (!again || !eg_layer_build(other, EG_SHAPE(-1, 3)) || !eg_save_weights(model, "weights.npz")) return 1;
    if (!eg_load_weights(other, "weights.npz")) return 1;
    eg_archive *archive = eg_archive_new(), *read;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(2, 3));
    if (!eg_archive_add(archive, "x", x) || !eg_archive_save(archive, "all.npz") || !eg_save_npy(x, "x.npy")) return 1;
    read = eg_load_npz("all.npz");
    bool same = eg_assert_equal(eg_archive_get(read, "x"), eg_load_npy("x.npy"));
    same = eg_assert_equal(eg_call(model, x), eg_call(again, x)) && same;
    same = eg_assert_equal(eg_call(model, x), eg_call(other, x)) && same;
    eg_checkpoint *checkpoint = eg_checkpoint_new();
    same = eg_checkpoint_track_layer(checkpoint, "model", model) && eg_checkpoint_save(checkpoint, "ck") && same;
    same = eg_checkpoint_restore(checkpoint, eg_checkpoint_latest("ck")) && same;
    eg_checkpoint_release(checkpoint);
    eg_archive_release(archive);
    eg_archive_release(read);
    eg_layer_release(model);
    eg_layer_release(again);
    eg_layer_release(other);
    return same ? 0 : 1;
}
END
saves() { "$@" $WARN -I. "$T/files.c" -x none "$B/plain/eager.o" -o "$T/files" $LIBS && (cd "$T" && ./files); }
check program_that_saves_and_loads saves $CC -std=c11 -x c
[ -z "$CXX" ] || check program_that_saves_and_loads_in_cpp saves $CXX -std=c++17 -Wold-style-cast -x c++

# A value where a named option belongs is told by every C compiler: what is not 0 without any flag, a 0 by -Wextra (gcc) or always (clang).
# What it says shows the name that reads as advice.
refused() {                                # the compiler and its flags; calls on standard input
    while read -r call; do
        printf '#include "eager.h"\nvoid f(eg_tensor *x, eg_layer *model, eg_dataset *data);\nvoid f(eg_tensor *x, eg_layer *model, eg_dataset *data) { (void)x; (void)model; (void)data; (void)%s; }\n' \
            "$call" >"$T/bare.c"
        ! "$@" -std=c11 -Werror -I. -fsyntax-only "$T/bare.c" >"$T/said" 2>&1 && grep -qE "option_without_a_name|name_your_options" "$T/said" || { echo "$call:"; cat "$T/said"; return 1; }
    done
}
bare_values() {
    refused "$@" <<'END' && refused "$@" -Wextra <<'END_OF_ZEROS'
eg_softmax(x, 1)
eg_softmax(x, EG_RELU)
eg_softmax(x, 1.5)
eg_softmax(x, "axis")
eg_softmax(x, x)
eg_reduce_sum(x, EG_AXES(0))
eg_reduce_sum(x, 1, .keepdims = true)
eg_matmul(x, x, true)
eg_random_normal(EG_SHAPE(2), 1)
eg_adam(0.001)
eg_layer_dense(10, EG_RELU)
eg_layer_dense(10, "first")
eg_layer_flatten(3)
eg_call(model, x, true)
eg_loss_mean(eg_huber, x, x, 2.0)
eg_metric_top_k(3)
eg_callback_early_stopping("val_loss")
eg_callback_csv("log.csv", true)
eg_fit(model, data, 3)
eg_fit_arrays(model, x, x, 3)
eg_dataset_batch(data, 32, true)
eg_dataset_shuffle(data, 1000, 7)
eg_load_weights(model, "x.npz", true)
eg_checkpoint_new(3)
eg_summary_scalar("x", 1, 10)
END
eg_softmax(x, 0)
eg_softmax(x, NULL)
eg_reduce_sum(x, 0)
eg_reduce_sum(x, false)
eg_layer_dense(10, 0)
eg_fit(model, data, 0)
eg_dataset_batch(data, 32, false)
END_OF_ZEROS
}
for compiler in "$CC" "$CLANG"; do
    [ -z "$compiler" ] || check "$(basename "$compiler")_refuses_bare_values" bare_values $compiler
done
core() {                                   # its eager.o, whole, needs nothing of the chapters that it leaves out
    printf '#define EAGER_IMPLEMENTATION\n#include "eager.h"\n' >"$T/core.c"
    sed '/^#define EAGER_IMPLEMENTATION/d' examples/05_tape.c >"$T/tape.c"
    cat >"$T/archive.c" <<'END_OF_ARCHIVE'
#include "eager.h"
int main(int argc, char **argv) {
    eg_archive *a = eg_archive_new(), *b;
    double sum = 0;
    for (int i = 1; i < argc; i++) {
        if (!eg_archive_has(a, "x")) eg_archive_add(a, "x", eg_constant(EG_SHAPE(2), 1, 2));
        if (!eg_archive_save(a, argv[i]) || !(b = eg_archive_load(argv[i]))) return 1;
        sum += eg_item(eg_reduce_sum(eg_archive_get(b, "x")));
        eg_archive_release(b);
    }
    eg_archive_release(a);
    return sum == 6 ? 0 : 2;
}
END_OF_ARCHIVE
    $CC -std=c11 -O0 -DEAGER_CORE -I. -c "$T/core.c" -o "$T/core.o" || return
    for built in tape archive; do
        $CC -std=c11 -O0 -DEAGER_CORE -I. -Iexamples "$T/$built.c" "$T/core.o" -o "$T/$built" $LIBS || return
    done
    "$T/tape" && "$T/archive" "$T/a.npz" "$T/a.safetensors"
}
check core_alone core
# Where nothing says that the system is Linux, memory is plain malloc's: no huge pages, and all else holds.
elsewhere() {
    $CC -std=c11 $WARN -U__linux__ "$@" -I. -Itests "$T/implementation.c" tests/core/memory.c -o "$T/elsewhere" $LIBS && "$T/elsewhere" &&
        ! nm "$T/elsewhere" | grep -w madvise
}
check elsewhere elsewhere
check elsewhere_without_threads elsewhere -DEAGER_NO_THREADS
# 32-bit x86, as far as a compiler shows it: the C library's headers are the same but for one, which may be missing.
x86_32() { $CC -m32 -std=c11 -fsyntax-only -I. -isystem "$T/32" -isystem /usr/include/x86_64-linux-gnu -x c "$@"; }
mkdir -p "$T/32/gnu" && : >"$T/32/gnu/stubs-32.h"
x86_32_whole() { x86_32 $WARN "$T/implementation.c" && x86_32 $WARN -O2 "$T/implementation.c"; }
if echo '#include <pthread.h>' | x86_32 - 2>/dev/null; then check x86_32 x86_32_whole; else skip x86_32 "no compiler or headers for it"; fi
finish
