#!/bin/sh
# Everything one types in this folder; ./build.sh help says what. The long parts live in tests/.
set -eu
from=$PWD
cd "$(dirname "$0")"
B=.build

help() { cat <<'END'
./build.sh run [FOLDER] [--guide]  train a digit classifier, on digits it draws
                                  itself or on MNIST's IDX files in FOLDER
./build.sh test [CONFIG...] [NAME...]
                                  build and run the tests; a NAME is a chapter
                                  (tests/*/NAME.c) or part of a test's name.
                                  check_cuda (nvcc compiles eager_cuda.cu for all
                                  GPUs in use: minutes) runs where it is named
./build.sh test-cuda [NAME...]    the tests on a GPU (needs nvcc and a GPU)
./build.sh bench [--threads N] [--peers NAMES] [WORKLOAD...]
                                  measure, and compare with what PYTHON has of
                                  PyTorch, TensorFlow and JAX
./build.sh bench numpy [NAME...]  measure each operation beside NumPy
./build.sh bench layers [NAME...] the same for layers, losses, optimizers, beside
                                  PyTorch
./build.sh bench forms [NAME...]  what operands of other forms cost beside whole
                                  tensors
./build.sh bench files [NAME...]  data and files, beside NumPy, pandas, tf.data
./build.sh bench results          write the tables of tests/bench/RESULTS.md anew
./build.sh bench neighbour        what a busy loop on one of two cores costs
./build.sh bench-cuda             measure on a GPU, beside PyTorch and JAX there
./build.sh examples [NAME...]     build and run the examples
./build.sh cluster [N] [FOLDER]   train the digits by N processes, 2 if none is said
                                  (needs MPI), on those of MNIST where FOLDER has its files
./build.sh lib                    make libeager.a and libeager.so in .build/lib,
                                  with the optional parts that are found
./build.sh install PREFIX         put them, the header and what pkg-config and
                                  CMake want into PREFIX (below DESTDIR, if set)
./build.sh fixtures [numpy|...]   make the tests' reference values again
                                  (Python with NumPy, TensorFlow, PyTorch)
./build.sh docs                   write docs/reference.md, draw the pictures
./build.sh coverage [NAME...]     list branches of eager.h that no test takes
./build.sh deps                   install what is optional (Debian, Ubuntu)
./build.sh clean                  remove the build folder, .build/

Environment: CC, CXX, CFLAGS, JOBS (how much runs at once; default: one more
than there are cores), EAGER_DATA (a folder of real data for the tests that want
some), EAGER_LONG (set: also what takes minutes more), OUT (a folder for the full
figures of test-cuda and bench-cuda). Only a C compiler is needed; OpenBLAS,
zlib, libpng and libjpeg, clang, nvcc and Python are used where they are found.
CONFIG: plain, guard (a device the host cannot read), optional, debug,
nothreads, c++, clang, clang++, address, thread, leak, valgrind, cuda-host,
cuda-address (eager_cuda.cu on a stand-in for CUDA, on the processor; the other
one under sanitizers). Default: plain, without what takes long, which it names;
of files or tests that are named, guard and, if found, optional, too.
END
}

command=${1:-help}
[ $# -eq 0 ] || shift
case $command in
run)
    for word; do
        case $word in */*) [ -d "$from/$word" ] || [ -d "$word" ] || { echo "build.sh: no folder '$word'" >&2; exit 1; } ;; esac
    done
    . tests/find.sh
    set -- "$(ls examples/*digits_cnn*.c | head -n 1)" "$@"
    echo "Building $1 (-O2)"
    $CC -std=c11 -O2 -DEAGER_STATIC $CFLAGS -I. "$1" -o $B/digits $OPTIONS $OPTION_LIBS $LIBS
    shift
    for word; do        # a folder is named from where one typed, and this script has moved
        shift
        [ ! -d "$from/$word" ] || word=$from/$word
        set -- "$@" "$word"
    done
    exec $B/digits "$@" ;;
test)
    . tests/find.sh
    sh tests/run.sh "$@" ;;
bench)
    . tests/find.sh
    sh tests/bench/run.sh "$@" ;;
test-cuda)
    . tests/find.sh
    sh tests/gpu/cuda.sh "$@" ;;
bench-cuda)
    . tests/find.sh
    sh tests/bench/cuda.sh "$@" ;;
examples)
    . tests/find.sh
    [ $# -gt 0 ] || set -- ''
    for name; do
        for source in examples/*"$name"*.c; do
            [ -f "$source" ] || { echo "build.sh: no examples/*$name*.c" >&2; exit 1; }
            printf '\n== %s, run in %s: the paths that it reads, writes and names begin there\n' "$source" "$B"
            cp examples/*.safetensors $B
            $CC -std=c11 -O2 -DEAGER_STATIC $CFLAGS -I. "$source" -o $B/program $OPTIONS $OPTION_LIBS $LIBS && (cd $B && ./program)
        done
    done ;;
cluster)
    . tests/find.sh >/dev/null
    command -v mpicc >/dev/null && command -v mpirun >/dev/null || { echo "build.sh cluster: MPI is missing: apt-get install libopenmpi-dev openmpi-bin" >&2; exit 1; }
    # what each MPI reads of these is set for it: Open MPI, MPICH
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_CC="$CC" MPICH_CC="$CC"
    echo "Building examples/25_cluster.c (-O2)"
    case " $OPTIONS " in *EAGER_ZLIB*) zip='-DEAGER_ZLIB -lz' ;; *) zip= ;; esac      # MNIST's files are packed
    mpicc -std=c11 -O2 -DEAGER_STATIC -DEAGER_MPI $CFLAGS -I. examples/25_cluster.c -o $B/cluster_digits $zip $LIBS
    exec mpirun -n "${1:-2}" $B/cluster_digits ${2:+"$2"} ;;
lib | install)
    . tests/find.sh
    FROM=$from sh tests/lib.sh "$command" "$@" ;;
coverage)
    . tests/find.sh
    sh tests/coverage.sh "$@" ;;
fixtures)
    if [ -f "tests/fixtures/fixtures_${1-}.py" ]; then chapter=$1; shift; exec ${PYTHON:-python3} "tests/fixtures/fixtures_$chapter.py" "$@"; fi
    ${PYTHON:-python3} tests/fixtures/fixtures.py "$@"
    case ${1-} in check | numpy | all) ${PYTHON:-python3} tests/fixtures/printing.py "$1" ;; esac ;;
docs)
    . tests/find.sh
    awk -f docs/reference.awk eager.h >docs/reference.md.new && mv docs/reference.md.new docs/reference.md
    $CC -std=c11 -O1 -DEAGER_STATIC -I. docs/pictures.c -o $B/pictures $LIBS && $B/pictures docs ;;
deps)
    [ "$(id -u)" = 0 ] && sudo= || sudo=sudo
    $sudo apt-get update
    $sudo apt-get install -y gcc g++ clang libclang-rt-dev libopenblas-dev zlib1g-dev libpng-dev libjpeg-dev libopenmpi-dev openmpi-bin pkg-config valgrind python3 python3-numpy ;;
clean) rm -rf $B ;;
help | -h | --help) help ;;
*) echo "build.sh: no command '$command'" >&2; help >&2; exit 2 ;;
esac
