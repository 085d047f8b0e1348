#!/usr/bin/env python3
"""check-declarations.py [TREE]: lists functions and objects that a header declares although no other file than their own
source uses them: they should be static, or gone. Tests count as users, and so do macros of the header. Not in
interpreter/kernels, whose templates put names together. Exit status 1 if there are any."""
import pathlib
import re
import subprocess
import sys

# A declaration begins in the first column; a definition in a header does not end with ';'.
DECLARED = re.compile(r'^(?:extern )?(?:const |struct |enum |unsigned )*\w+(?: const)?[ *]+(?:const )?(\w+)(?:\(|\[)', re.M)

tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else '.')
names = subprocess.run(['git', '-C', tree, 'ls-files', '*.c', '*.h'], check=True, capture_output=True, text=True).stdout.split()
texts = {name: (tree / name).read_text() for name in names}
users = {}
for name, text in texts.items():
    for word in set(re.findall(r'\w+', text)):
        users.setdefault(word, []).append(name)


def is_lonely(header, word):
    macros = re.findall(r'#define(?:.*\\\n)*.*', texts[header])
    is_static = re.search(rf'\bstatic\b[^;{{]*\b{word}\b', texts[header])
    return len(users[word]) <= 2 and not is_static and not any(re.search(rf'\b{word}\b', macro) for macro in macros)


skipped = ('include/', 'tests/', 'interpreter/kernels/')
found = [f'{header}: no other file uses {word}' for header, text in texts.items()
         if header.endswith('.h') and not header.startswith(skipped)
         for word in DECLARED.findall(text) if is_lonely(header, word)]
print('\n'.join(found), end='\n' if found else '')
sys.exit(bool(found))
