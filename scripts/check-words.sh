#!/usr/bin/env bash
# check-words.sh [--list] [ROOT]: checks the wording of comments, messages and documents against the rules of CONTRIBUTING.md.
# BANNED constructions may not occur at all; STRAINED words, which have legitimate uses, may occur in at most 10 of 1,000 lines.
# --list prints the strained lines, too. Exits with 1 when a rule is broken.
set -euo pipefail
list=no
if [ "${1:-}" = --list ]; then list=yes; shift; fi
exec python3 - "$list" "${1:-$(dirname "${BASH_SOURCE[0]}")/..}" <<'PYTHON'
import re
import subprocess
import sys

LIMIT = 10  # strained lines per 1,000
# What to write instead is in docs/glossary.md.
BANNED = {
    r'\b(somebody|nobody|anybody|whoever)\b': 'name who: the caller, the kernel, the user',
    r'\bis no (number|constant|shape|list|folder|file|model|directory|tensor|picture|image|name)\b': 'is not a …',
    r'\bstands? twice\b|\bhas twice\b': 'duplicate',
    r'\bof (itself|its own accord)\b': 'automatically',
    r'\bby turns\b': 'alternately',
    r'\bat hand\b': 'available',
    r'\b(is|are|was) told\b|\btold (to|of|by)\b': 'passed, reported',
    r'\bwhat became of\b': 'result',
    r'\bhas it not\b|\bdoes it not\b': 'if not',
    r'\bmade of it\b|\bmakes of (it|them)\b': 'generated from',
    r'\bblanks\b': 'spaces',
    r'\bgoes again\b': 'is reverted',
}
STRAINED = (r'\bbehind\b|\b(stands?|stood)\b(?! for)|\b(lies|lie)\b|\btold\b|\bbrings?\b|\bgoes?\b|, too[,.;]|\bfaults?\b|'
            r'\bwants?\b|\bgives?\b|\bsays?\b|\btells?\b|\bbeside\b')
# Legitimate uses, removed before the search: quotations of other programs, and terms of the field.
ALLOWED = [
    r'page faults?', r'segmentation faults?', r'fault injection', r'allocation faults?', r'injected faults?', r'goes? to (zero|infinity)',
    r'\bgo (back|on)\b', r'stands? for', r'says? so',
]


def comments(source):
    """(line, text) of each comment line of C source."""
    for match in re.finditer(r'"(?:\\.|[^"\\\n])*"|/\*(.*?)\*/|//([^\n]*)', source, re.S):
        text = match[1] or match[2]
        if text:
            first = source.count('\n', 0, match.start()) + 1
            for i, line in enumerate(text.split('\n')):
                yield first + i, line


def messages(source):
    """(line, text) of each string literal of several words."""
    for match in re.finditer(r'/\*.*?\*/|//[^\n]*|"((?:\\.|[^"\\\n])*)"', source, re.S):
        if match[1] and ' ' in match[1]:
            yield source.count('\n', 0, match.start()) + 1, match[1]


def documents(source):
    return enumerate(source.split('\n'), 1)


def selected(files, what):
    if what == 'docs':
        return [f for f in files if f in ('README.md', 'CONTRIBUTING.md') or f.endswith('/README.md') or
                f.startswith('docs/') and f.endswith('.md') and not f.endswith(('op-coverage.md', 'stablehlo-ops.md'))]
    return [f for f in files if f.endswith(('.c', '.h')) and not f.startswith(('tests/', 'bench/', 'examples/')) and
            'catalogue' not in f]


def main():
    listed, root = sys.argv[1] == 'yes', sys.argv[2]
    files = subprocess.run(['git', 'ls-files'], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    broken = False
    for what, lines_of in (('comments', comments), ('messages', messages), ('docs', documents)):
        total = strained = 0
        for name in selected(files, what):
            try:
                source = open(root + '/' + name, encoding='utf-8', errors='replace').read()
            except FileNotFoundError:
                continue  # removed, not committed yet
            for number, line in lines_of(source):
                if not line.strip():
                    continue
                total += 1
                text = line
                for allowed in ALLOWED:
                    text = re.sub(allowed, '', text)
                for pattern, instead in BANNED.items():
                    match = re.search(pattern, text, re.I)
                    if match:
                        broken = True
                        print('%s:%d: "%s" (write: %s): %s' % (name, number, match[0], instead, line.strip()))
                if re.search(STRAINED, text):
                    strained += 1
                    if listed:
                        print('%s:%d: %s' % (name, number, line.strip()))
        rate = 1000 * strained / total if total else 0
        broken = broken or rate >= LIMIT or not total
        print('%s: %d of %d lines strained, %.1f per 1,000 (expected below %d)' % (what, strained, total, rate, LIMIT))
    sys.exit(broken)


main()
PYTHON
