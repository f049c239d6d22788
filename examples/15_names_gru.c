//     cc -O2 -DEAGER_STATIC -I. examples/15_names_gru.c -lm -o names && ./names
//
// Names that nobody has: a GRU reads a list of names, letter by letter, and makes up more of their kind. Names differ
// in length, so that shorter ones are filled up with zeros; a mask keeps the network, and the loss, from looking at
// these. A list of your own, one name a line, can be an argument (32,000 names and 20 epochs make much better ones),
// with epochs:
//     ./names names.txt 20
#define EAGER_IMPLEMENTATION
#include "eager.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 15, STEPS = LONGEST + 1, EDGE = 27, KINDS = 28, UNITS = 64, BATCH = 32, MADE = 10 };

static const char few[] =
    "ada adam adele agnes aida albert alice alma amanda amelia amos anna anton april ariel arthur astrid august aurora "
    "barbara basil beatrice bella bernard bertha bianca boris brenda bruno camilla carl carla carmen caroline "
        "cecilia celia "
    "charles charlotte clara claudia clement conrad cora cyril daisy daniel daphne david deborah delia della diana "
        "dinah "
    "dominic dora doris edgar edith edmund edna eleanor elena eli elias elisa elizabeth ella elsa elvira emanuel "
        "emil emilia "
    "emily emma enid eric erica ernest esther ethel eugene eva evelyn fabian felicia felix fiona flora florence "
        "frances "
    "francis frank freda frederic frieda gabriel gemma george gerald gilbert gina gloria gordon grace greta gustav "
        "gwen "
    "hanna harold harriet harvey hazel hector helen helena henry herbert herman hilda hugo ida ignatius ines ingrid "
        "irene "
    "iris irma isaac isabel isidor ivan ivy jacob janet jasmine jasper jerome joanna joel jonas joseph josephine "
        "judith "
    "julia julian juliet karen karla katherine laura laurence lavinia leah lena leo leonard leonora leopold lilian "
        "lily "
    "linda livia lorenz louis louisa lucas lucia lucian lucy luke lydia mabel magda magnus marcel margaret maria "
        "marian "
    "marina mario marion marlene martha martin mary matilda maud maurice max melanie mercy michael mildred mina "
        "minerva "
    "miranda miriam mona monica muriel nadia naomi nathan nelly nestor nicholas nina noah nora norma norman octavia "
        "olga "
    "oliver olivia ophelia oscar oswald otto pamela patricia paul paula pauline pearl penelope peter petra philip "
        "phoebe "
    "rachel ralph ramona raymond rebecca regina rhoda richard rita robert roland romeo rosa rosalind rose roxana "
        "rudolf "
    "rufus ruth sabina salome samson samuel sandra sara sebastian selma serena sibyl sidney silas simon solomon sonia "
    "sophia stella stephen susan sylvia tabitha tamara teresa thea theodora theodore thomas timothy tobias ursula "
    "valentine valerie vanessa vera verena veronica victor victoria vincent viola virgil virginia vivian walter wanda "
    "wilfred wilhelmina william winifred xenia yolanda yvonne zelda zoe";

typedef struct {
    char (*name)[LONGEST + 1];
    int64_t count;
} list;

static list names_of(const char *words);
static char *read_file(const char *path);
static bool known(const list *names, const char *name) {
    for (int64_t i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0) return true;
    return false;
}

// Letters are 1 to 26, 27 stands at both ends of a name, 0 is nothing: "ada" is 27 1 4 1 27 0 0 ... in a row of STEPS +
// 1.
static eg_tensor *rows_of(const list *names, int64_t from, int64_t count) {
    int32_t *ids = calloc((size_t)count * (STEPS + 1), sizeof *ids);
    for (int64_t i = 0; ids && i < count; i++) {
        int32_t *row = ids + i * (STEPS + 1);
        const char *name = names->name[from + i];
        size_t n = strlen(name);
        row[0] = row[n + 1] = EDGE;
        for (size_t k = 0; k < n; k++) row[k + 1] = name[k] - 'a' + 1;
    }
    eg_tensor *rows = ids ? eg_from_data(EG_INT32, EG_SHAPE(count, STEPS + 1), ids) : NULL;
    free(ids);
    return rows;
}

// How surprised the model is by the next letter, on average over the letters that there are.
static eg_tensor *surprise(eg_layer *model, eg_tensor *rows, bool training) {
    eg_tensor *x = eg_slice(rows, EG_SHAPE(0, 0), EG_SHAPE(-1, STEPS)),
              *next = eg_slice(rows, EG_SHAPE(0, 1), EG_SHAPE(-1, STEPS));
    eg_tensor *each = eg_sparse_softmax_cross_entropy_with_logits(next, eg_call(model, x, .training = training));
    eg_tensor *counts = eg_cast(eg_not_equal(next, 0), EG_FLOAT32);
    return eg_div(eg_reduce_sum(eg_mul(each, counts)), eg_reduce_sum(counts));
}

static double learn(eg_layer *model, eg_optimizer *adam, eg_tensor *rows) {
    EG_SCOPE;
    eg_tape *tape = eg_tape_begin();
    eg_tensor *loss = surprise(model, rows, true);
    eg_tape_minimize(tape, loss, eg_layer_trainable_weights_list(model), adam);
    return eg_item(loss);
}

// Makes up names, all at once: a row of the batch is a name. Each letter is drawn by how likely the model finds it.
static void make_up(eg_layer *const *layer, const list *names) {
    EG_SCOPE;
    char name[MADE][STEPS + 1] = {{0}};
    double id[MADE];
    bool ended[MADE] = {false};
    for (int i = 0; i < MADE; i++) id[i] = EDGE;
    eg_tensor *in[2], *out[2];
    for (int step = 0; step < STEPS; step++) {
        in[0] = eg_call(layer[0], eg_constant_values(EG_INT32, EG_SHAPE(MADE, 1), id, MADE));
        if (!eg_call_multi(layer[1], in, step ? 2 : 1, out, 2)) return;
        in[1] = out[1];
        const float *p = eg_data(eg_softmax(eg_call(layer[2], out[0])));
        for (int i = 0; p && i < MADE; i++, p += KINDS) {
            double u = eg_item(eg_random_uniform(EG_SCALAR));
            int next = 1;                                  // 0 is none
            while (next < EDGE && (u -= p[next]) > 0) next++;
            ended[i] = ended[i] || next == EDGE;
            if (!ended[i]) name[i][step] = (char)('a' + next - 1);
            id[i] = next;
        }
    }
    for (int i = 0; i < MADE; i++) printf(" %s%s", name[i], known(names, name[i]) ? "*" : "");
    putchar('\n');
}

int main(int argc, char **argv) {
    char *file = argc > 1 ? read_file(argv[1]) : NULL;
    int epochs = argc > 2 ? atoi(argv[2]) : 30;
    list names = names_of(file ? file : few);
    if ((argc > 1 && !file) || names.count < 2 * BATCH) {
        fprintf(stderr, "%s: no list of at least %d names\n", argc > 1 ? argv[1] : "names", 2 * BATCH);
        return 1;
    }
    eg_seed(7);
    int64_t held_out = names.count / 10, learned = names.count - held_out;
    eg_tensor *mix = eg_random_permutation(names.count), *all = eg_gather(rows_of(&names, 0, names.count), mix);
    eg_tensor *rows = eg_slice(all, EG_SHAPE(0, 0), EG_SHAPE(learned, -1)),
              *others = eg_slice(all, EG_SHAPE(learned, 0), EG_SHAPE(-1, -1));

    eg_layer *layer[] = {eg_layer_embedding(KINDS, 16, .mask_zero = true),
                         eg_layer_gru(UNITS, .return_sequences = true), eg_layer_dense(KINDS)};
    eg_layer *model = eg_sequential(eg_layer_retain(layer[0]), eg_layer_retain(layer[1]), eg_layer_retain(layer[2]));
    eg_optimizer *adam = eg_adam(.learning_rate = 0.005);
    printf("%lld names, %lld of them kept for testing. Made up at first (* is in the list):\n", (long long)names.count,
           (long long)held_out);
    make_up(layer, &names);

    for (int epoch = 1; epoch <= epochs && !eg_error(); epoch++) {
        EG_SCOPE;
        eg_tensor *order = eg_random_permutation(learned);
        double total = 0;
        int64_t steps = learned / BATCH;
        for (int64_t step = 0; step < steps; step++) {
            EG_SCOPE;
            total += learn(model, adam, eg_gather(rows, eg_slice(order, EG_SHAPE(step * BATCH), EG_SHAPE(BATCH))));
        }
        if (epoch % (epochs < 5 ? 1 : epochs / 5)) continue;
        printf("Epoch %2d: surprised by a letter %.2f, in names not learned %.2f\n", epoch, total / (double)steps,
               eg_item(surprise(model, others, false)));
        make_up(layer, &names);
    }

    eg_layer_release(model);
    for (int i = 0; i < 3; i++) eg_layer_release(layer[i]);
    eg_optimizer_release(adam);
    free(names.name);
    free(file);
    return eg_error() != 0;
}

// Words of letters only; longer ones are left out.
static list names_of(const char *words) {
    list l = {malloc((strlen(words) / 2 + 1) * sizeof *l.name), 0};
    while (l.name && *words) {
        size_t n = 0;
        while (isalpha((unsigned char)words[n])) n++;
        if (n && n <= LONGEST) {
            for (size_t k = 0; k < n; k++) l.name[l.count][k] = (char)tolower((unsigned char)words[k]);
            l.name[l.count++][n] = 0;
        }
        words += n ? n : 1;
    }
    return l;
}

static char *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    long length = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *words = length > 0 ? malloc((size_t)length + 1) : NULL;
    if (f) rewind(f);
    if (words) words[fread(words, 1, (size_t)length, f)] = 0;
    if (f) fclose(f);
    return words;
}
