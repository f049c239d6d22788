# tests/lib.sh lib | install PREFIX: makes libeager.a and libeager.so in .build/lib, with the optional parts that were
# found, and copies them with the header, two descriptions for pkg-config and a package for CMake to PREFIX (below
# DESTDIR, if that is set). build.sh starts it, and says in FROM where it was typed. What is installed may be moved:
# nothing in it names PREFIX.
set -eu
L=$B/lib

# compile TARGET COMMAND...: unless that command has made it of this header before.
compile() {
    target=$1; shift
    made=$(cat "$target.how" 2>/dev/null) || made=''
    [ "$made" = "$*" ] && [ -f "$target" ] && [ -z "$(find eager.h -newer "$target")" ] && return
    rm -f "$target.how"
    "$@" -o "$target" && printf %s "$*" >"$target.how"
}
# Everything is compiled twice, since code that may lie anywhere takes longer to reach what belongs to a thread; once, where CFLAGS say
# -fPIC anyway.
libraries() {
    mkdir -p "$L"
    printf '#define EAGER_IMPLEMENTATION\n#include "eager.h"\n' >"$L/eager.c"
    visible='-DEAGER_API=extern __attribute__((visibility("default")))'
    set -- $CC -std=c11 -O2 $CFLAGS $OPTIONS -fvisibility=hidden "$visible" -I. -c "$L/eager.c"
    static=$L/static.o other=''
    case " $CFLAGS " in *' -fPIC '*) static=$L/shared.o ;; *) compile "$static" "$@" & other=$! ;; esac
    compile "$L/shared.o" "$@" -fPIC && wait $other || return 1
    rm -f "$L/libeager.a"
    ${AR:-ar} rcs "$L/libeager.a" "$static"
    # The linker's own names for the ends of sections (EGI_LIST) stay inside.
    echo '{ global: eg_*; egi_*; local: *; };' >"$L/libeager.map"
    $CC -shared -Wl,-soname,libeager.so,--version-script="$L/libeager.map" $CFLAGS "$L/shared.o" -o "$L/libeager.so" $OPTION_LIBS $LIBS
}

# The description for pkg-config of name $1, linked as $2 says.
pc() {
    cat <<END
prefix=\${pcfiledir}/../..
includedir=\${prefix}/include
libdir=\${prefix}/lib

Name: $1
Description: Eager tensors and automatic differentiation ($3)
Version: $version
Cflags: -I\${includedir}
Libs: $2
END
}
cmake_package() {
    cat <<END
# find_package(eager): the targets eager::eager, which is libeager.so, and eager::static, which is libeager.a.
# SYSTEM OFF (IMPORTED_NO_SYSTEM before CMake 3.25): in a system's folder gcc would not warn of .axes = 0.
get_filename_component(eager_PREFIX "\${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET eager::eager)
  add_library(eager::eager SHARED IMPORTED)
  set_target_properties(eager::eager PROPERTIES
    IMPORTED_LOCATION "\${eager_PREFIX}/lib/libeager.so" IMPORTED_SONAME libeager.so
    SYSTEM OFF IMPORTED_NO_SYSTEM ON INTERFACE_INCLUDE_DIRECTORIES "\${eager_PREFIX}/include")
  add_library(eager::static STATIC IMPORTED)
  set_target_properties(eager::static PROPERTIES
    IMPORTED_LOCATION "\${eager_PREFIX}/lib/libeager.a"
    INTERFACE_LINK_LIBRARIES "$(echo $OPTION_LIBS $LIBS | sed 's/-l//g; s/ /;/g')"
    SYSTEM OFF IMPORTED_NO_SYSTEM ON INTERFACE_INCLUDE_DIRECTORIES "\${eager_PREFIX}/include")
endif()
END
}
# Before 1.0, only the same minor version fits.
cmake_version() {
    cat <<END
set(PACKAGE_VERSION $version)
string(REGEX MATCH "^[0-9]+[.][0-9]+" eager_MINOR "\${PACKAGE_FIND_VERSION}.0")
if("\${PACKAGE_VERSION}." MATCHES "^\${eager_MINOR}[.]" AND NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
END
}

command=$1 prefix=${2-}
case $command:$prefix in
install:) echo "build.sh: install where? For instance ./build.sh install /usr/local" >&2; exit 2 ;;
install:/*) ;;
*) prefix=$FROM/$prefix ;;
esac
libraries
version=$(sed -n 's/^#define EAGER_VERSION "\(.*\)"/\1/p' eager.h)
[ "$command" = install ] || { ls -l "$L"/libeager.*; exit; }
to=${DESTDIR-}$prefix
mkdir -p "$to/include" "$to/lib/pkgconfig" "$to/lib/cmake/eager"
cp eager.h "$to/include/eager.h"
cp "$L/libeager.a" "$L/libeager.so" "$to/lib/"
pc eager '-L${libdir} -leager' libeager.so >"$to/lib/pkgconfig/eager.pc"
pc eager-static "\${libdir}/libeager.a $OPTION_LIBS $LIBS" libeager.a >"$to/lib/pkgconfig/eager-static.pc"
cmake_package >"$to/lib/cmake/eager/eagerConfig.cmake"
cmake_version >"$to/lib/cmake/eager/eagerConfigVersion.cmake"
echo "installed in $to:"
(cd "$to" && ls -l include/eager.h lib/libeager.* lib/pkgconfig/eager*.pc lib/cmake/eager/*)
