# The harness of the checks that are shell scripts: `check NAME COMMAND...` passes when the command succeeds, and shows
# what it printed when it does not. The script's arguments select checks, as a C test's do.
set -u
passed=0 failed=0 skipped=0 wanted=" $* "
program=$(basename "$0" .sh)
mkdir -p "$TEST_TEMP"

selected() {
    [ "$wanted" = "  " ] && return
    for part in $wanted; do case $1 in *"$part"*) return 0 ;; esac; done
    return 1
}
check() {
    name=$1; shift
    selected "$name" || return 0
    if "$@" >"$TEST_TEMP/log" 2>&1; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "$0: in $name: $*"
    head -n 30 "$TEST_TEMP/log" | sed 's/^/    /'
}
skip() { ! selected "$1" || { skipped=$((skipped + 1)); echo "$0: skipped $1: $2"; }; }
# Waits until a library is made, which run.sh compiles meanwhile: eager.o of the plain configuration or $1. A script that names the former is
# begun only then, unless it calls this itself where it comes to it.
library_wait() { for second in $(seq 1200); do [ -f "${1:-$B/plain/eager.o}.pending" ] || break; sleep 1; done; }
finish() { echo "$program: $passed passed, $failed failed, $skipped skipped"; [ $failed = 0 ]; }
