# What a program does not use, it does not have. Programs of one file are compiled with EAGER_STATIC, as the README shows; each may have
# so many bytes, and no function of a chapter that it does not call. The bytes are for x86-64; whatever the processor, the names are
# looked at.
. tests/checks/check.sh
T=$TEST_TEMP

cat >"$T/perceptron.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>
static eg_tensor *ones(int64_t rows, int64_t columns) { return eg_ones(EG_FLOAT32, EG_SHAPE(rows, columns)); }
int main(void) {
    eg_tensor *h = eg_relu(eg_add(eg_matmul(ones(1, 784), ones(784, 128)), ones(1, 128)));
    h = eg_relu(eg_add(eg_matmul(h, ones(128, 64)), ones(1, 64)));
    h = eg_add(eg_matmul(h, ones(64, 10)), ones(1, 10));
    const float *p = (const float *)eg_data(h);
    if (p) printf("%g\n", (double)p[0]);
    return 0;
}
END
cat >"$T/layer.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
int main(void) {
    eg_layer *layer = eg_layer_dense(10);
    eg_print(eg_call(layer, eg_ones(EG_FLOAT32, EG_SHAPE(1, 784))));
    eg_layer_release(layer);
    return 0;
}
END
cat >"$T/optimizer.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
int main(void) {
    eg_tensor *v = eg_variable(eg_ones(EG_FLOAT32, EG_SHAPE(4)), "v"), *g = eg_ones(EG_FLOAT32, EG_SHAPE(4));
    eg_optimizer *adam = eg_adam(.learning_rate = 0.1);
    eg_apply_gradients(adam, &g, &v, 1);
    eg_print(v);
    eg_optimizer_release(adam);
    eg_release(v);
    return 0;
}
END
# Functions and tables by chapter, as the beginnings of their names.
LAYERS='egi?_(layer|sequential|initialize|activat)'
TRAINING='egi?_(fit|compile_|evaluate|history|callback|metric|optimizer|adam|rule)'
FILES='egi?_(sink|source|json|crc|npz|zip|npy|safetensors|checkpoint|import|csv|summary|png|recorder_file|record_)'
DATASETS='egi?_(dataset|iterator|stage|cursor)'
KERNELS='egi_(cpu_)?(conv(_|[0-9])|pool|lstm|gru|simple_rnn|recurrent|attention|layer_norm|random|sort|argmax|choose|one_hot|cumsum|scatter)'

# Of nm's kinds of names, those that are looked at.
kinds=.

# program.c, most bytes, what of `size` they are (text, or all: text and data), the names it must not have, flags
lean() {
    source=$1 most=$2 what=$3 foreign=$4; shift 4
    $CC -std=c11 -DEAGER_STATIC -I. -Iexamples "$@" "$source" -o "$T/lean" $LIBS && (cd "$T" && ./lean >lean.out) || return
    nm "$T/lean" | awk -v kinds="$kinds" '$(NF - 1) ~ kinds { print $NF }' | grep -E "^($foreign)" >"$T/came_along" && { echo "came along, though it does not use them:"; cat "$T/came_along"; return 1; }
    bytes=$(size "$T/lean" | awk -v what="$what" 'NR == 2 { print what == "text" ? $1 : $1 + $2 }')
    echo "$bytes bytes, at most $most"
    case $(uname -m) in x86_64) ;; *) return 0 ;; esac
    [ "$bytes" -le "$most" ] || { echo "the largest symbols:"; nm -S --size-sort "$T/lean" | awk '{ print $2, $4 }' | tail -n 40; return 1; }
}
case $($CC --version 2>/dev/null | head -n 1) in
*clang*) tape=350000 layer=416600 perceptron=121700 optimizer=430600 ;;
*) tape=235300 layer=287800 perceptron=103700 optimizer=265600 ;;
esac
check tape lean examples/05_tape.c $tape all "$LAYERS|$TRAINING|$FILES|$DATASETS|$KERNELS|egi_trap_" -O2
check perceptron lean "$T/perceptron.c" $perceptron text "$LAYERS|$TRAINING|$FILES|$DATASETS|$KERNELS|eg_tape|egi_tape_record|egi_backward|egi_trap_|egi_(text|print)_" \
    -Os -ffunction-sections -fdata-sections -Wl,--gc-sections
# An optimizer has its own rules, and none of another's.
check optimizer lean "$T/optimizer.c" $optimizer all "$FILES|$DATASETS|egi_((f32|f64)_update_(avx2_)?|rule_|scalars_)([b-zB-Z]|ada[^m]|adamax)" -O2
check layer lean "$T/layer.c" $layer all "$TRAINING|$FILES|$DATASETS|egi_(cpu_)?(conv(_|[0-9])|pool|lstm|gru|simple_rnn|recurrent|attention)|egi_layer_type_[^d]|egi_layer_(build|call)_[^d]" -O2
# Without -O, too, gcc leaves out the functions that a program does not use (EGI_OBJECTS).
unoptimized() { kinds='[tT]'; lean examples/05_tape.c 211600 all "$LAYERS|$TRAINING|$FILES|$DATASETS|$KERNELS" -O0; }
case $($CC --version 2>/dev/null | head -n 1) in
*clang*) ;;
*) check unoptimized unoptimized ;;
esac
static_with_cuda() {
    ! $CC -std=c11 -DEAGER_STATIC -DEAGER_CUDA -I. -fsyntax-only "$T/layer.c" 2>"$T/said" && grep -q 'leave out EAGER_STATIC with EAGER_CUDA' "$T/said"
}
check static_with_cuda static_with_cuda
# EAGER_ISA_BASE leaves out what needs AVX2 or AVX-512, and such a program computes the same sum.
base() {
    case $(uname -m) in x86_64) ;; *) return 0 ;; esac
    for flags in '' -DEAGER_ISA_BASE; do
        $CC -std=c11 -O0 $flags -DEAGER_STATIC -I. "$T/perceptron.c" -o "$T/base" $LIBS && "$T/base" || return
        nm "$T/base" | grep -c avx
    done >"$T/said"
    sed -n '1p;3p' "$T/said" | uniq | wc -l | grep -q 1 && [ "$(sed -n 2p "$T/said")" -gt 0 ] && [ "$(sed -n 4p "$T/said")" = 0 ] && return
    cat "$T/said"
    return 1
}
check base base
finish
