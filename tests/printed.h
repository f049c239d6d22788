// What the library prints, as a string. After test.h.
static char printed[8192];
static void keep_print(const char *text, void *user) {
    (void)user;
    size_t at = strlen(printed);
    snprintf(printed + at, sizeof printed - at, "%s", text);
}
static inline const char *summary_of(eg_layer *layer) {
    printed[0] = 0;
    eg_set_printer(keep_print, NULL);
    eg_layer_summary(layer);
    eg_set_printer(NULL, NULL);
    return printed;
}
