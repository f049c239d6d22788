//     cc -O2 -DEAGER_STATIC -I. examples/26_sessions.c -lm -o sessions && ./sessions
//
// Graphs and sessions, the way programs were written before eager execution: inside EG_GRAPH an op is only written
// down; a session runs what it is asked for, as often as it is asked. The values of variables belong to the session.
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <stdio.h>

// A placeholder stands for a value that each run is fed.
static void product(void) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    {
        EG_GRAPH(g);
        eg_tensor *x = eg_placeholder(EG_FLOAT32, EG_SHAPE(2, 2), "x");
        eg_graph_name(eg_matmul(x, x), "y");
    }
    eg_session *session = eg_session_new(g);
    eg_tensor *x = eg_graph_node(g, "x"), *y = eg_graph_node(g, "y");
    eg_feed feed = {x, eg_constant(EG_SHAPE(2, 2), 1, 2, 3, 4)};
    eg_print(eg_session_eval(session, y, &feed, 1));

    eg_set_error_handler(NULL, NULL);                           // no line on stderr for what comes now
    eg_session_eval(session, y, NULL, 0);
    printf("Without a feed: %s\n", eg_error_message());
    eg_error_clear();
    eg_matmul(x, x);
    printf("Eagerly: %s\n", eg_error_message());
    eg_error_clear();
    eg_session_release(session);
    eg_graph_release(g);
}

// Two sessions of one graph count apart. EG_AFTER orders what does not read one another.
static void counters(void) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *count, *next;
    {
        EG_GRAPH(g);
        count = eg_variable(eg_scalar(0), "count");
        eg_tensor *raise = eg_assign_add(count, 1);
        EG_AFTER(raise);
        next = eg_mul(count, 10);                               // reads the variable after it was raised
    }
    eg_session *a = eg_session_new(g), *b = eg_session_new(g);
    eg_session_initialize(a, NULL, 0);
    eg_session_initialize(b, NULL, 0);
    for (int i = 0; i < 3; i++) printf("a %g\n", eg_item(eg_session_eval(a, next, NULL, 0)));
    printf("b %g\n", eg_item(eg_session_eval(b, next, NULL, 0)));
    printf("counts %g and %g\n", eg_item(eg_session_eval(a, count, NULL, 0)),
           eg_item(eg_session_eval(b, count, NULL, 0)));
    eg_session_release(a);
    eg_session_release(b);
    eg_graph_release(g);
    eg_release(count);
}

// A session's variables go into checkpoints as eager ones do: what a session saved, eager code reads.
static void checkpoint(void) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_tensor *w, *assign, *eager = eg_variable(eg_scalar(0), "w");
    {
        EG_GRAPH(g);
        w = eg_variable(eg_scalar(2), "w");
        assign = eg_assign(w, eg_mul(w, 21));
    }
    eg_session *session = eg_session_new(g);
    eg_session_initialize(session, NULL, 0);
    eg_session_eval(session, assign, NULL, 0);
    eg_checkpoint *of_session = eg_checkpoint_new(), *of_program = eg_checkpoint_new();
    eg_checkpoint_track(of_session, "w", eg_session_variable(session, w));
    eg_checkpoint_track(of_program, "w", eager);
    const char *path = eg_checkpoint_save(of_session, "sessions_checkpoint");
    eg_checkpoint_restore(of_program, path);
    printf("eager code reads %g\n", eg_item(eager));
    eg_assign(eager, 7);
    path = eg_checkpoint_save(of_program, "sessions_checkpoint");
    eg_checkpoint_restore(of_session, path);
    printf("the session reads %g\n", eg_item(eg_session_eval(session, w, NULL, 0)));
    eg_checkpoint_release(of_session);
    eg_checkpoint_release(of_program);
    eg_session_release(session);
    eg_graph_release(g);
    eg_release(w);
    eg_release(eager);
}

// A graph that reads its data itself: each run takes one element, until a status says that there is none. Inside
// EG_SESSION what reads a node's value computes it.
static eg_dataset *squares(eg_tensor *const *feed, void *user) {
    (void)user;
    const double n = (double)eg_item_int(feed[0]);
    return eg_dataset_batch(eg_dataset_from_slices(eg_square(eg_range(EG_FLOAT32, 0, n, 1))), 2);
}
static void iterator(void) {
    EG_SCOPE;
    eg_graph *g = eg_graph_new();
    eg_iterator *it = eg_iterator_initializable(squares, NULL);
    eg_spec batch = {EG_FLOAT32, EG_SHAPE(-1)};
    eg_tensor *bound, *begin, *next, *total, *add, *out;
    {
        EG_GRAPH(g);
        bound = eg_placeholder(EG_INT64, EG_SCALAR, "bound");
        begin = eg_graph_iterator_feed(it, &bound, 1);
        eg_graph_next(eg_iterator_handle(it), &batch, 1, &next);
        total = eg_variable(eg_scalar(0), "total");
        add = eg_assign_add(total, eg_reduce_sum(next));
    }
    eg_session *session = eg_session_new(g);
    EG_SESSION(session);
    eg_session_initialize(session, NULL, 0);
    for (int64_t n = 3; n < 6; n += 2) {
        eg_feed feed = {bound, eg_constant_of(EG_INT64, EG_SCALAR, (long long)n)};
        eg_session_eval(session, begin, &feed, 1);
        while (eg_session_next(session, NULL, 0, &add, 1, &out) == EG_NEXT) printf("so far %g\n", eg_item(out));
    }
    eg_print(total);
    eg_session_release(session);
    eg_graph_release(g);
    eg_iterator_release(it);
    eg_release(total);
}

int main(void) {
    product();
    counters();
    checkpoint();
    iterator();
    return eg_error() != 0;
}
