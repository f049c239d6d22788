# ./build.sh bench-cuda: on the GPU of this machine, bandwidth, overhead and products against the bare CUDA libraries, then the workloads of
# peers.py beside what $PYTHON has of PyTorch and JAX. A table at the end; the full figures are in bench.txt, in the folder OUT or .build/cuda.
# Ends after $limit seconds, whatever is left: the training steps come first, and what takes long to compile last.
set -u
limit=${CUDA_SECONDS:-520}
. tests/gpu/cuda_build.sh
out=$figures/bench.txt
: >"$out"
peers=$([ -z "$PYTHON" ] || timeout 120 $PYTHON - <<'PYTHON_END' 2>/dev/null
from importlib.util import find_spec
import numpy
if find_spec("torch"):
    import torch
    if torch.cuda.is_available(): print(",torch,torch.compile", end="")
if find_spec("jax"):
    import jax
    if any(d.platform == "gpu" for d in jax.devices()): print(",jax.jit", end="")
PYTHON_END
) || peers=''
cuda_ready
missing=''
for peer in torch jax; do case $peers in *$peer*) ;; *) missing="$missing $peer" ;; esac; done
[ -z "$missing" ] || echo "Not compared with:$missing (not installed for ${PYTHON:-Python, which is not found}, or without a GPU there)" | tee -a "$out"

$CC -std=c11 -O2 -I. -I$cuda_include tests/bench/cuda.c "$C/eager.o" $CUDA_LINK $LIBS -o "$C/bench" && timeout 120 "$C/bench" 2>&1 | tee -a "$out"
here=$(pwd)
export EAGER_CUDA_LINK=$(echo "$CUDA_LINK" | sed "s,$C/,$here/$C/,g")
# measure PEERS WORKLOADS SECONDS: a table, which is shown as it grows.
measure() {
    [ "$3" -gt 20 ] || { echo "No time was left for $2" | tee -a "$out"; return; }
    echo >>"$out"
    CC=$CC $PYTHON tests/bench/peers.py --gpu --peers "$1" --work "$2" --seconds "$3" --min-time 0.5 --markdown 2>&1 | tee -a "$out"
}
if [ -n "$PYTHON" ] && $PYTHON -c 'import numpy' 2>/dev/null; then
    quick=$(echo "$peers" | sed 's/,torch.compile//')
    measure "eager$quick" mlp_32,cnn_32,gpt_small,lstm_128,mlp_256,conv_64,conv_56,conv_56_tf32,conv_1x1,conv_mnist $(($(left) - 60))
    measure "eager$(echo "$quick" | sed 's/,jax.jit//')" op_add_4,tape_chain_4,ew_add_10m,ew_gelu_1m,sum_10m,softmax_1024x1000,matmul_1000 $(($(left) - 30))
    [ "$quick" = "$peers" ] || measure eager,torch.compile mlp_32,cnn_32,gpt_small,lstm_128 $(left)
else echo "No Python with NumPy: the workloads of tests/bench/peers.py are not measured" | tee -a "$out"
fi
printf '\n== on a GPU, after %s s\n' $((limit - $(left))); cat "$out"
