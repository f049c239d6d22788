# Read by build.sh: finds what there is to build with, one line each.
# CC CXX CLANG CLANGXX NVCC PYTHON: commands, empty where there is none. LIBS: what every program is linked with.
# OPTIONS and OPTION_LIBS: the flags that switch on what was found of OpenBLAS, zlib, libpng and libjpeg; READERS and READER_LIBS: all but OpenBLAS.
have() { command -v "$1" >/dev/null 2>&1; }
first() { for tool; do ! have "$tool" || { echo "$tool"; return; }; done; }
links() { printf '%s\n' "$1" >$B/probe.c; shift; $CC $B/probe.c -o $B/probe "$@" >/dev/null 2>&1; }
says() { [ -n "$2" ] && echo "$1: $2" || echo "$1: not found, $3"; }

mkdir -p $B
CC=${CC:-$(first cc gcc clang)} CXX=${CXX-$(first c++ g++ clang++)} CFLAGS=${CFLAGS-}
CLANG=$(first clang) CLANGXX=$(first clang++) NVCC=${NVCC-$(first nvcc /usr/local/cuda/bin/nvcc)} PYTHON=${PYTHON:-$(first python3)}
JOBS=${JOBS:-$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1))}       # some of what runs waits for another one, or for a clock
[ -n "$CC" ] || { echo "build.sh: no C compiler found; install gcc or clang, or set CC" >&2; exit 1; }
links 'int main(void) { return 0; }' || { echo "build.sh: $CC cannot compile and link a program" >&2; exit 1; }

LIBS=-lm OPTIONS='' OPTION_LIBS='' READERS='' READER_LIBS='' blas='' zlib='' image=''
! links 'int main(void) { return 0; }' -lpthread || LIBS="-lm -lpthread"
for place in '' -I/usr/include/openblas; do
    [ -z "$blas" ] && links '#include <cblas.h>
int main(void) { float x = 1; return cblas_sdot(1, &x, 1, &x, 1) != 1; }' $place -lopenblas &&
        blas="cblas.h and -lopenblas" OPTIONS="-DEAGER_OPENBLAS $place" OPTION_LIBS=-lopenblas
done
links '#include <zlib.h>
int main(void) { return zlibVersion() == 0; }' -lz &&
    zlib="zlib.h and -lz" READERS=-DEAGER_ZLIB READER_LIBS=-lz
links '#include <stdio.h>
#include <jpeglib.h>
#include <png.h>
int main(void) { struct jpeg_error_mgr e; return jpeg_std_error(&e) == 0 || png_access_version_number() == 0; }' -lpng -ljpeg &&
    image="png.h, jpeglib.h, -lpng and -ljpeg" READERS="$READERS -DEAGER_IMAGE" READER_LIBS="$READER_LIBS -lpng -ljpeg"
OPTIONS="$OPTIONS${READERS:+ $READERS}" OPTION_LIBS="$OPTION_LIBS${READERS:+ $READER_LIBS}"

echo "C compiler: $CC ($($CC --version 2>/dev/null | head -n 1))"
says OpenBLAS "$blas" "matmul is eager.h's own"
says zlib "$zlib" "gzip'ed files are not read"
says 'libpng, libjpeg' "$image" "PNG and JPEG files are not read"
says clang "$CLANG" "one compiler is tested"
says nvcc "$NVCC" "no CUDA"
says Python "$PYTHON" "the tests' reference values stay as they are"
export B CC CXX CFLAGS CLANG CLANGXX NVCC PYTHON JOBS OPTIONS OPTION_LIBS READERS READER_LIBS LIBS
