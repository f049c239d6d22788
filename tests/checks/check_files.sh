# Others read what we write and we read what they write: NumPy the .npy and .npz files, safetensors' own library its files. Without
# Python and them it is skipped. Where strace can, saves are killed before each of their real system calls.
. tests/checks/check.sh
T=$TEST_TEMP
cat >"$T/tool.c" <<'END'
// tool convert FROM TO: by their endings.  tool save FOLDER N: a checkpoint of N.  tool latest FOLDER: the number in the latest one.
static unsigned zip64_from = 0xffffffffu;
#define EGI_ZIP64_FROM zip64_from
#define EAGER_IMPLEMENTATION
#include "eager.h"
static eg_archive *load(const char *path) {
    if (strlen(path) < 4 || strcmp(path + strlen(path) - 4, ".npy") != 0) return eg_archive_load(path);
    eg_archive *a = eg_archive_new();
    eg_archive_add(a, "x", eg_load_npy(path));
    return a;
}
static bool save(eg_archive *a, const char *path) {
    if (strlen(path) < 4 || strcmp(path + strlen(path) - 4, ".npy") != 0) return eg_archive_save(a, path);
    return eg_save_npy(eg_archive_get(a, eg_archive_name(a, 0)), path);
}
int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[4], "zip64")) zip64_from = 100;
    if (argc >= 4 && !strcmp(argv[1], "convert")) return save(load(argv[2]), argv[3]) && eg_error() == EG_OK ? 0 : 1;
    int64_t n = argc > 3 ? atoll(argv[3]) : -1;
    eg_tensor *x = eg_variable(eg_full(EG_INT64, EG_SHAPE(20000), (double)n), "x");
    eg_checkpoint *c = eg_checkpoint_new(.keep = 2);
    bool ok = eg_checkpoint_track(c, "x", x) && eg_checkpoint_track_number(c, "n", &n);
    if (!strcmp(argv[1], "save")) return ok && eg_checkpoint_save(c, argv[2]) ? 0 : 1;
    const char *path = eg_checkpoint_latest(argv[2]);
    if (!ok || !path || !eg_checkpoint_restore(c, path) || !eg_checkpoint_assert_consumed(c)) return 1;
    for (int i = 0; i < 20000; i++) if (((const int64_t *)eg_data(x))[i] != n) return 1;
    printf("%lld\n", (long long)n);
    return 0;
}
END
cat >"$T/numpy_files.py" <<'END'
import subprocess, sys
import numpy as np

T, what = sys.argv[1], sys.argv[2]
r = np.random.default_rng(1)
codes = "f4 f8 f2 i4 i8 u1 b1".split()                   # the same in and out
wider = {"i1": "i4", "i2": "i4", "u2": "i4", "u4": "i8", "u8": "i8"}


def convert(a, b, *more):
    subprocess.run([T + "/tool", "convert", f"{T}/{a}", f"{T}/{b}", *more], check=True)
    return f"{T}/{b}"


def some(code, *shape):
    x = r.standard_normal(shape) * 50
    return (abs(x) if code[0] in "ub" else x).astype(code if code != "b1" else "?")


def arrays():
    a = {c: some(c, 3, 5) for c in codes + list(wider)}
    a |= {"scalar": np.float32(2.5), "empty": np.zeros((0, 3), "i4"), "long/name \u00e9": some("f8", 1000), "rank 8": some("u1", 1, 2, 1, 2, 1, 2, 1, 2)}
    a |= {"columns": np.asfortranarray(some("f4", 3, 4)), "big": some("f4", 4).astype(">f4"), "columns3": np.asfortranarray(some("i4", 2, 3, 4))}
    return {k: np.asarray(v) for k, v in a.items()}


def same(got, want):
    for k, v in want.items():
        code = v.dtype.str[1:]
        assert got[k].dtype == np.dtype(wider.get(code, code)), (k, got[k].dtype)
        assert got[k].shape == v.shape and np.array_equal(got[k], v), k
    assert set(want) <= set(got)


def npy():
    for k, v in arrays().items():
        for version in (1, 0), (2, 0), (3, 0):
            with open(T + "/in.npy", "wb") as f: np.lib.format.write_array(f, v, version=version)
            same({k: np.load(convert("in.npy", "out.npy"), allow_pickle=False)}, {k: v})


def npz(save=np.savez):
    a = arrays()
    save(T + "/in.npz", **a)
    same(np.load(convert("in.npz", "out.npz"), allow_pickle=False), a)
    same(np.load(convert("in.npz", "wide.npz", "zip64"), allow_pickle=False), a)
    same(np.load(convert("wide.npz", "back.npz"), allow_pickle=False), a)


def compressed():
    npz(np.savez_compressed)


def safetensors():
    import safetensors
    from safetensors.numpy import load_file, save_file
    a = {k: np.ascontiguousarray(v.astype(v.dtype.newbyteorder("="))) if v.shape else v for k, v in arrays().items()}
    save_file(a, T + "/in.safetensors", metadata={"note": "a \"b\" \u00e9"})
    same(load_file(convert("in.safetensors", "out.safetensors")), a)
    with safetensors.safe_open(T + "/out.safetensors", "numpy") as f: assert f.metadata() == {"note": "a \"b\" \u00e9"}, f.metadata()
    same(np.load(convert("in.safetensors", "s.npz")), a)
    same(load_file(convert("s.npz", "t.safetensors")), a)


{"npy": npy, "npz": npz, "compressed": compressed, "safetensors": safetensors}[what]()
END
tool() { $CC -std=c11 -w -O0 -DEAGER_STATIC $OPTIONS -I. "$T/tool.c" -o "$T/tool" $OPTION_LIBS $LIBS; }
tool >"$T/tool.log" 2>&1                             # whichever checks are wanted
check the_tool_builds sh -c 'cat "$1/tool.log"; test -x "$1/tool"' sh "$T"
python_has() { [ -n "$PYTHON" ] && "$PYTHON" -c "import $1" 2>/dev/null; }
for what in npy npz compressed safetensors; do
    name=${what}_with_python
    case $what in compressed) case $OPTIONS in *EAGER_ZLIB*) ;; *) skip $name "no zlib"; continue ;; esac ;; esac
    if ! python_has numpy; then skip $name "no Python with NumPy"
    elif [ $what = safetensors ] && ! python_has safetensors.numpy; then skip $name "no Python with safetensors"
    else check $name "$PYTHON" "$T/numpy_files.py" "$T" $what; fi
done

# A save ends at the n-th call of each kind that matters, for every n (strace counts each kind by itself): what is found as the latest
# checkpoint is whole, the one before or the new one.
killed() {
    rm -rf "$T/killed"
    "$T/tool" save "$T/killed/c" 1 && "$T/tool" save "$T/killed/c" 2 || return
    last=2
    for kind in openat write fsync close '?rename,?renameat,?renameat2'; do
        n=0 died=1
        while [ $died = 1 ] && [ $n -lt 1000 ]; do
            n=$((n + 1)) died=0
            { strace -qq -o /dev/null -e trace=all -e "inject=$kind:signal=SIGKILL:when=$n" "$T/tool" save "$T/killed/c" $((last + 1)); } 2>/dev/null || died=1
            now=$("$T/tool" latest "$T/killed/c") || { echo "killed at $kind $n: no checkpoint is left"; return 1; }
            case $now in $last | $((last + 1))) last=$now ;; *) echo "killed at $kind $n: $now after $last"; return 1 ;; esac
        done
        echo "killed at $((n - 1)) calls of $kind"
        [ $died = 0 ] && [ $n -gt 1 ] || return
    done
}
strace_works() { strace -qq -o /dev/null -e inject=none true 2>/dev/null || strace -qq -o /dev/null true 2>/dev/null; }
if strace_works; then check saves_killed_at_each_system_call killed
else skip saves_killed_at_each_system_call "no strace, or it may not trace"; fi
finish
