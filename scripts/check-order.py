#!/usr/bin/env python3
"""Finds calls with two or more arguments that add to a graph: C leaves their order open, gcc and clang differ, and so
would the names and the order of nodes in what they write.

A function adds to a graph if it calls one of ROOTS, or another function that does. A call by pointer is not followed.

usage: check-order.py [ROOT]     prints each such call; exit 1 when there is one"""
import os
import re
import subprocess
import sys

FOLDERS = ('graph/', 'quant/', 'tpu/', 'convert/')
# What adds a node to a graph, or an op, a type or an attribute to a StableHLO module that is built.
ROOTS = {'tare_graph_add', 'tare_graph_add_read', 'tare_build_op', 'tare_build_type', 'tare_build_element'}
KEYWORDS = {'if', 'for', 'while', 'switch', 'return', 'sizeof', 'do', 'else', 'case', '_Alignof', '_Static_assert'}

TOKEN = re.compile(r'[A-Za-z_]\w*|[(){}\[\],;]|\S')


def plain(text):
    """The source without comments, literals and directives; lines keep their numbers."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match[0])
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', blank, text, flags=re.M)


def tokens_of(text):
    found, line, last = [], 1, 0
    for match in TOKEN.finditer(text):
        line += text.count('\n', last, match.start())
        last = match.start()
        found.append((match[0], line))
    return found


def closing(tokens, i):
    """The index of the bracket that closes the one at i."""
    depth = 0
    for k in range(i, len(tokens)):
        if tokens[k][0] in '([{':
            depth += 1
        elif tokens[k][0] in ')]}':
            depth -= 1
            if depth == 0:
                return k
    return len(tokens) - 1


def functions(tokens):
    """(name, is static, first, last token of the body) of each function of a file."""
    i = start = 0
    while i < len(tokens):
        word = tokens[i][0]
        if word == ';':
            start = i + 1
        elif word == '{':
            end, head = closing(tokens, i), tokens[start:i]
            opening = next((k for k, t in enumerate(head) if t[0] == '('), 0)
            if opening and head[-1][0] != '=' and '=' not in [t[0] for t in head[:opening]]:
                yield head[opening - 1][0], head[0][0] == 'static', i, end
                start = end + 1
            i = end
        i += 1


def is_call(tokens, k):
    return (k + 1 < len(tokens) and tokens[k + 1][0] == '(' and re.match(r'[A-Za-z_]', tokens[k][0])
            and tokens[k][0] not in KEYWORDS)


def arguments(tokens, opening, end):
    """[first, last) of each argument of a call."""
    first, k = opening + 1, opening + 1
    while k < end:
        if tokens[k][0] in '([{':
            k = closing(tokens, k)
        elif tokens[k][0] == ',':
            yield first, k
            first = k + 1
        k += 1
    yield first, end


class Sources:
    def __init__(self, root):
        names = subprocess.run(['git', 'ls-files', '*.c', '*.h'], cwd=root, capture_output=True, text=True, check=True)
        self.files, self.bodies = {}, {}  # bodies: (file or None, name): what the function calls, as such keys
        for path in names.stdout.split():
            full = os.path.join(root, path)
            if path.startswith(FOLDERS) and os.path.exists(full):
                self.files[path] = tokens_of(plain(open(full, encoding='utf-8').read()))
        for path, tokens in self.files.items():
            found = list(functions(tokens))
            own = {name for name, is_static, _, _ in found if is_static}
            self.files[path] = tokens, found, own
            for name, is_static, first, last in found:
                called = {tokens[k][0] for k in range(first, last) if is_call(tokens, k)}
                self.bodies[path if is_static else None, name] = {(path if c in own else None, c) for c in called}
        self.adding = {(None, name) for name in ROOTS}
        growing = True
        while growing:
            more = {key for key, called in self.bodies.items() if called & self.adding} - self.adding
            self.adding |= more
            growing = bool(more)

    def adds(self, path, tokens, own, first, last):
        return next((tokens[k][0] for k in range(first, last) if is_call(tokens, k)
                     and (path if tokens[k][0] in own else None, tokens[k][0]) in self.adding), None)

    def wrong(self):
        for path, (tokens, found, own) in self.files.items():
            for _, _, first, last in found:
                for k in range(first, last):
                    if is_call(tokens, k):
                        end = closing(tokens, k + 1)
                        adding = [a for a in (self.adds(path, tokens, own, *part)
                                              for part in arguments(tokens, k + 1, end)) if a]
                        if len(adding) > 1:
                            yield path, tokens[k][1], tokens[k][0], adding


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    sources = Sources(root)
    if not any(key[1] not in ROOTS for key in sources.adding):
        sys.exit('check-order: found no function that adds to a graph below ' + root)
    found = list(sources.wrong())
    for path, line, name, adding in found:
        print('%s:%d: %s: the order of its arguments is open (%s)' % (path, line, name, ', '.join(adding)))
    sys.exit(bool(found))


main()
