# awk -f tests/core/nulls.awk tests/core/nulls.c eager.h: C that calls every public function of eager.h with NULLs, made from the declarations
# (tests/run.sh writes it to .build/nulls.h, tests/core/nulls.c includes it). A type's valid value is what valid_TYPE() of tests/core/nulls.c
# returns, a star of the type written p and const c; of a pointer type that has none only NULL is tried.
FILENAME ~ /nulls\.c$/ { while (match($0, /valid_[A-Za-z0-9_]+\(void\)/)) { known[substr($0, RSTART, RLENGTH - 6)] = 1; $0 = substr($0, RSTART + RLENGTH) } next }
FNR == 1 { print "// Made by tests/core/nulls.awk from the declarations of eager.h." }
/^#if .*defined\(EAGER_IMPLEMENTATION\)/ { exit }
reading { line = line " " $0 }
/^EAGER_API .*eg_[a-z0-9_]+\(/ { line = $0; reading = 1 }
reading && /;/ { reading = 0; declaration(line) }

function declaration(text,    name, i, depth, c, part) {
    sub(/;.*/, "", text); sub(/ *__attribute__.*/, "", text); gsub(/ EGI_DEFAULT\([a-z0-9_]*\)/, "", text); gsub(/ +/, " ", text)
    match(text, /eg_[a-z0-9_]+\(/)
    name = substr(text, RSTART, RLENGTH - 1)
    text = substr(text, RSTART + RLENGTH)
    sub(/\)$/, "", text)
    n = 0
    if (text != "void") {
        for (i = 1; i <= length(text); i++) {
            c = substr(text, i, 1)
            if (c == "(") depth++
            if (c == ")") depth--
            if (c == "," && !depth) { parameter(part); part = "" } else part = part c
        }
        parameter(part)
    }
    if (type[n] == "...") return                     # eg_raise: tests/core/nulls.c calls it itself
    call(name)
}
function parameter(text) {
    sub(/^ /, "", text)
    n++
    if (text == "...") { type[n] = text; return }
    if (match(text, /\(\*[a-z_]+\)/)) {              # a function: its name stands in the middle
        called[n] = substr(text, RSTART + 2, RLENGTH - 3)
        sub(/\(\*[a-z_]+\)/, "(*)", text)
        type[n] = text
        return
    }
    match(text, /[a-z_A-Z0-9]+$/)
    called[n] = substr(text, RSTART)
    type[n] = substr(text, 1, RSTART - 1)
    sub(/ $/, "", type[n])
}
function call(name,    i, j, k, v, options, arguments, bit, pointers, lengths, checks, length_of, length_before) {
    printf "static void nulls_%s(unsigned null, int n, int only) {\n    (void)null, (void)n, (void)only;\n", name
    for (i = 1; i <= n; i++) if (is_length(i)) length_of[i] = lengths++
    for (i = 1; i <= n; i++) {
        arguments = arguments (i > 1 ? ", " : "") "a" i
        v = type[i]
        if (v ~ /_options$/) options = 1
        if (v == "eg_list") {                        # its array and its length in one
            bit[i] = pointers++
            length_of[i] = lengths++
            printf "    eg_list a%d = nulls_list(null >> %d & 1, only < 0 || only == %d ? n : 2);\n", i, bit[i], length_of[i]
            checks = checks sprintf(" { %d, %d },", bit[i], length_of[i])
        } else if (v ~ /\(\*\)/) {
            bit[i] = pointers++
            sub(/\(\*\)/, "(*a" i ")", v)
            printf "    %s = NULL;\n", v
        } else if (v ~ /\*$/) {
            bit[i] = pointers++
            k = v
            gsub(/const/, "c", k); gsub(/\*/, "p", k); gsub(/[^a-zA-Z0-9_]/, "", k)
            if (("valid_" k) in known) printf "    %s%sa%d = null >> %d & 1 ? NULL : valid_%s();\n", v, v ~ /\*$/ ? "" : " ", i, bit[i], k
            else printf "    %sa%d = NULL;\n", v, i
        } else if (v == "size_t") printf "    size_t a%d = n > 0 ? (size_t)n : 0;\n", i
        else if (v == "eg_shape") printf "    eg_shape a%d = EG_SHAPE(only < 0 ? n : 1);\n", i
        else if (v ~ /^(int|int64_t|double|float|bool|uint64_t|unsigned long long)$/) printf "    %s a%d = (%s)(only < 0 ? n : %s);\n", v, i, v, (i in length_of) ? "only == " length_of[i] " ? n : 1" : "0"
        else if (v ~ /^eg_(dtype|error_code|initializer|precision|mode)$/) printf "    %s a%d = (%s)(only < 0 ? n : 0);\n", v, i, v
        else printf "    %s a%d;\n    memset(&a%d, 0, sizeof a%d);\n", v, i, i, i
    }
    # By its macro, which notes the place; where the macro wants options by name, or a list, by what that is made of.
    if (options || name ~ /^eg_compile/) printf "#ifdef %s\n    (void)EGI_CALL(%s, %s);\n#else\n    (void)(%s)(%s);\n#endif\n}\n", name, name, arguments, name, arguments
    else printf "    (void)%s(%s);\n}\n", name, arguments
    # Which list has which length: those right before it, and what is written to behind it.
    for (i = 1; i <= n; i++) {
        if ((i in length_of) && type[i] != "eg_list") {
            for (j = i - 1; j > 0 && is_list(j, called[i]) && (j == i - 1 || called[i] != "capacity"); j--) checks = checks sprintf(" { %d, %d },", bit[j], length_of[i])
            length_before = length_of[i]
            for (j = i + 1; j <= n && !(j in length_of); j++) if (type[j] == "eg_tensor **" && !is_length(j + 1)) checks = checks sprintf(" { %d, %d },", bit[j], length_of[i])
        }
    }
    rows = rows sprintf("    { \"%s\", nulls_%s, %d, %d, {%s { -1, -1 } } },\n", name, name, pointers, lengths, checks)
}
function is_length(i) { return i <= n && i > 1 && type[i] ~ /^(int|int64_t)$/ && called[i] ~ /^(n|m|n_.*|n[xy]|count|capacity)$/ && (is_list(i - 1, called[i]) || (called[i] == "n" && type[n] == "eg_tensor **")) }
function is_list(i, length_name) { return called[i] != "output_gradients" && (type[i] ~ /\*(const )?\*$/ || type[i] ~ /^const (eg_|double).* \*$/ || (length_name == "capacity" && type[i] ~ /\*$/)) }
END {
    print "static const nulls_function nulls_functions[] = {"
    printf "%s};\n", rows
}
