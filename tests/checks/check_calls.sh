# What the public macros make of a call: nested calls stay as short as they were written, operands may be of any type, and what is wrong
# in a call is said by the compiler. Only compiled.
. tests/checks/check.sh
T=$TEST_TEMP
WARN='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror'

# For every call a function with ten and one with twenty levels, each one expression that nests the call, @ being the operand.
nested() {                                  # calls on standard input
    awk 'BEGIN { print "#include \"eager.h\"" }
    {
        at = index($0, "@"); before = substr($0, 1, at - 1); behind = substr($0, at + 1)
        for (levels = 10; levels <= 20; levels += 10) {
            head = tail = ""
            for (i = 0; i < levels; i++) { head = head before; tail = behind tail }
            declared = "eg_tensor *nested_" NR "_" levels "(eg_tensor *x, eg_layer *layer)"
            print declared ";"
            print declared " { (void)layer; return " head "x" tail "; }"
        }
    }'
}
# Twenty levels may be no more than a little over twice as long as ten.
linear() {                                  # the compiler; calls on standard input
    cat >"$T/calls"
    nested <"$T/calls" >"$T/nested.c"
    "$@" -std=c11 $WARN -I. -c "$T/nested.c" -o "$T/nested.o" 2>"$T/errors" || { cut -c 1-200 "$T/errors"; return 1; }
    "$@" -std=c11 -I. -E -P "$T/nested.c" | awk -v calls="$T/calls" '
        match($0, /\*nested_[0-9]+_[0-9]+/) { split(substr($0, RSTART, RLENGTH), part, "_"); in_call = part[2]; levels = part[3] }
        in_call { size[in_call, levels] += length($0) }
        END {
            while ((getline call <calls) > 0) {
                ten = size[++n, 10]; twenty = size[n, 20]
                if (ten > 100 && twenty < ten * 5 / 2) continue
                print call ": 10 levels are " ten " bytes, 20 are " twenty; bad = 1
            }
            exit bad || n < 20
        }'
}
calls() {
    cat <<'END'
eg_add(@, 1)
eg_mul(eg_add(2, @), eg_sub(x, 0.5))
eg_where(eg_greater(x, 0), @, eg_negative(x))
eg_clip_by_value(@, -1, 1)
eg_sqrt(@)
eg_softmax(@, .axis = 0)
eg_reduce_sum(eg_square(@), .axes = EG_AXES(0, -1), .keepdims = true)
eg_matmul(x, @, .transpose_b = true)
eg_gather(@, eg_argmax(x), .axis = -1)
eg_one_hot(@, 3, .axis = 0)
eg_pad(@, EG_PADS(1, 1), .value = 2)
eg_resize(@, 4, 4, .method = EG_NEAREST)
eg_concat(EG_TENSORS(@), 0)
eg_concat(EG_TENSORS(x, @, eg_add(x, 1)), 0)
eg_reshape(x, EG_SHAPE(eg_size(@), -1))
eg_reduce_sum(x, .axes = EG_AXES(eg_rank(@)))
eg_pad(x, EG_PADS(eg_size(@), 1))
eg_constant(EG_SHAPE(2), eg_item(@), 1)
eg_constant_of(EG_INT32, EG_SHAPE(1, eg_dim(@, 0)), eg_item(x))
eg_from_data(EG_FLOAT32, EG_SHAPE(2), eg_data(@))
eg_from_data(EG_FLOAT32, eg_shape_of(@), eg_data(x))
eg_random_normal(eg_shape_of(@), .stddev = 2)
eg_assign_add(x, @)
eg_variable(@, "v")
eg_call(layer, @, .training = true)
eg_call(eg_sequential(eg_layer_dense(eg_size(@), .activation = EG_RELU)), x)
eg_loss_mean(eg_huber, x, @, .delta = 2)
END
}
nesting() { calls | linear "$@"; }
for compiler in "$CC" "$CLANG"; do
    [ -z "$compiler" ] || check "nesting_$(basename "$compiler")" nesting $compiler
done
layers_nest() {                             # containers of containers, and lists of datasets
    printf '%s\n' '#include "eager.h"' 'eg_layer *layers(void);' 'eg_dataset *zipped(void);' >"$T/layers.c"
    awk 'BEGIN { for (i = 0; i < 20; i++) { head = head "eg_sequential("; more = more "eg_dataset_zip("; tail = tail ")" }
        print "eg_layer *layers(void) { return " head tail "; }"
        print "eg_dataset *zipped(void) { return " more "eg_dataset_range(0, 3, 1)" tail "; }" }' >>"$T/layers.c"
    "$@" -std=c11 $WARN -I. -c "$T/layers.c" -o "$T/layers.o" && "$@" -std=c11 -I. -E -P "$T/layers.c" | tail -n 6 >"$T/layers.i" &&
        [ "$(wc -c <"$T/layers.i")" -lt 8000 ] || { wc -c "$T/layers.i"; return 1; }
}
for compiler in "$CC" "$CLANG"; do
    [ -z "$compiler" ] || check "nesting_layers_$(basename "$compiler")" layers_nest $compiler
done
# A file with each call in a line of its own, from what is declared in the first.
lines_of() {                                # declarations; calls on standard input
    printf '#include "eager.h"\n#define DECLARED %s\n' "$1"
    awk '{ print "void line_" NR "(DECLARED); void line_" NR "(DECLARED) { (void)x; (void)(" $0 "); }" }'
}
# The compiler has an error in every line, and none elsewhere (so that the check itself is no mistake). What is said: the part, if one is given.
refused() {                                 # declarations, part, the compiler; calls on standard input
    declared=$1 part=$2; shift 2
    cat >"$T/calls"
    [ -s "$T/calls" ] && lines_of "$declared" <"$T/calls" >"$T/refused.c"
    ! "$@" -I. -fsyntax-only "$T/refused.c" >"$T/said" 2>&1 || { echo "all compiled"; return 1; }
    sed -n "s,^$T/refused.c:\([0-9]*\):.*,\1,p" "$T/said" | sort -un >"$T/wrong"
    awk 'NR == FNR { wrong[$1] = 1; next } !((FNR + 2) in wrong) { print "compiled: " $0; bad = 1 } END { exit bad }' "$T/wrong" "$T/calls" || return
    [ -z "$part" ] || grep -q "$part" "$T/said" || { echo "nothing says $part"; cat "$T/said"; return 1; }
}
accepted() {                                # declarations, the compiler; calls on standard input
    declared=$1; shift
    lines_of "$declared" | sed 's/(void)x; //' >"$T/accepted.c"
    "$@" $WARN -Wno-unused-parameter -I. -fsyntax-only "$T/accepted.c"
}

# One operand fewer than there must be, for every macro that has operands.
missing() {
    {
        sed -n 's/^#define \(eg_[a-z0-9_]*\)(\.\.\.) EGI_\(OPTIONS_2\|OPTIONS_1_RAW\|LAYER_2\)(.*/\1(x)/p
            s/^#define \(eg_[a-z0-9_]*\)(\.\.\.) EGI_\(OPTIONS_1\|LAYER_1\)(.*/\1()/p
            s/^#define \(eg_[a-z0-9_]*\)(a, b) .*/\1(x)/p' eager.h
        cat <<'END'
eg_gather(x, .axis = 1)
eg_matmul(x, .transpose_b = true)
eg_matmul()
eg_where(x, x)
eg_clip_by_value(x, 0)
eg_resize(x, 3)
eg_assign(x)
eg_concat(EG_TENSORS(x))
eg_loss_mean(eg_huber, x)
eg_loss_per_example(eg_huber, x)
eg_metric_update(NULL, x)
eg_metric_add(NULL)
eg_summary_scalar("loss")
eg_random_normal()
eg_call(NULL)
eg_fit(NULL)
eg_fit_arrays(NULL, x)
eg_evaluate_arrays(NULL, x)
eg_dataset_batch(NULL)
eg_dataset_shuffle(NULL)
eg_load_weights(NULL)
eg_compile(NULL, NULL)
eg_call_multi(NULL, NULL, 1, NULL)
eg_check_gradient(NULL, NULL, &x)
eg_dataset_csv(NULL)
eg_host_call(NULL, NULL, NULL, 0, NULL)
eg_while(NULL, NULL, NULL, NULL, NULL)
eg_scan(NULL, NULL, NULL, NULL, 0, NULL, 0, NULL)
eg_from_data(EG_FLOAT32, EG_SHAPE(1))
eg_from_data(EG_FLOAT32, EG_SHAPE(1), NULL, NULL)
eg_from_data(EG_FLOAT32, EG_SHAPE(1), eg_data(x), x)
eg_from_data(EG_FLOAT32, EG_SHAPE(1), eg_data(x), 1, 2)
eg_read_into(x, NULL)
EG_SHAPE().rank
EG_SHAPE(1, 2, ).rank
EG_AXES(1, ).count
EG_PADS(1, ).count
END
    } | refused 'eg_tensor *x' "$@"
}
# Each of these is of another kind, size or sign than the dtype's elements.
POINTED='eg_tensor *x, float *f, const float *cf, double *d, double d2[2][2], float f8[1][1][1][1][1][1][1][2], long double *ld, int *i, unsigned *u, long long *ll, unsigned long long *ull, size_t *size, int64_t *i64, short *s, unsigned short *us, char *c, signed char *sc, unsigned char *uc, bool *b, const bool *cb, float **ff, void *v, const void *cv, eg_shape *shape'
other_types() {
    refused "$POINTED" 'the pointer is not to elements of this dtype' "$@" <<'END'
eg_from_data(EG_FLOAT32, EG_SHAPE(4), uc)
eg_from_data(EG_FLOAT32, EG_SHAPE(4), d)
eg_from_data(EG_FLOAT32, EG_SHAPE(2, 2), d2)
eg_from_data(EG_FLOAT32, EG_SHAPE(4), ff)
eg_from_data(EG_FLOAT32, EG_SHAPE(4), i)
eg_from_data(EG_FLOAT32, EG_SHAPE(4), us)
eg_from_data(EG_FLOAT32, EG_SHAPE(4), shape)
eg_from_data(EG_FLOAT64, EG_SHAPE(4), f)
eg_from_data(EG_FLOAT64, EG_SHAPE(4), f8)
eg_from_data(EG_FLOAT64, EG_SHAPE(4), ld)
eg_from_data(EG_INT32, EG_SHAPE(4), u)
eg_from_data(EG_INT32, EG_SHAPE(4), s)
eg_from_data(EG_INT32, EG_SHAPE(4), ll)
eg_from_data(EG_INT32, EG_SHAPE(4), cf)
eg_from_data(EG_INT64, EG_SHAPE(4), i)
eg_from_data(EG_INT64, EG_SHAPE(4), size)
eg_from_data(EG_INT64, EG_SHAPE(4), ull)
eg_from_data(EG_UINT8, EG_SHAPE(4), sc)
eg_from_data(EG_UINT8, EG_SHAPE(4), b)
eg_from_data(EG_BOOL, EG_SHAPE(4), c)
eg_from_data(EG_BOOL, EG_SHAPE(4), i)
eg_from_data(EG_FLOAT16, EG_SHAPE(4), f)
eg_from_data(EG_FLOAT16, EG_SHAPE(4), s)
eg_from_data(EG_BFLOAT16, EG_SHAPE(4), f)
END
}
other_types_borrowed() {                    # in a file of its own: in C++, a template that failed once is not told again
    refused "$POINTED" 'the pointer is not to elements of this dtype' "$@" <<'END'
eg_wrap_data(EG_FLOAT32, EG_SHAPE(4), d, NULL, NULL)
eg_wrap_data(EG_FLOAT32, EG_SHAPE(4), d2, NULL, NULL)
eg_wrap_data(EG_INT64, EG_SHAPE(4), i, NULL, NULL)
eg_wrap_data(EG_INT64, EG_SHAPE(4), size, NULL, NULL)
END
}
# What the README's two flags turn into errors, those flags as they stand there.
wrong_arguments() {
    flags=$(sed -n 's/^\*\*Two flags to add\.\*\* `\([^`]*\)`.*/\1/p' README.md)
    [ -n "$flags" ] || { echo 'README.md names no two flags'; return 1; }
    refused 'eg_tensor *x, eg_layer *model' '' "$@" $flags <<'END'
eg_dataset_csv("a.csv", 1)
eg_call(model, 3)
eg_call(x, x)
eg_call(model, x, .mask = 5)
eg_print(3)
eg_layer_dense("3")
eg_layer_dense(3, 4)
eg_layer_dense(3, .name = 4)
eg_layer_dense(3, .activation = 4)
eg_adam(.learning_rate = "0.1")
eg_sequential(x)
END
}
read_only() {                               # where the memory that is written is const
    refused "$POINTED" '' "$@" <<'END'
eg_read_into(x, cf, 4)
eg_read_into(x, cv, 4)
eg_read_into(x, cb, 4)
END
}
same_types() {
    accepted "$POINTED" "$@" <<'END'
eg_from_data(EG_FLOAT32, EG_SHAPE(4), f)
eg_from_data(EG_FLOAT32, EG_SHAPE(4), cf)
eg_from_data(EG_FLOAT32, EG_SHAPE(2), f8)
eg_from_data(EG_FLOAT32, EG_SHAPE(2), f8[0][0])
eg_from_data(EG_FLOAT64, EG_SHAPE(2, 2), d2)
eg_from_data(EG_FLOAT64, EG_SHAPE(2), &d2[1][0])
eg_from_data(EG_INT32, EG_SHAPE(4), i)
eg_from_data(EG_INT64, EG_SHAPE(4), ll)
eg_from_data(EG_INT64, EG_SHAPE(4), i64)
eg_from_data(EG_UINT8, EG_SHAPE(4), uc)
eg_from_data(EG_UINT8, EG_SHAPE(4), c)
eg_from_data(EG_UINT8, EG_SHAPE(4), "text")
eg_from_data(EG_BOOL, EG_SHAPE(4), b)
eg_from_data(EG_BOOL, EG_SHAPE(4), cb)
eg_from_data(EG_BOOL, EG_SHAPE(4), uc)
eg_from_data(EG_FLOAT16, EG_SHAPE(4), us)
eg_from_data(EG_BFLOAT16, EG_SHAPE(4), us)
eg_from_data(EG_FLOAT32, EG_SHAPE(4), v)
eg_from_data(EG_FLOAT32, EG_SHAPE(4), cv)
eg_from_data(EG_FLOAT32, EG_SHAPE(0), NULL)
eg_wrap_data(EG_FLOAT32, EG_SHAPE(1), NULL, NULL, NULL)
eg_read_into(x, NULL, 0)
eg_from_data(EG_INT32, eg_shape_of(eg_from_data(EG_FLOAT32, EG_SHAPE(1), f)), eg_data(eg_from_data(EG_INT32, EG_SHAPE(4), i)))
eg_from_data(eg_dtype_of(x), eg_shape_of(x), eg_data(x))
eg_from_data(eg_dtype_of(x), EG_SHAPE(4), f)
eg_wrap_data(EG_FLOAT64, EG_SHAPE(4), d2, NULL, NULL)
eg_wrap_data(EG_FLOAT32, EG_SHAPE(4), (void *)d, NULL, NULL)
eg_wrap_data(eg_dtype_of(x), EG_SHAPE(4), d, NULL, NULL)
eg_read_into(x, f, 4)
eg_read_into(x, d2, 4)
eg_read_into(x, v, 4)
END
}
# A clang of version 20 or later, which warns of __COUNTER__, is one that says so.
of_a_newer_clang() {
    accepted 'eg_tensor *x, eg_tensor *y, float *f' "$CLANG" -std=c11 -U__clang_major__ -D__clang_major__=20 <<'END'
eg_replace(&x, eg_add(eg_replace(&y, eg_add(y, 1)), x))
eg_from_data(EG_FLOAT32, EG_SHAPE(1), eg_data(eg_from_data(EG_FLOAT32, EG_SHAPE(1), f)))
eg_from_data(EG_FLOAT32, EG_SHAPE(1), (const float *)eg_data(eg_from_data(EG_FLOAT32, EG_SHAPE(2), (float[2]){1, 2})))
END
}
no_tensors() {                              # pointers that are neither a tensor nor a void *
    refused 'eg_tensor *x, int *p, eg_layer *layer' '' "$@" -Werror <<'END'
eg_add(x, p)
eg_add(x, "text")
eg_add(layer, x)
eg_reduce_sum(p)
eg_matmul(x, layer)
END
}
other_numbers() {                           # that no dtype has: they would be cut to integers
    refused 'eg_tensor *x, double _Complex c, struct { int i; } s' '' "$@" <<'END'
eg_add(x, c)
eg_add(c, x)
eg_add(x, s)
END
}
for compiler in "$CC" "$CLANG"; do
    [ -n "$compiler" ] || continue
    by=$(basename "$compiler")
    case $compiler in *clang*) all='-ferror-limit=0' ;; *) all='-fmax-errors=0' ;; esac
    check "missing_operands_$by" missing egi_an_operand_is_missing $compiler -std=c11 $all
    check "other_types_$by" other_types $compiler -std=c11 $all
    check "other_types_borrowed_$by" other_types_borrowed $compiler -std=c11 $all
    check "read_only_memory_$by" read_only $compiler -std=c11 $all -Werror
    check "wrong_arguments_$by" wrong_arguments $compiler -std=c11 $all
    check "no_tensors_$by" no_tensors $compiler -std=c11 $all
    check "other_numbers_$by" other_numbers $compiler -std=c11 $all
    check "same_types_$by" same_types $compiler -std=c11
    for how in '-std=c11 -O0' '-std=gnu11 -O2' '-std=c17 -O2'; do
        check "operands_${by}_$(echo $how | tr -d ' ')" $compiler $how $WARN -I. -Itests -c tests/core/operands.c -o "$T/operands.o"
    done
done
[ -z "$CLANG" ] || check nesting_on_one_line_of_a_newer_clang of_a_newer_clang
for compiler in "$CXX" "$CLANGXX"; do
    [ -n "$compiler" ] || continue
    by=$(basename "$compiler")
    case $compiler in *clang*) all='-ferror-limit=0' ;; *) all='-fmax-errors=0' ;; esac
    check "other_types_$by" other_types $compiler -std=c++17 -x c++ $all
    check "other_types_borrowed_$by" other_types_borrowed $compiler -std=c++17 -x c++ $all
    check "read_only_memory_$by" read_only $compiler -std=c++17 -x c++ $all
    check "no_tensors_$by" no_tensors $compiler -std=c++17 -x c++ $all
    check "same_types_$by" same_types $compiler -std=c++17 -x c++
done
# With optimization the compiler knows an array's length in every call that takes one.
too_short() {
    printf '%s\n' '#include "eager.h"' 'int main(void) {' '    float three[3] = {1, 2, 3};' '    eg_set_error_handler(0, 0);' \
        '    return eg_from_data(EG_FLOAT32, EG_SHAPE(3), three) && !eg_from_data(EG_FLOAT32, EG_SHAPE(2, 2), three) && eg_error() == EG_ERROR_SHAPE ? 0 : 1;' \
        '}' >"$T/short.c"
    library_wait
    "$@" $WARN -O1 -I. "$T/short.c" -x none "$B/plain/eager.o" -o "$T/short" $LIBS && "$T/short"
}
check arrays_too_short_in_c too_short $CC -std=c11
[ -z "$CXX" ] || check arrays_too_short_in_cpp too_short $CXX -std=c++17 -x c++
finish
