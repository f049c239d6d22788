// The random generator against the answers that its authors publish (Random123, kat_vectors). Compiled with a private copy of
// the library, for most of them need counters that only its inside can be given; without test.h, so that little of it is used.
#define EAGER_IMPLEMENTATION
#define EAGER_STATIC
#include "eager.h"
#include <stdio.h>

int main(void) {
    static const uint32_t rows[3][10] = {                    // counter, key, answer
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
    int wrong = 0;
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        egi_philox(out, rows[i], rows[i] + 4);
        for (int k = 0; k < 4; k++) {
            if (out[k] == rows[i][6 + k]) continue;
            printf("philox: answer %d, word %d: expected %08x, got %08x\n", i, k, (unsigned)rows[i][6 + k], (unsigned)out[k]);
            wrong++;
        }
    }
    printf("philox: %d passed, %d failed, 0 skipped\n", wrong == 0, wrong > 0);
    return wrong > 0;
}
