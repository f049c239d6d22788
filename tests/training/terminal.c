// The progress of a fit on a terminal, which a pseudo terminal stands in for: its width, its colors, its letters.
// Through a pipe or a printer it is in training.c.
#define _XOPEN_SOURCE 700
#include "test.h"

#ifndef __linux__
TEST(progress_on_a_terminal) { SKIP("pseudo terminals are used as Linux has them"); }
#else
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

static char shown[1 << 16];
static void set(const char *name, const char *value) {
    if (value) setenv(name, value, 1);
    else unsetenv(name);
}
// Fits a model with stdout on a terminal of so many columns; what that got is in shown afterwards.
static bool fit_on_a_terminal(int columns, eg_progress progress, bool evaluates) {
    int master = posix_openpt(O_RDWR | O_NOCTTY), terminal = -1, out = -1;
    struct winsize size;
    memset(&size, 0, sizeof size);
    size.ws_col = (unsigned short)columns;
    shown[0] = 0;
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0)
        terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    fflush(stdout);
    if (terminal >= 0) out = dup(1);
    if (out < 0 || ioctl(terminal, TIOCSWINSZ, &size) != 0 || dup2(terminal, 1) < 0) return false;
    eg_tensor *x = eg_ones(EG_FLOAT32, EG_SHAPE(8, 2)), *y = eg_zeros(EG_FLOAT32, EG_SHAPE(8, 1));
    eg_layer *model = eg_sequential(eg_layer_dense(1));
    bool right = eg_compile(model, eg_sgd(), eg_mean_squared_error) &&
                 (evaluates ? !isnan(eg_evaluate_arrays(model, x, y, .batch_size = 2, .progress = progress))
                  : eg_fit_arrays(model, x, y, .batch_size = 2, .progress = progress) != NULL);
    fflush(stdout);
    dup2(out, 1);
    eg_layer_release(model);
    fcntl(master, F_SETFL, O_NONBLOCK);
    size_t n = 0;
    for (ssize_t got; n < sizeof shown - 1 && (got = read(master, shown + n, sizeof shown - 1 - n)) > 0;)
        n += (size_t)got;
    shown[n] = 0;
    close(out);
    close(terminal);
    close(master);
    return right;
}
// How wide the widest line is that is drawn over: letters count, colors do not.
static int width_of_lines(void) {
    int widest = 0, now = 0;
    for (const char *p = shown; *p; p++) {
        if (*p == '\033') { while (*p && *p != 'm') p++; continue; }
        if (*p == '\r' && p[1] != '\n') { if (now > widest) widest = now; now = 0; }
        else if (((unsigned char)*p & 0xc0) != 0x80) now++;
    }
    return widest;
}

TEST(progress_on_a_terminal) {
    static const struct { const char *term, *no_color, *all, *ctype, *lang; int columns; bool live, color, blocks,
                          bar; } cases[] = {
        {"xterm", NULL, "C.UTF-8", NULL, NULL, 100, true, true, true, true},
        {"xterm", "1", "C.UTF-8", NULL, NULL, 100, true, false, true, true},
        {"xterm", NULL, "C", NULL, NULL, 100, true, true, false, true},
        {"xterm", NULL, NULL, NULL, NULL, 100, true, true, false, true},
        {"xterm", NULL, "", "en_US.utf8", "C", 100, true, true, true, true},
        {"xterm", NULL, NULL, "", "de_DE.UTF-8", 100, true, true, true, true},
        {NULL, NULL, "C", NULL, NULL, 0, true, true, false, true},  // a terminal that does not know its width has 80
        {"xterm", NULL, "C", NULL, NULL, 200, true, true, false, true},
        {"xterm", NULL, "C", NULL, NULL, 30, true, false, false, false},         // no room for a bar: the numbers, cut
        {"xterm", NULL, "C", NULL, NULL, 12, true, false, false, false},
        // which cannot go back to the start of a line
        {"dumb", NULL, "C.UTF-8", NULL, NULL, 100, false, false, false, false},
    };
    static const char *const names[] = {"TERM", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"};
    char kept[5][200];
    bool had[5];
    for (int k = 0; k < 5; k++) {
        had[k] = getenv(names[k]) != NULL;
        snprintf(kept[k], sizeof kept[k], "%s", had[k] ? getenv(names[k]) : "");
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int evaluates = 0; evaluates < 2; evaluates++) {
            int columns = cases[i].columns ? cases[i].columns : 80, before = test_fails;
            const char *values[] = {cases[i].term, cases[i].no_color, cases[i].all, cases[i].ctype, cases[i].lang};
            for (int k = 0; k < 5; k++) set(names[k], values[k]);
            CHECK(fit_on_a_terminal(cases[i].columns, EG_PROGRESS_DEFAULT, evaluates));
            if (!evaluates) CHECK_CONTAINS(shown, cases[i].live ? "Epoch 1/1 " : "Epoch 1/1: 4 steps");
            CHECK_CONTAINS(shown, "  loss ");
            CHECK((shown[0] == '\r') == cases[i].live);
            CHECK(width_of_lines() < columns);
            if (!evaluates) {
                CHECK((strstr(shown, "\033[36m") != NULL) == cases[i].color);
                CHECK((strstr(shown, "\xe2\x96\x88") != NULL) == cases[i].blocks);
                CHECK((strstr(shown, cases[i].blocks ? "\xc2\xb7" : "..") != NULL) == cases[i].bar);
            }
            size_t length = strlen(shown);
            CHECK(length > 2 && !strcmp(shown + length - 2, "\r\n"));
            if (test_fails > before) printf("    case %d: %s\n", (int)i, shown);
        }
    CHECK(fit_on_a_terminal(100, EG_PROGRESS_LINES, false));
    CHECK_CONTAINS(shown, "Epoch 1/1: 4 steps");
    CHECK(!strstr(shown, "\rE"));
    CHECK(fit_on_a_terminal(100, EG_PROGRESS_BAR, false));
    CHECK_CONTAINS(shown, "\rEpoch 1/1 ");
    for (int k = 0; k < 5; k++) set(names[k], had[k] ? kept[k] : NULL);
}
#endif
