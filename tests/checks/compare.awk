# awk -f tests/checks/compare.awk EXPECTED OUTPUT: whether a program printed what is expected of it; says where not.
# White space does not count. A number in EXPECTED stands for any within 1e-4 * max(1, |number|); a line `# tolerance 0.01` changes
# that for the lines below it. {0.9..1.1} is a number in that range, {*} any number, {time} one
# with a unit of time, a line of three dots any lines.
BEGIN { tolerance = 1e-4; number = "^[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?" }
{ sub(/\r$/, "") }
FNR == NR && /^# tolerance / { tolerance = $3; next }
FNR == NR { want[++wants] = $0; tol[wants] = tolerance; next }
{ got[++gots] = $0 }

function same(w, g, tol,    a, b, range) {
    for (;;) {
        sub(/^[ \t]+/, "", w); sub(/^[ \t]+/, "", g)
        if (w == "" || g == "") return w == g
        if (match(w, /^\{(\*|time|[-+.0-9eE]*\.\.[-+.0-9eE]*)\}/)) {
            range = substr(w, 2, RLENGTH - 2); w = substr(w, RLENGTH + 1)
            if (!match(g, number)) return 0
            b = substr(g, 1, RLENGTH) + 0; g = substr(g, RLENGTH + 1)
            if (range == "time" && !sub(/^ *(us|ms|s|min)/, "", g)) return 0
            if (range == "*" || range == "time") continue
            a = index(range, "..")
            if (b < substr(range, 1, a - 1) + 0 || b > substr(range, a + 2) + 0) return 0
        } else if (match(w, number)) {
            a = substr(w, 1, RLENGTH) + 0; w = substr(w, RLENGTH + 1)
            if (!match(g, number)) return 0
            b = substr(g, 1, RLENGTH) + 0; g = substr(g, RLENGTH + 1)
            if ((a > b ? a - b : b - a) > tol * (a > 1 ? a : a < -1 ? -a : 1)) return 0
        } else {
            if (substr(w, 1, 1) != substr(g, 1, 1)) return 0
            w = substr(w, 2); g = substr(g, 2)
        }
    }
}

END {
    while (wants && want[wants] ~ /^[ \t]*$/) wants--          # blank lines at the end do not count
    while (gots && got[gots] ~ /^[ \t]*$/) gots--
    j = 1
    for (i = 1; i <= wants; i++) {
        if (want[i] ~ /^[ \t]*\.\.\.$/) {
            if (i == wants) exit 0
            i++
            while (j <= gots && !same(want[i], got[j], tol[i])) j++
        }
        if (j > gots || !same(want[i], got[j], tol[i])) {
            printf "line %d\n    expected %s\n    got      %s\n", j, want[i], (j > gots ? "(the end)" : got[j])
            exit 1
        }
        j++
    }
    if (j <= gots) { printf "line %d\n    expected (the end)\n    got      %s\n", j, got[j]; exit 1 }
}
