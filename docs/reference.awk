# awk -f docs/reference.awk eager.h: docs/reference.md, the public part of the header as a page. ./build.sh docs runs it, a test holds
# the page against it. The header's text is taken as it stands, paragraph by paragraph (blank lines part them): one of comments alone
# becomes prose, any other a block of code; plumbing (conditionals, macros over functions, EGI_ and egi_, what is for C++ alone) is
# left out, and with it a comment that has nothing else below it. A function of a list, eg_..._of, has the macro before it that takes
# the list's members, for that is what programs say.
function flush(    i, code) {
    for (i = 1; i <= lines; i++) if (paragraph[i] !~ /^\/\//) code = i
    if (dropped) lines = code
    if (lines) print code ? "\n```c fragment" : ""
    for (i = 1; i <= lines; i++) {
        if (!code) sub(/^\/\/ ?/, "", paragraph[i])
        print paragraph[i]
    }
    if (lines && code) print "```"
    lines = dropped = 0
}
function remember(line,    name) {         # a function's declaration: for the index
    if (line !~ /^([a-zA-Z].*)?eg_[a-z0-9_]+\)?\(/ || line ~ /^typedef/) return
    match(line, /eg_[a-z0-9_]+\)?\(/)
    name = substr(line, RSTART, RLENGTH)
    sub(/\)?\($/, "", name)
    if (!(name in chapter_of)) { names[++count] = name; chapter_of[name] = anchor }
}
BEGIN {
    while ((getline line < ARGV[1]) > 0) {
        if (line ~ /^#define eg_[a-z0-9_]+\(\.\.\.\) \\$/ && (getline more < ARGV[1]) > 0) { sub(/ *\\$/, more, line); gsub(/ +/, " ", line) }
        if (line ~ /^#define eg_[a-z0-9_]+\(\.\.\.\) eg_[a-z0-9_]+_of\(/) { split(line, word, /[ (]/); written[word[2] "_of"] = word[2] }
    }
    close(ARGV[1])
    print "# Reference"
    print "\nEvery declaration of `eager.h` with what its comment says, in the header's order; at the end, [all functions by name](#by-name)."
    print "This page is made from the header by `./build.sh docs`: change the comment there, not here."
}
/^#ifdef EAGER_IMPLEMENTATION|^#if.*defined.*EAGER_IMPLEMENTATION/ { exit }
continued { continued = /\\$/; next }
/^ *# *(if|ifdef|ifndef)/ { depth++; if (!hidden && /ifdef __cplusplus/) hidden = depth; next }
/^ *# *else/ { if (hidden == depth) hidden = 0; next }
/^ *# *endif/ { if (hidden == depth) hidden = 0; depth--; next }
hidden { next }
/^\/\/# / {
    flush()
    title = $0
    sub(/^\/\/# */, "", title); sub(/[ -]+$/, "", title); gsub(/  +/, " ", title)
    anchor = tolower(title); gsub(/[^a-z0-9 -]/, "", anchor); gsub(/ /, "-", anchor)
    print "\n## " title
    next
}
!title { next }
/^ *# *define EG_ERRORS/ { table = 1 }
table { paragraph[++lines] = $0; table = /\\$/; next }
/^ *# *define eg_(constant(_of)?|with_device)\(/ {       # three that are macros alone
    continued = /\\$/
    match($0, /eg_[a-z_]*\([^)]*/)
    $0 = (/eg_with/ ? "" : "eg_tensor *") substr($0, RSTART, RLENGTH) ");"
    sub(/\.\.\.\);/, "values...);")
    if (!hidden) { paragraph[++lines] = $0; remember($0) }
    next
}
/^ *# *define EG_/ {                       # a macro's name and arguments, not its body
    continued = /\\$/
    if (match($0, /define EG_[A-Z0-9_]*\([^)]*\)/)) $0 = "#" substr($0, RSTART, RLENGTH)
    sub(/ *\\$/, "")
    sub(/ +__attribute__.*/, "")
    paragraph[++lines] = $0
    next
}
dropping { if (/^}/ || (dropping == ";" && /;( *\/\/.*)?$/)) dropping = ""; next }       # the rest of what is left out, over several lines
/^[a-zA-Z].*egi_[a-z0-9_]+\(.*[{,]$/ && !/^typedef/ { dropping = /\{$/ ? "}" : ";" }
/^ *#/ || /^EGI_[A-Z_]*\(/ || /^[a-zA-Z].*egi_[a-z0-9_]+\(/ || /^(typedef struct egi_raw|enum \{ EGI_)/ { continued = /\\$/; dropped = 1; next }
(/^extern "C"/ || /^}$/) && !inside { next }
/^[ \t]*$/ && !inside { flush(); next }
{
    if (sub(/^EAGER_API /, "")) declares = 1
    else if (declares && /^            /) $0 = substr($0, 11)
    if (/;/) declares = 0
    gsub(/ EGI_DEFAULT\([a-z0-9_]*\)/, "")
    sub(/ __attribute__\(\(.*\)\);/, ";")
    if (match($0, /eg_[a-z0-9_]+_of\(/) && (substr($0, RSTART, RLENGTH - 1) in written)) {
        line = substr($0, 1, RSTART - 1) written[substr($0, RSTART, RLENGTH - 1)]
        match($0, /[a-z]+, int n\)/)
        line = line "(" substr($0, RSTART, RLENGTH - 8) "...);"
        paragraph[++lines] = line
        remember(line)
    }
    paragraph[++lines] = $0
    inside += gsub(/\{/, "{") - gsub(/\}/, "}")
    remember($0)
}
END {
    flush()
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && names[j] < names[j - 1]; j--) { name = names[j]; names[j] = names[j - 1]; names[j - 1] = name }
    print "\n## By name\n"
    for (i = 1; i <= count; i++) printf "%s[`%s`](#%s)", (i > 1 ? " ·\n" : ""), names[i], chapter_of[names[i]]
    print ""
}
