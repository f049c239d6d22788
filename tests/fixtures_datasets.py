# Makes tests/fixtures/csv.txt: CSV texts, as hexadecimal digits, and the fields that Python's csv module finds in them.
#   csv TEXT        then a line `row FIELD FIELD ...` for each row (an empty field is -), or `open`: a quote is never closed
import csv, io, random, sys

def rows(text):
    return [r for r in csv.reader(io.StringIO(text, newline='')) if r]

def main():
    random.seed(5)
    lines, seen = ['# made by tests/fixtures_datasets.py'], set()
    texts = ['a,b\n1,2\n', 'a,b\r\n1,2\r\n', 'a,b\r1,2\r', 'a,b\n\n\n1,2', '"a","b"\n"x,y","l1\nl2"\n', '"a""b",""""\n', 'a"b,c"\n', '"a"b,c\n', ' "a",b\n', ',\n,\n',
             '"l1\r\nl2",x\r\n', '""\n', 'a\n""\nb\n', '"a', 'a,"b\nc', '\n\r\n\r', 'x']
    while len(texts) < 20000:
        n = random.randint(1, 14)
        texts.append(''.join(random.choice('ab,,""\n\r ;') for _ in range(n)))
    for text in texts:
        found, more = rows(text), rows(text + '\nZZZ')
        is_open = more[-1] != ['ZZZ']
        if text in seen or (not is_open and (len({len(r) for r in found}) > 1 or (found and len(found[0]) > 8))):
            continue
        if len(seen) > 40 and (is_open or len(found) < 2) and random.random() < .9:
            continue
        seen.add(text)
        lines.append('csv ' + text.encode().hex())
        if is_open:
            lines.append('open')
        else:
            lines += ['row ' + ' '.join(f.encode().hex() or '-' for f in r) for r in found]
        if len(seen) == 400:
            break
    text = '\n'.join(lines) + '\n'
    path = 'tests/fixtures/csv.txt'
    if sys.argv[1:] == ['check']:
        sys.exit(open(path).read() != text)
    open(path, 'w').write(text)

main()
