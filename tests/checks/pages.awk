# What the pages name is there: awk -f tests/checks/pages.awk eager.h OTHERS... PAGES.md...
#   a chapter is named by the title in its banner, in capitals (THE OP TABLE), never by its number; in a table's column `chapter`
#   stand titles alone, with `;` between them, and the names in code beside them are names in these chapters
#   eg_..., egi_..., EG_..., EGI_..., EAGER_...: a word of eager.h or of OTHERS (the tests, the examples)
#   links lead to files and headings
#   what eg_print writes of a single number ends in a digit: 1.0 (compare.awk takes 1. for the same)
function complain(what) { print FILENAME ":" FNR ": " what; bad = 1 }
# The titles at the start of a run of capitals; what no title begins is one only where it has two words, or `chapter` stands before it.
function titles_in(run, named,    end, chunk) {
    while (run != "") {
        for (end = length(run); end > 0; end--) if (substr(run, 1, end) in title && (end == length(run) || substr(run, end + 1) ~ /^[,:;]? /)) break
        if (!end) {
            chunk = run
            sub(/[,:] .*/, "", chunk)
            if (named || (chunk ~ / / && chunk !~ /NVIDIA/)) { complain("no chapter is called " chunk); return }
            end = length(chunk)
        }
        run = substr(run, end + 1)
        sub(/^[,:;]? */, "", run)
        named = 0
    }
}
function prose(text,    run, before) {
    gsub(/`[^`]*`/, "`", text)
    if (text ~ /[Cc]hapters?,? +[0-9]/) complain("a chapter is named by its title, not by its number: " text)
    while (match(text, /[A-Z][A-Z]+([,:]? [A-Z][A-Z]+)*/)) {
        run = substr(text, RSTART, RLENGTH)
        before = substr(text, 1, RSTART - 1)
        text = substr(text, RSTART + RLENGTH)
        if (text !~ /^[a-z0-9_]/ && before !~ /[a-zA-Z0-9_]$/) titles_in(run, before ~ /[Cc]hapters? $/)
    }
}
function names(text,    name) {
    while (match(text, /(^|[^A-Za-z0-9_])(eg|egi|EG|EGI|EAGER)_[A-Za-z0-9_]+/)) {
        name = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        sub(/^[^A-Za-z]/, "", name)
        if (!(name in word) && name !~ /_$/) complain("nothing is called " name)
    }
}
function row(line,    cells, n, i, k, parts, m, code, name, found, there) {
    n = split(line, cells, /\|/)
    for (i = 2; i < n; i++) gsub(/^ +| +$/, "", cells[i])
    if (!in_table) {
        in_table = 1
        column = 0
        for (i = 2; i < n; i++) if (cells[i] == "chapter") column = i
        return
    }
    if (!column || cells[column] ~ /^-+$/) return
    m = split(cells[column], parts, /; /)
    for (k = 1; k <= m; k++) if (!(parts[k] in title)) complain("no chapter is called " parts[k])
    code = ""
    for (i = 2; i < n; i++) if (i != column) code = code " " cells[i]
    while (match(code, /`[^`]*`/)) {
        name = substr(code, RSTART + 1, RLENGTH - 2)
        code = substr(code, RSTART + RLENGTH)
        if (name !~ /^(eg|egi|EG|EGI)_/) continue
        there = 0
        for (k = 1; k <= m; k++) if (name ~ /\(/ ? index(body[parts[k]], name) : (parts[k], name) in inside) there = 1
        if (!there) complain(name " is not in " cells[column])
    }
}
function slug(text) {
    text = tolower(text)
    gsub(/[^a-z0-9 _-]/, "", text)
    gsub(/ /, "-", text)
    return text
}
function links(text,    link, file, at) {
    while (match(text, /\]\([^)]*\)/)) {
        link = substr(text, RSTART + 2, RLENGTH - 3)
        text = substr(text, RSTART + RLENGTH)
        if (link ~ /^[a-z]+:/) continue
        at = index(link, "#")
        file = at ? substr(link, 1, at - 1) : link
        if (file == "") file = FILENAME
        else if (FILENAME ~ /\//) { file = folder file; while (file ~ /[^\/]+\/\.\.\//) sub(/[^\/]+\/\.\.\//, "", file) }
        wanted[file, at ? substr(link, at + 1) : ""] = FILENAME ":" FNR
    }
}

FNR == 1 && text != "" { prose(text); text = "" }
FNR == 1 { page = FILENAME ~ /\.md$/; fenced = ""; in_table = 0; folder = FILENAME; sub(/[^\/]*$/, "", folder) }
!page && /^\/\/# / {
    chapter = $0
    sub(/^\/\/# *[0-9]+ */, "", chapter)
    sub(/ *-*$/, "", chapter)
    title[chapter] = 1
}
!page {
    line = $0
    while (match(line, /(eg|egi|EG|EGI|EAGER)_[A-Za-z0-9_]+/)) {
        word[substr(line, RSTART, RLENGTH)] = inside[chapter, substr(line, RSTART, RLENGTH)] = 1
        line = substr(line, RSTART + RLENGTH)
    }
    if ($0 ~ /^EGI_[A-Z]+\(/) body[chapter] = body[chapter] $0 "\n"
    if (match($0, /^EGI_GRAD\([a-z0-9_]+/)) word["egi_grad_" substr($0, 10, RLENGTH - 9)] = 1
    next
}
/^```/ { fenced = fenced ? "" : $0; output = fenced == "```text"; next }
/^ *\/\/ output:/ { output = 1 }
/^#+ / && fenced == "" { heading = $0; sub(/^#+ /, "", heading); anchor[FILENAME, slug(heading)] = 1 }
FILENAME ~ /reference\.md$/ { next }                  # made from the header
!output { names($0) }
output && /[0-9]\. +shape=\(\)/ { complain("eg_print writes a digit behind the point of a single number: " $0) }
fenced != "" { next }
{ links($0) }
match($0, /<a name="[^"]*"/) { anchor[FILENAME, substr($0, RSTART + 9, RLENGTH - 10)] = 1 }
/^\|/ { row($0) }
!/^\|/ { in_table = 0 }
/^ *$/ || /^[|#]/ { prose(text); text = "" }
/^[|#]/ { prose($0); next }
{ text = text " " $0 }
END {
    if (text != "") prose(text)
    for (link in wanted) {
        split(link, part, SUBSEP)
        if (system("test -e '" part[1] "'")) { print wanted[link] ": no file " part[1]; bad = 1 }
        else if (part[2] != "" && !((part[1], part[2]) in anchor)) { print wanted[link] ": no heading " part[1] "#" part[2]; bad = 1 }
    }
    exit bad
}
