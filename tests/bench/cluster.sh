# A step of two ranks on cores 0 and 1, one thread each, beside PyTorch's DistributedDataParallel with gloo: both in turn,
# three times. PYTHON is a Python that has torch. Prints, for each model and way, the least of all milliseconds of a step
# of one rank alone (while the other one computes, too) and of both together, the least of the three medians, the share of the step that
# communication takes (1 - alone / together, of medians), and the bytes sent over the fewest possible.
#     PYTHON=/path/to/python sh tests/bench/cluster.sh
set -u
T=${TMPDIR:-/tmp}/eager_cluster_$$
mkdir -p "$T"
trap 'rm -rf "$T"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 EAGER_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
command -v mpicc >/dev/null && command -v mpirun >/dev/null || { echo "MPI is missing: apt-get install libopenmpi-dev openmpi-bin" >&2; exit 1; }
mpicc -std=c11 -O2 -DEAGER_STATIC -DEAGER_MPI -I. tests/bench/cluster.c -o "$T/cluster" -lm || exit
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import torch' 2>/dev/null || { echo "(no torch in $PYTHON: eager.h alone)"; PYTHON=; }
for turn in 1 2 3; do
    mpirun --oversubscribe --bind-to none -n 2 sh -c 'exec taskset -c $((OMPI_COMM_WORLD_RANK % 2)) "$0"' "$T/cluster" >>"$T/all" || exit
    [ -n "$PYTHON" ] || continue
    for rank in 0 1; do
        RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + ($$ + turn) % 20000)) taskset -c $rank "$PYTHON" tests/bench/cluster.py >>"$T/all" || kill $$ &
    done
    wait
done
awk 'function least(k, x) { if (!(k in low) || x < low[k]) low[k] = x }
    { key = $1 " " $2; seen[key] = 1; for (i = 3; i <= 6; i++) least(key i, $i + 0); if ($7) bytes[key] = $7 }
    END { printf "%-14s %10s %10s %10s %10s %8s %8s\n", "", "alone min", "median", "both min", "median", "share", "bytes"
        for (key in seen) printf "%-14s %10.2f %10.2f %10.2f %10.2f %7.0f%% %8s\n", key, low[key 3], low[key 4], low[key 5], low[key 6], 100 * (1 - low[key 4] / low[key 6]), bytes[key] }' "$T/all" | sort
