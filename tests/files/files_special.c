// Paths that are no plain files: pipes without anybody at their other end, devices without an end, links, names that
// others have taken, and what processes that died while they wrote have left. A copy of the library of this file's own
// waits a second for a pipe, not ten, and takes four megabytes for a large piece.
#if defined(__linux__) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L                           // sigaction
#endif
#undef EAGER_CUDA              // this copy of the library knows no GPU
#undef TEST_CUDA
#undef TEST_CUDA_HOST
#define EGI_PIPE_SECONDS 1
#define EGI_PIECE_MOST (4 << 20)
#define EAGER_STATIC
#define EAGER_IMPLEMENTATION
#include "test.h"

#ifndef __linux__
TEST(special_files) { SKIP("they are made as Linux has them"); }
#else
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
int mkfifo(const char *path, mode_t mode);
int symlink(const char *target, const char *path);
int kill(pid_t process, int number);
int ftruncate(int file, off_t size);
ssize_t readlink(const char *path, char *to, size_t n);

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    REQUIRE(f);
    fputs(text, f);
    fclose(f);
}
static bool holds(const char *path, const char *text) {
    char there[200] = "";
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(there, 1, sizeof there - 1, f) : 0;
    if (f) fclose(f);
    there[n] = 0;
    return f && strcmp(there, text) == 0;
}
static const char *copied(char *to, const char *path) { snprintf(to, 4200, "%s", path); return to; }
static char path_buffer[8][4200];

// Elements, -1 on an error.
static int64_t count_of(eg_dataset *d) {
    eg_iterator *it = eg_iterator_new(d);
    eg_tensor *x[EG_MAX_COMPONENTS];
    int64_t n = 0;
    eg_status status;
    while ((status = eg_iterator_next(it, x)) == EG_NEXT) n++;
    eg_iterator_release(it);
    eg_dataset_release(d);
    return status == EG_FAILED ? -1 : n;
}
static bool reads_npy(const char *path) { return eg_load_npy(path) != NULL; }
static bool reads_npz(const char *path) { eg_archive *a = eg_load_npz(path); eg_archive_release(a); return a != NULL; }
static bool reads_safetensors(const char *path) {
    eg_archive *a = eg_load_safetensors(path);
    eg_archive_release(a);
    return a != NULL;
}
static bool reads_idx(const char *path) { return eg_load_idx(path) != NULL; }
static bool reads_bytes(const char *path) { return eg_read_file(path) != NULL; }
static bool reads_lines(const char *path) { return count_of(eg_dataset_text_lines(&path, 1)) >= 0; }
static bool reads_csv(const char *path) {
    return count_of(eg_dataset_csv(&path, 1, .components = { { .columns = "0" } })) >= 0;
}
static bool reads_records(const char *path) { return count_of(eg_dataset_tfrecord(&path, 1)) >= 0; }
static bool (*const readers[])(const char *path) = { reads_bytes, reads_lines, reads_csv, reads_records, reads_idx,
                                                     reads_npy, reads_npz, reads_safetensors };
enum { READERS = sizeof readers / sizeof *readers };

TEST(pipes_without_a_writer) {
    const char *path = copied(path_buffer[0], test_temp("lonely"));
    REQUIRE(mkfifo(path, 0600) == 0);
    for (int k = 1; k < READERS; k += 3) {
        EG_SCOPE;
        double start = now();
        CHECK_ERROR(readers[k](path), EG_ERROR_FILE,
                    "lonely: is a pipe that nobody has opened for writing for 1 seconds");
        CHECK(now() - start > 0.9 && now() - start < 20);
    }
    CHECK_ERROR(eg_save_npy(eg_scalar(1), path), EG_ERROR_FILE,
                "lonely: is a pipe that nobody has opened for reading for 1 seconds");
    struct stat s;
    CHECK(stat(path, &s) == 0 && S_ISFIFO(s.st_mode));
}
// Another process opens the pipe late, says something later still, in two parts, and goes.
static pid_t writer(const char *path, const char *first, const char *second) {
    fflush(stdout);
    pid_t child = fork();
    if (child) return child;
    poll(NULL, 0, 300);
    int file = open(path, O_WRONLY);
    if (*first) poll(NULL, 0, 1500);  // as long as it has it open, it may be silent for longer than is waited for one
    bool ok = file >= 0 && write(file, first, strlen(first)) == (ssize_t)strlen(first);
    if (*second) poll(NULL, 0, 100);
    ok = ok && write(file, second, strlen(second)) == (ssize_t)strlen(second);
    _Exit(ok ? 0 : 1);
}
static void done(pid_t child) {
    int status = 1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}
TEST(pipes_whose_writer_comes_late) {
    const char *path = copied(path_buffer[0], test_temp("late"));
    REQUIRE(mkfifo(path, 0600) == 0);
    pid_t child = writer(path, "one\nt", "wo\nthree");
    CHECK_INT(count_of(eg_dataset_text_lines(&path, 1)), 3);
    done(child);
    child = writer(path, "", "");                            // opens it and says nothing
    CHECK_INT(count_of(eg_dataset_text_lines(&path, 1)), 0);
    CHECK(eg_error() == EG_OK);
    done(child);
    child = writer(path, "a", "bc");
    eg_tensor *x = eg_read_file(path);
    CHECK_TENSOR(x, 0, 'a', 'b', 'c');
    done(child);
}
static void at_signal(int number) { (void)number; }
TEST(signals_do_not_shorten_the_wait) {
    const char *path = copied(path_buffer[0], test_temp("signals"));
    REQUIRE(mkfifo(path, 0600) == 0);
    fflush(stdout);
    struct sigaction quiet, former;  // not by signal(), which may stand back while its function runs
    memset(&quiet, 0, sizeof quiet);
    quiet.sa_handler = at_signal;
    REQUIRE(sigaction(SIGUSR1, &quiet, &former) == 0);
    pid_t child = fork();
    for (int i = 0; !child && i < 20000 && kill(getppid(), SIGUSR1) == 0; i++) poll(NULL, 0, 1);
    if (!child) _Exit(0);
    double start = now();
    CHECK_ERROR(eg_read_file(path), EG_ERROR_FILE, "nobody has opened for writing for 1 seconds");
    CHECK(now() - start > 0.9 && now() - start < 20);
    start = now();
    CHECK_ERROR(eg_save_npy(eg_scalar(1), path), EG_ERROR_FILE, "nobody has opened for reading for 1 seconds");
    CHECK(now() - start > 0.9 && now() - start < 20);
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    sigaction(SIGUSR1, &former, NULL);
}
TEST(open_files_by_their_numbers) {                          // as /dev/stdout is in: program > file
    char path[40];
    const char *real = copied(path_buffer[0], test_temp("opened.npy"));
    int file = open(real, O_WRONLY | O_CREAT, 0600), ends[2];
    REQUIRE(file >= 0 && write(file, "", 0) == 0);
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, k ? "/proc/self/fd/%d" : "/dev/fd/%d", file);
        if (k) CHECK(ftruncate(file, 0) == 0);
        CHECK(eg_save_npy(eg_scalar(3 + k), path));
        CHECK_TENSOR(eg_load_npy(real), 0, 3 + k);
    }
    close(file);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    double start = now();
    // it cannot be opened anew, now or later
    CHECK_ERROR(eg_save_npy(eg_scalar(1), path), EG_ERROR_FILE, "cannot be written: ");
    CHECK(now() - start < 0.9);
    close(ends[0]);
    close(ends[1]);
}
TEST(pipes_without_a_name) {
    char path[40];
    for (int k = 0; k < 2; k++) {
        int ends[2];
        REQUIRE(pipe(ends) == 0 && write(ends[1], "ab\n", 3) == 3 * (ssize_t)1);
        char two[3];
        if (k) CHECK(read(ends[0], two, 3) == 3);              // one that is empty, and whose writer is gone
        close(ends[1]);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        const char *p = path;
        double start = now();
        CHECK_INT(count_of(eg_dataset_text_lines(&p, 1)), 1 - k);
        CHECK(now() - start < 0.9);
        close(ends[0]);
    }
}
TEST(devices_without_an_end) {
    if (access("/dev/zero", R_OK) != 0) SKIP("no /dev/zero");
    for (int k = 0; k < READERS; k++) {
        EG_SCOPE;
        eg_memory_reset_peak();
        int64_t before = eg_memory().live_bytes;
        CHECK(!readers[k]("/dev/zero"));
        CHECK(eg_error() == EG_ERROR_FILE && eg_memory().peak_bytes - before < 40 << 20);
        CHECK_CONTAINS(eg_error_message(), k < 3 ? "/dev/zero: more than 4194304 bytes in one piece" : "/dev/zero: ");
        eg_error_clear();
    }
    int ends[2];
    char path[40];
    fflush(stdout);
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {  // blank lines and commas without an end: no bytes of any field
        close(ends[0]);
        signal(SIGPIPE, SIG_IGN);
        while (write(ends[1], "\n\n\n\n", 4) > 0) { }
        _Exit(0);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    CHECK_ERROR(reads_csv(path), EG_ERROR_FILE, "more than 4194304 bytes in one piece");
    close(ends[0]);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}
// A file without an end of line, such as a sparse one, is not taken into memory as a whole; one with lines may be as
// long as it likes.
TEST(lines_without_an_end) {
    const char *path = test_temp("line");
    for (int lines = 0; lines < 2; lines++) {
        FILE *f = fopen(path, "wb");
        REQUIRE(f != NULL);
        for (int i = 0; i < 9; i++)
            CHECK(fseek(f, (i + 1) << 20, SEEK_SET) == 0 && fputc(lines ? '\n' : 'a', f) != EOF);
        CHECK(fclose(f) == 0);
        if (lines) CHECK_INT(count_of(eg_dataset_text_lines(&path, 1)), 9);
        else
            for (int k = 1; k < 3; k++)
                CHECK_ERROR(readers[k](path), EG_ERROR_FILE,
                            "line: a line of more than 4194304 bytes: is it a text file?");
    }
}

// ---- writing

TEST(links_are_not_followed) {
    const char *path = copied(path_buffer[0], test_temp("linked.npy")),
               *victim = copied(path_buffer[1], test_temp("victim")),
               *part = copied(path_buffer[2], test_temp("linked.npy.part"));
    char target[200] = "";
    write_file(victim, "precious");
    REQUIRE(symlink(victim, part) == 0);                     // the name that was once used
    CHECK(eg_save_npy(eg_scalar(1), path));
    CHECK(holds(victim, "precious") && readlink(part, target, sizeof target) > 0);
    // A link where the file is to stand is replaced; what it pointed to stays as it is.
    CHECK(remove(path) == 0 && symlink(victim, path) == 0);
    CHECK(eg_save_npy(eg_scalar(2), path) && holds(victim, "precious") && readlink(path, target, sizeof target) < 0);
    CHECK_TENSOR(eg_load_npy(path), 0, 2);
    CHECK(remove(part) == 0 && test_left_behind(path) == 0);
}
// Writes half a file and dies, or waits to be told to go on.
static pid_t half_written(const char *path, int from, int to) {
    fflush(stdout);
    pid_t child = fork();
    if (child) return child;
    char c = 1;
    eg_record_writer *w = eg_record_writer_open(path);
    if (!w || !eg_record_writer_write(w, "abc", 3) || write(to, &c, 1) != 1) _Exit(1);
    if (from < 0 || read(from, &c, 1) != 1) kill(getpid(), SIGKILL);
    _Exit(eg_record_writer_close(w) ? 0 : 2);
}
TEST(what_killed_processes_left_goes) {
    const char *path = copied(path_buffer[0], test_temp("left.tfrecord")),
               *other = copied(path_buffer[1], test_temp("left.tfrecord.12345678.part.x"));
    int to[2], from[2];
    char c;
    write_file(other, "stays");
    write_file(path, "old");
    REQUIRE(pipe(to) == 0 && pipe(from) == 0);
    for (int k = 0; k < 3; k++) {                            // three die
        pid_t child = half_written(path, -1, to[1]);
        int status = 0;
        CHECK(read(to[0], &c, 1) == 1 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    }
    CHECK_INT(test_left_behind(path), 3);
    CHECK(holds(path, "old"));
    pid_t alive = half_written(path, from[0], to[1]);        // and one still writes
    CHECK(read(to[0], &c, 1) == 1);
    CHECK_INT(test_left_behind(path), 4);
    eg_record_writer *w = eg_record_writer_open(path);
    CHECK(eg_record_writer_write(w, "xyz", 3) && eg_record_writer_close(w));
    eg_record_writer_release(w);
    CHECK_INT(test_left_behind(path), 1);
    CHECK(holds(other, "stays"));
    CHECK(write(from[1], "g", 1) == 1);
    done(alive);
    CHECK_INT(test_left_behind(path), 0);
    const char *p = path;
    CHECK_INT(count_of(eg_dataset_tfrecord(&p, 1)), 1);
    for (int k = 0; k < 2; k++) { close(to[k]); close(from[k]); }
}
// Checkpoints have a new name each time: what was left of any of a prefix goes with the next save of it.
TEST(what_killed_saves_left_goes) {
    const char *prefix = copied(path_buffer[0], test_temp("saves/p")),
               *left = copied(path_buffer[1], test_temp("saves/p-7.safetensors"));
    const char *other = copied(path_buffer[2], test_temp("saves/pp-7.safetensors"));
    int64_t step = 1;
    int to[2];
    char c;
    eg_checkpoint *checkpoint = eg_checkpoint_new();
    REQUIRE(pipe(to) == 0 && eg_checkpoint_track_number(checkpoint, "step", &step) &&
            eg_checkpoint_save(checkpoint, prefix));
    for (int k = 0; k < 2; k++) {
        pid_t child = half_written(k ? other : left, -1, to[1]);
        CHECK(read(to[0], &c, 1) == 1 && waitpid(child, NULL, 0) == child);
    }
    CHECK(test_left_behind(left) == 1 && test_left_behind(other) == 1);
    CHECK(eg_checkpoint_save(checkpoint, prefix) != NULL);
    CHECK(test_left_behind(left) == 0 && test_left_behind(other) == 1);
    eg_checkpoint_release(checkpoint);
    for (int k = 0; k < 2; k++) close(to[k]);
}
// Many write one path at once: each file is whole, the last one stays.
TEST(writers_of_one_path) {
    const char *path = copied(path_buffer[0], test_temp("shared.npy"));
    pid_t children[4];
    fflush(stdout);
    for (int k = 0; k < 4; k++) {
        if ((children[k] = fork()) != 0) continue;
        bool ok = eg_set_device("cpu:0");                     // a child has no other device of its parent's
        for (int i = 0; i < 50 / test_share && ok; i++) {
            EG_SCOPE;
            ok = eg_save_npy(eg_full(EG_FLOAT32, EG_SHAPE(1000), k), path);
            eg_tensor *x = eg_load_npy(path);
            ok = ok && x && eg_item(eg_reduce_sum(x)) == 1000 * eg_item(eg_index(x, 0));
        }
        _Exit(ok ? 0 : 1);
    }
    for (int k = 0; k < 4; k++) done(children[k]);
    CHECK_INT(test_left_behind(path), 0);
}
#endif
