// examples/letters.h: a text as numbers, for the examples that learn to write: each letter is its place in the list of
// all letters that occur, in the order of their bytes.
#ifndef EXAMPLES_LETTERS_H
#define EXAMPLES_LETTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t *ids;                              // the text
    int64_t length;
    int count;                                 // of different letters
    char letter[256];                          // the letter of each id
    int id[256];                               // the id of each letter; -1: does not occur
} letters;

static inline bool letters_from(letters *l, const char *text, int64_t length) {
    l->count = 0;
    l->length = length;
    l->ids = malloc((size_t)(length > 0 ? length : 1) * sizeof *l->ids);
    if (!l->ids) return false;
    for (int c = 0; c < 256; c++) l->id[c] = -1;
    for (int64_t i = 0; i < length; i++) l->id[(unsigned char)text[i]] = 0;
    for (int c = 0; c < 256; c++)
        if (l->id[c] == 0) l->letter[l->id[c] = l->count++] = (char)c;
    for (int64_t i = 0; i < length; i++) l->ids[i] = l->id[(unsigned char)text[i]];
    return true;
}
// A text file, of at most 2 GB; false if it cannot be read.
static inline bool letters_read(letters *l, const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    char *text = NULL;
    long length = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    bool ok = length > 0 && fseek(f, 0, SEEK_SET) == 0 && (text = malloc((size_t)length)) &&
              fread(text, 1, (size_t)length, f) == (size_t)length;
    fclose(f);
    ok = ok && letters_from(l, text, length);
    free(text);
    return ok;
}
static inline void letters_free(letters *l) { free(l->ids); }

// A tale that goes round: small enough to be learned in seconds.
static const char letters_tale[] =
    "The river runs down from the hill to the mill, and the mill turns slow when the river is low.\n"
    "The miller wakes up when the mill goes around, and the sound of the stones is the sound of the ground.\n"
    "The ground is asleep till the rain comes down, and the rain comes down on the hill and the town.\n"
    "The town is awake when the bell rings three, and the bell rings three when the tide leaves the sea.\n"
    "The sea sends the wind, and the wind sends the rain, and the rain fills the river that runs on the plain.\n"
    "The plain gives the grain, and the grain fills the mill, and the mill stands still at the foot of the hill.\n"
    "The hill holds the snow till the spring lets it go, and the snow feeds the river that runs there below.\n"
    "Below in the town they are baking the bread, and the baker is up when the rest are in bed.\n"
    "The bread goes to market, the market to town, and the price of the bread goes up and comes down.\n"
    "Down by the water the fishermen wait for the tide and the wind, and the wind is late.\n"
    "Late in the evening the boats come home, and the wake of the boats is a ribbon of foam.\n"
    "The foam on the water is white as the snow, and the snow on the hill is where rivers grow.\n"
    "So round goes the water and round goes the mill, and round goes the bread from the town to the hill,\n"
    "and round goes the story, for nothing stands still, but the river runs down from the hill to the mill.\n";

#endif
