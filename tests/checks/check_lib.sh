# What ./build.sh lib and install make, used by programs outside this folder: through pkg-config and through CMake, in C
# and in C++, from a prefix with a space in its name and from below DESTDIR; and which symbols the libraries show.
# They are compiled without -O, and of one object; with EAGER_LONG of two, as they are otherwise.
. tests/checks/check.sh
T=$(cd "$TEST_TEMP" && pwd)
P="$T/a prefix" W="$T/another place"
mkdir -p "$W"

[ -n "${EAGER_LONG-}" ] && pic= || pic=" -fPIC"
makes() { B=$T FROM=$T CFLAGS="$CFLAGS -O0$pic" sh tests/lib.sh "$@"; }
cat >"$W/program.c" <<'END'
#include <eager.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    EG_SCOPE;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *x = eg_constant(EG_SHAPE(2), 3, 4);
    eg_tape_watch(tape, x);
    eg_tensor *g = eg_tape_gradient(tape, eg_reduce_sum(eg_square(x), .axes = EG_AXES(0)), x);
    eg_layer *layer = eg_layer_dense(2);
    eg_tensor *y = eg_call(layer, eg_reshape(g, EG_SHAPE(1, 2)));
    bool good = eg_item(eg_reduce_sum(g)) == 14 && y && eg_error() == EG_OK;
    eg_layer_release(layer);
    eg_set_error_handler(NULL, NULL);
    good = good && !eg_matmul(x, x) && strstr(eg_error_message(), "program.c");       // the program's own place
    puts(good ? "works" : "fails");
    return !good;
}
END
cat >"$W/program.cpp" <<'END'
#include <eager.h>
#include <cstdio>
int main() {
    EG_SCOPE;
    eg_value x = eg_constant(EG_SHAPE(1), 3);
    bool good = eg_item(x * 2 + 1) == 7;
    std::puts(good ? "works" : "fails");
    return !good;
}
END
# The library's threads end as it is unloaded: a large op starts two. (OpenBLAS starts its own when it is loaded.)
cat >"$W/unloads.c" <<'END'
#include <dirent.h>
#include <dlfcn.h>
#include <eager.h>
#include <stdio.h>
static int tasks(void) {
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count;
}
int main(void) {
    for (int i = 0; i < 3; i++) {
        const int before = tasks();
        void *library = dlopen("libeager.so", RTLD_NOW | RTLD_LOCAL);
        if (!library) { puts(dlerror()); return 1; }
        bool (*threads)(int) = (bool (*)(int))dlsym(library, "eg_set_num_threads");
        eg_scope (*begin)(void) = (eg_scope (*)(void))dlsym(library, "eg_scope_begin");
        void (*end)(eg_scope) = (void (*)(eg_scope))dlsym(library, "eg_scope_end");
        eg_tensor *(*ones)(eg_dtype, eg_shape) = (eg_tensor *(*)(eg_dtype, eg_shape))dlsym(library, "eg_ones");
        eg_tensor *(*exponential)(eg_tensor *) = (eg_tensor *(*)(eg_tensor *))dlsym(library, "eg_exp");
        const int loaded = tasks();
        const eg_scope scope = begin();
        eg_tensor *x = threads(3) ? ones(EG_FLOAT32, EG_SHAPE(2000, 2000)) : NULL;
        const bool made = x && exponential(x);
        end(scope);
        const int with = tasks(), unloaded = dlclose(library) == 0 && !dlopen("libeager.so", RTLD_NOLOAD | RTLD_NOW);
        if (!made || with != loaded + 2 || !unloaded || tasks() != before) {
            printf("%d threads, %d with the library, %d after an op, %d in the end\n", before, loaded, with, tasks());
            return 1;
        }
    }
    puts("works");
    return 0;
}
END
threads_end_with_the_library() {
    (cd "$W" && $CC -std=c11 -I"$P/include" unloads.c -ldl -o unloads) && runs "$W/unloads"
}
# runs PROGRAM: it does, and says that it works. The loader does not know the prefix.
runs() { [ "$(LD_LIBRARY_PATH="$P/lib" "$1")" = works ]; }
# through_pkg_config PACKAGE SOURCE COMPILER...: what pkg-config writes is for a shell to read.
through_pkg_config() {
    package=$1 source=$2; shift 2
    flags=$(PKG_CONFIG_PATH="$P/lib/pkgconfig" pkg-config --cflags --libs "$package") || return
    (cd "$W" && eval "$* -Wall -Wextra $source $flags $LIBS -o $package") && runs "$W/$package"
}
uses_the_shared_one() { ldd "$W/eager" | grep -q libeager.so && ! ldd "$W/eager-static" | grep -q libeager.so; }
version_is_the_headers() {
    version=$(PKG_CONFIG_PATH="$P/lib/pkgconfig" pkg-config --modversion eager)
    grep -qx "#define EAGER_VERSION \"$version\"" eager.h
}
through_cmake() {
    cat >"$W/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.10)
project(outside C)
find_package(eager 0.1 REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared PRIVATE eager::eager m)
add_executable(static program.c)
target_link_libraries(static PRIVATE eager::static)
END
    CC=$CC cmake -S "$W" -B "$W/made" -DCMAKE_PREFIX_PATH="$1" && cmake --build "$W/made" &&
        "$W/made/shared" && "$W/made/static"
}
# The folder of the header is no system's folder, where gcc would not warn.
warns_through_cmake() {
    cat >"$W/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.10)
project(outside C)
find_package(eager 0.1 REQUIRED)
add_executable(axes axes.c)
target_link_libraries(axes PRIVATE $1 m)
target_compile_options(axes PRIVATE -Wall)
END
    printf '#include <eager.h>\nint main(void) { return eg_reduce_sum(eg_scalar(1), .axes = 0) == NULL; }\n' >"$W/axes.c"
    rm -rf "$W/warned"
    CC=$CC cmake -S "$W" -B "$W/warned" -DCMAKE_PREFIX_PATH="$P" && cmake --build "$W/warned" 2>"$T/warned" || return
    grep -q 'missing-braces' "$T/warned"
}
other_versions_are_refused() {
    printf '%s\n' 'cmake_minimum_required(VERSION 3.10)' 'project(outside C)' "find_package(eager $1 REQUIRED)" \
        >"$W/CMakeLists.txt"
    ! CC=$CC cmake -S "$W" -B "$W/refused" -DCMAKE_PREFIX_PATH="$P" && rm -r "$W/refused"
}
# eg_ alone, and of egi_ what the header's macros or eager_cuda.cu call.
shows() {
    "$@" | awk 'NF == 3 { print $3 }' | sort >"$T/shown"
    grep -q '^eg_add$' "$T/shown" && ! grep -v '^egi\{0,1\}_' "$T/shown" || return
    sed '/^#ifdef EAGER_IMPLEMENTATION/q; /^#if defined(EAGER_IMPLEMENTATION)/q' eager.h >"$T/public"
    for symbol in $(grep '^egi_' "$T/shown"); do
        grep -qw "$symbol" "$T/public" eager_cuda.cu || { echo "$symbol: who needs it?"; return 1; }
    done
    for symbol in $(sed -n 's/^EAGER_API [^(]*[ *]\(egi_[a-z_]*\)(.*/\1/p' eager.h); do
        grep -qx "$symbol" "$T/shown" || { echo "$symbol is missing"; return 1; }
    done
}
nothing_is_made_twice() {
    : >"$T/mark" && makes install "$P" && [ -z "$(find "$T/lib" -name '*.o' -newer "$T/mark")" ]
}
below_another_root() {
    DESTDIR="$T/a root" makes install /usr && (P="$T/a root/usr" && through_pkg_config eager program.c $CC)
}
asks_where() { ! ./build.sh install 2>"$T/said" && grep -q 'install where?' "$T/said"; }

check libraries_are_made makes lib
check an_installation_is_made makes install "a prefix"
check asks_where_to_install asks_where
check nothing_is_made_twice nothing_is_made_twice
if [ ! -d /proc/self/task ]; then skip threads_end_with_the_library "no /proc"
else check threads_end_with_the_library threads_end_with_the_library
fi
if ! command -v pkg-config >/dev/null; then skip through_pkg_config "no pkg-config"
else
    check through_pkg_config through_pkg_config eager program.c $CC
    check through_pkg_config_static through_pkg_config eager-static program.c $CC
    check each_library_is_the_one_named uses_the_shared_one
    check version_is_the_headers version_is_the_headers
    check below_destdir below_another_root
    if [ -z "$CXX" ]; then skip in_cpp "no C++ compiler"
    else
        check in_cpp through_pkg_config eager program.cpp $CXX -std=c++17
        check in_cpp_static through_pkg_config eager-static program.cpp $CXX -std=c++17
    fi
fi
if ! command -v cmake >/dev/null; then skip through_cmake "no CMake"
else
    check through_cmake through_cmake "$P"
    check other_versions_are_refused other_versions_are_refused 0.2
    check other_major_versions_are_refused other_versions_are_refused 1
    printf '%s\n' 'if(CMAKE_VERSION VERSION_LESS 3.23)' 'message(FATAL_ERROR old)' 'endif()' >"$W/version.cmake"
    if cmake -P "$W/version.cmake" 2>/dev/null; then
        check warns_through_cmake warns_through_cmake eager::eager
        check warns_through_cmake_static warns_through_cmake eager::static
    else skip warns_through_cmake "CMake before 3.23"
    fi
fi
check symbols_of_the_shared_library shows nm -D --defined-only "$P/lib/libeager.so"
check symbols_of_the_static_library shows nm -g --defined-only "$P/lib/libeager.a"
finish
