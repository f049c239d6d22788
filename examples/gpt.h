// examples/gpt.h: a GPT (Radford et al. 2019), built from layers: what 23_gpt.c trains and tests/training/gpt.c holds
// against PyTorch.
//
// Letters become vectors; to each is added what its place in the text means; blocks let every place look back at the
// places before it (attention) and think about what it saw (two dense layers). What comes out at a place says which
// letter comes next.
#ifndef EXAMPLES_GPT_H
#define EXAMPLES_GPT_H

#include <stdint.h>
#include <stdlib.h>

enum { GPT_MAX_BLOCKS = 16 };

// One block: x + attention(norm(x)), then x + dense(gelu(dense(norm(x)))).
typedef struct {
    eg_layer *norm_1, *attention, *norm_2, *up, *down;
} gpt_block;
typedef struct {
    int blocks;
    eg_layer *tokens, *positions, *block[GPT_MAX_BLOCKS], *norm, *head;
} gpt_parts;

static eg_tensor *gpt_block_call(eg_tensor *const *in, void *user) {
    const gpt_block *b = user;
    eg_tensor *x = eg_add(in[0], eg_call(b->attention, eg_call(b->norm_1, in[0])));
    return eg_add(x, eg_call(b->down, eg_call(b->up, eg_call(b->norm_2, x))));
}
static eg_layer *gpt_block_new(int64_t width, int heads) {
    gpt_block *b = malloc(sizeof *b);
    eg_layer *layer = b ? eg_layer_custom("block", gpt_block_call, b) : NULL;
    if (!layer) { free(b); return NULL; }
    eg_layer_on_release(layer, free);
    b->norm_1 = eg_layer_track(layer, "norm_1", eg_layer_layer_normalization());
    b->attention = eg_layer_track(layer, "attention",
                                  eg_layer_multi_head_attention(heads, width / heads, .causal = true));
    b->norm_2 = eg_layer_track(layer, "norm_2", eg_layer_layer_normalization());
    b->up = eg_layer_track(layer, "up", eg_layer_dense(4 * width, .activation = EG_GELU_TANH));
    b->down = eg_layer_track(layer, "down", eg_layer_dense(width));
    return layer;
}

// Letters (batch, time) to the logits of the next letters (batch, time, letters).
static eg_tensor *gpt_call(eg_tensor *const *in, void *user) {
    const gpt_parts *g = user;
    eg_tensor *place = eg_range(EG_INT32, 0, (double)eg_dim(in[0], 1), 1);
    eg_tensor *x = eg_add(eg_call(g->tokens, in[0]), eg_call(g->positions, place));
    for (int i = 0; i < g->blocks; i++) x = eg_call(g->block[i], x);
    return eg_call(g->head, eg_call(g->norm, x));
}
// width must be a multiple of heads; no text is longer than context. Release it with eg_layer_release.
static eg_layer *gpt_new(int64_t letters, int64_t context, int blocks, int64_t width, int heads) {
    gpt_parts *g = malloc(sizeof *g);
    eg_layer *gpt = g ? eg_layer_custom("gpt", gpt_call, g) : NULL;
    if (!gpt) { free(g); return NULL; }
    eg_layer_on_release(gpt, free);
    g->blocks = blocks < GPT_MAX_BLOCKS ? blocks : GPT_MAX_BLOCKS;
    g->tokens = eg_layer_track(gpt, "tokens", eg_layer_embedding(letters, width));
    g->positions = eg_layer_track(gpt, "positions", eg_layer_embedding(context, width));
    for (int i = 0; i < g->blocks; i++) g->block[i] = eg_layer_track(gpt, NULL, gpt_block_new(width, heads));
    g->norm = eg_layer_track(gpt, "norm", eg_layer_layer_normalization());
    g->head = eg_layer_track(gpt, "head", eg_layer_dense(letters, .no_bias = true));
    return gpt;
}

// The mean cross entropy of the next letters y (batch, time), when x (batch, time) has been read.
static eg_tensor *gpt_loss(eg_layer *gpt, eg_tensor *x, eg_tensor *y) {
    return eg_reduce_mean(eg_sparse_softmax_cross_entropy_with_logits(y, eg_call(gpt, x)));
}
// One step on a batch; returns the loss before it, NaN on an error.
static double gpt_step(eg_layer *gpt, eg_optimizer *optimizer, eg_tensor *x, eg_tensor *y) {
    EG_SCOPE;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = gpt_loss(gpt, x, y);
    bool done = eg_tape_minimize(tape, loss, eg_layer_trainable_weights_list(gpt), optimizer);
    return eg_item(done ? loss : NULL);
}

#endif
