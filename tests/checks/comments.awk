# awk -f tests/checks/comments.awk eager.h: the percentage of the implementation's lines (blank ones apart) that are comments, alone and with those at line ends.
/^#define EGI_IMPLEMENTED$/ { on = 1 }
on && NF { lines++; alone += /^ *\/\//; all += /\/\/ / }
END { printf "%d lines: %.1f%% are comments, %.1f%% hold one\n", lines, 100 * alone / lines, 100 * all / lines }
