# awk -f docs/reference.awk eager.h: docs/reference.md, the public part of the header as a page. ./build.sh docs runs it, a test holds
# the page against it. The header's text is taken as it stands, paragraph by paragraph (blank lines part them): one of comments alone
# becomes prose, any other a block of code; plumbing (conditionals, the macros over functions, what is for C++ alone) is left out.
function flush(    i, line, prose) {
    if (!lines) return
    prose = 1
    for (i = 1; i <= lines; i++) if (paragraph[i] !~ /^\/\//) prose = 0
    if (prose) print ""
    else print "\n```c fragment"
    for (i = 1; i <= lines; i++) {
        line = paragraph[i]
        if (prose) sub(/^\/\/ ?/, "", line)
        print line
    }
    if (!prose) print "```"
    lines = 0
}
function remember(line,    name) {         # a function's declaration: for the index
    if (line !~ /^[a-zA-Z].*eg_[a-z0-9_]+\)?\(/ || line ~ /^typedef/) return
    match(line, /eg_[a-z0-9_]+\)?\(/)
    name = substr(line, RSTART, RLENGTH)
    sub(/\)?\($/, "", name)
    if (!(name in chapter_of)) { names[++count] = name; chapter_of[name] = anchor }
}
BEGIN {
    print "# Reference"
    print "\nEvery declaration of `eager.h` with what its comment says, in the header's order; at the end, [all functions by name](#by-name)."
    print "This page is made from the header by `./build.sh docs`: change the comment there, not here."
}
/^#if.*EAGER_IMPLEMENTATION/ || /^#ifdef EAGER_IMPLEMENTATION/ { exit }
continued { continued = /\\$/; next }
/^ *# *(if|ifdef|ifndef)/ { depth++; if (!hidden && /__cplusplus/ && !/ifndef|!defined/) hidden = depth; next }
/^ *# *(else|elif)/ { if (hidden == depth) hidden = 0; else if (!hidden && /cplusplus/) hidden = depth; next }
/^ *# *endif/ { if (hidden == depth) hidden = 0; depth--; next }
hidden { next }
/^\/\/# / {
    flush()
    title = $0
    sub(/^\/\/# */, "", title); sub(/[ -]+$/, "", title); gsub(/  +/, " ", title)
    anchor = tolower(title); gsub(/[^a-z0-9 -]/, "", anchor); gsub(/ /, "-", anchor)
    print "\n## " title
    started = 1
    next
}
!started { next }
/^ *# *define (EG_|EAGER_)/ { paragraph[++lines] = $0; next }
/^ *#/ { continued = /\\$/; next }
/^extern "C"|^}$/ { if (!inside) next }
/^[ \t]*$/ { if (!inside) { flush(); next } }
{
    paragraph[++lines] = $0
    open = gsub(/\{/, "{"); close_ = gsub(/\}/, "}")
    inside += open - close_
    remember($0)
}
END {
    flush()
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && names[j] < names[j - 1]; j--) { name = names[j]; names[j] = names[j - 1]; names[j - 1] = name }
    print "\n## By name\n"
    for (i = 1; i <= count; i++) printf "%s[`%s`](#%s)", (i > 1 ? " · " : ""), names[i], chapter_of[names[i]]
    print ""
}
