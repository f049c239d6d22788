# ./build.sh bench-cuda: on the GPU of this machine, bandwidth, overhead and products against the bare CUDA libraries, then the workloads of
# peers.py beside what $PYTHON has of PyTorch and JAX. A table at the end; the full figures are in .build/cuda/bench.txt.
set -u
. tests/cuda_build.sh
out=$C/bench.txt
: >"$out"
$CC -std=c11 -O2 -I. -I"$cuda_include" tests/bench/cuda.c "$C/eager.o" $CUDA_LINK $LIBS -o "$C/bench" || exit 1
"$C/bench" | tee -a "$out"
peers=$([ -z "$PYTHON" ] || $PYTHON - <<'PYTHON_END' 2>/dev/null
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
here=$(pwd)
export EAGER_CUDA_LINK=$(echo "$CUDA_LINK" | sed "s,$C,$here/$C,g")
[ -n "$peers" ] || echo "No PyTorch or JAX with a GPU to compare with"
if [ -n "$PYTHON" ] && $PYTHON -c 'import numpy' 2>/dev/null; then
    CC=$CC timeout 900 $PYTHON tests/bench/peers.py --gpu --peers "eager$peers" --work op_add_4,tape_chain_4,ew_add_10m,ew_gelu_1m,sum_10m,softmax_1024x1000,matmul_1000,mlp_32,mlp_256,cnn_32,conv_64,lstm_128,gpt_small \
        --min-time 0.5 --markdown >"$C/peers.md"
    cat "$C/peers.md" >>"$out"
fi
printf '\n== on a GPU\n'; cat "$out"
