# ./build.sh bench [--threads N] [--peers NAMES] [WORKLOAD...]: eager.h alone, then beside the frameworks that $PYTHON can import.
# bench results [OPTION...]: the tables of RESULTS.md and docs/speed.svg, anew (results.py --help).
# bench numpy [NAME...]: the operations one by one, beside NumPy. bench layers [NAME...]: layers, losses and optimizers, beside PyTorch.
# bench forms [NAME...]: what a plain number, one element, a row or a column as an operand costs beside a whole tensor.
# bench neighbour [OPTION...]: what a busy loop on one of two cores costs, beside PyTorch (neighbour.py --help).
# bench files [NAME...]: data and files, beside NumPy, pandas, safetensors, PyTorch and tf.data.
mkdir -p $B
if [ "${1-}" = files ]; then
    shift
    $CC -std=c11 -O2 $CFLAGS -I. tests/bench/files.c -o $B/files $LIBS
    [ -n "$PYTHON" ] || { echo "bench files needs a Python; without NumPy and the others eager.h is measured alone." >&2; exit 1; }
    exec $PYTHON tests/bench/files.py $B/files "$@"
fi
if [ "${1-}" = forms ]; then
    shift
    $CC -std=c11 -O2 $CFLAGS -I. tests/bench/forms.c -o $B/forms $LIBS
    exec $B/forms "$@"
fi
if [ "${1-}" = numpy ]; then
    shift
    [ -n "$PYTHON" ] && $PYTHON -c 'import numpy' 2>/dev/null || { echo "bench numpy needs a Python with NumPy; PYTHON=venv/bin/python names one." >&2; exit 1; }
    $CC -std=c11 -O2 $CFLAGS -I. tests/bench/numpy_table.c -o $B/numpy_table $LIBS
    exec $PYTHON tests/bench/numpy_table.py $B/numpy_table "$@"
fi
if [ "${1-}" = layers ]; then
    shift
    [ -n "$PYTHON" ] && $PYTHON -c 'import numpy, torch' 2>/dev/null || { echo "bench layers needs a Python with NumPy and PyTorch; PYTHON=venv/bin/python names one." >&2; exit 1; }
    $CC -std=c11 -O2 $CFLAGS -I. tests/bench/layers_table.c -o $B/layers_table $LIBS
    exec $PYTHON tests/bench/layers_table.py $B/layers_table "$@"
fi
case ${1-} in results | neighbour)
    table=$1
    shift
    [ -n "$PYTHON" ] && $PYTHON -c 'import numpy' 2>/dev/null || { echo "bench $table needs a Python with NumPy; PYTHON=venv/bin/python names one." >&2; exit 1; }
    CC=$CC exec $PYTHON tests/bench/$table.py "$@" ;;
esac
threads=1 peers=
while :; do
    case ${1-} in
    --threads) threads=$2; shift 2 ;;
    --peers) peers=$2; shift 2 ;;
    *) break ;;
    esac
done
$CC -std=c11 -O2 $CFLAGS -I. tests/bench/bench.c -o $B/bench $LIBS
printf '\n== eager.h, kernels of its own, threads: %s\n' "$threads"
EAGER_NUM_THREADS=$threads $B/bench "$@"

[ -n "$peers" ] || peers=$([ -z "$PYTHON" ] || $PYTHON - <<'PYTHON_END' 2>/dev/null
from importlib.util import find_spec
if find_spec("numpy"):
    print("eager" + "".join("," + peer for peer, module in (("torch", "torch"), ("tf", "tensorflow"), ("jax", "jax")) if find_spec(module)))
PYTHON_END
) || peers=''
if [ -z "$peers" ] || [ "$peers" = eager ]; then
    echo "No PyTorch, TensorFlow or JAX to compare with; PYTHON=venv/bin/python ./build.sh bench takes those of an environment."
    exit
fi
[ $# -gt 0 ] || set -- op_add_4 tape_chain_4 linreg_2000 mlp_32 cnn_32 startup
printf '\n== beside others, each in a process of its own, on %s core(s) (tests/bench/peers.py --help: more workloads and peers)\n' "$threads"
CC=$CC $PYTHON tests/bench/peers.py --threads "$threads" --peers "$peers" --work "$(echo "$@" | tr ' ' ,)" --min-time 0.3 --markdown
