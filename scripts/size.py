#!/usr/bin/env python3
"""Lines of .c and .h by folder, and what the commits since another one cost, by feature: the tables of docs/size.md.

usage: size.py [COMMIT]     prints the tables for HEAD and the commits since COMMIT (default: the one of docs/size.md)
       size.py --page       writes them into docs/size.md

The lines that a commit adds, less those that it removes, are its feature's: the first row of FEATURES whose pattern is
found in its subject. Nothing is estimated, and what no row names is a row of its own."""
import os
import re
import subprocess
import sys

BASE = '0dff644c'
OUTER = 'calib quant tpu convert eval workflow api cli datasets'.split()
INNER = ['interpreter']
GENERATED = 'interpreter/ops/catalogue.c'

# Feature, pattern of the subjects of its commits; the first that is found counts.
FEATURES = [
    ('the pass reconstruction (removed)', r'reconstruction is gone'),
    ('prefix cache, sets of models (removed)', r'run one by one'),
    ('Shardy\'s manual computations on simulated devices (removed)', r'modules run on one device'),
    ('ops of training and of quantize_graph, LAPACK of 4 × 4 (removed)', r'^ops: no |^linalg: LAPACK computes small'),
    ('definitions of ops that the catalogue has (removed)', r'an op is defined once'),
    ('kernels and steps that gained nothing (removed)', r'dynamically run once|have no kernel of their own|steps that pass on a value|'
     r'multiply all of their padding|no form in integers'),
    ('option tables of two lines', r'an option is two lines'),
    ('one struct, one list, one rule', r'one evaluation struct|the edges of a signature|one list|one rule|one file|one struct|'
     r'in one place|every caller gave|nine helpers|by one function|numbers are read and printed|is found by one|names of algorithms|'
     r'parameters that every|said once|private macros|named by what they do|comments above declarations'),
    ('taken back and restored', r'taken back is restored|the TPU compiler, and models that others wrote'),
    ('export of signatures as StableHLO modules', r'stablehlo/emit|tare export|^export:|shifts, so that models'),
    ('check: Google\'s TPU compiler, forms that are fastest, estimates', r'^check:|^(libtare|workflow/check).*check|convert: --check|--for CHIP|--compile'),
    ('times fitted to the TPU compiler, chips', r'^tpu/cost|^tpu: the cost|estimates? (is|are) (in )?(a|the) folder|^tpu/chips|chips\' rate'),
    ('float8', r'eight-bit floats|float8'),
    ('values that keep float32 in bfloat16 models', r'^tpu/exact|^(tpu|workflow)/bfloat16|exact_values|products keep the precision|computes in bfloat16 already'),
    ('weights chosen from stacks, loops over stacked layers, ranges by iteration',
     r'quant/selection|stacked layers|by iteration of a loop|localize_choices|ranges by entry|chosen from a stack'),
    ('one plan, tare auto, commands of rows, verdicts that records support',
     r'^quant: one plan|tare auto|^auto:|Model\.auto|a model is recommended|each row has the commands|suggested commands|'
     r'no model is recommended|--auto|^compare:|hints of the verdict|what bfloat16 costs|bfloat16 is checked|--margin|'
     r'float model of a written|job is read as a plan|record[s]? that change|margin is an option|usage errors come before'),
    ('pages, tables and JSON of reports', r'^eval/report|schemas of all JSON|JUnit|headings|pages at|layers that stay float for one'),
    ('samples drawn at random, the rest for evaluation', r'calibrate --sample'),
    ('state of streaming models (--feedback)', r'--feedback'),
    ('batching: rows that depend on each other, what is the same for every request', r'^(tpu/|workflow/)?batching'),
    ('what a TPU refuses: shapes, variables, devices, control flow', r'^tpu: |^tpu/(split|devices)|^tpu/shape'),
    ('checks of written models (validate)', r'convert/validation|^validate:|no model is written with'),
    ('written models as TensorFlow\'s: keys, traces, tables, specs, tags', r'^convert/export|^convert/import|tables that the checkpoint|trace that TensorFlow|tags serve'),
    ('options of version 2 of the converter', r'options of version 2|quantization_options does not name|float model is frozen|only a float model|a seed are removed'),
    ('StableHLO that is read: LAPACK of JAX, locations, artifacts', r'convert/stablehlo|^convert: StableHLO'),
    ('layers: transposed, channels first, tied tables, bits after the passes, wide inputs', r'^quant|^convert/passes'),
    ('ranks that are lost (MPI)', r'a rank that is lost'),
    ('data sets: letterbox, filters, folders of records, EXIF', r'^(eval, )?datasets?|rows of arrays|samples keeps labels'),
    ('library and Python: export, unwrap, diff, validate, promises about threads', r'^api|^python'),
    ('memory that does not grow with the records', r'memory of a comparison|whatever the number of records|temporary files'),
    ('warnings in every report, log files, checks of outputs', r'^base/warnings|^cli|are a warning'),
    ('ops and preprocessing: regular expressions, tokenizers, Unicode, random numbers, decoding',
     r'^interpreter/ops|^ops|differed from TensorFlow|XLA\'s order|Mitchell'),
    ('elementary functions with the same bits on every CPU', r'elementary functions'),
    ('kernels and execution: epilogues, next groups, activations, eight lanes',
     r'^interpreter|^kernels|^execution|^linalg'),
]


def lines(commit, folders):
    """{folder: lines of .c and .h}"""
    counts = dict.fromkeys(folders, 0)
    names = subprocess.run(['git', 'ls-tree', '-r', '--name-only', commit, *folders], capture_output=True, text=True, check=True).stdout.split()
    wanted = [n for n in names if n.endswith(('.c', '.h')) and n != GENERATED]
    asked = ''.join('%s:%s\n' % (commit, n) for n in wanted).encode()
    out = subprocess.run(['git', 'cat-file', '--batch'], input=asked, capture_output=True, check=True).stdout
    at = 0
    for name in wanted:
        end = out.index(b'\n', at)
        size = int(out[at:end].split()[2])
        counts[name.split('/')[0]] += out.count(b'\n', end + 1, end + 1 + size)
        at = end + 2 + size
    return counts


def commits(base, folders):
    """[(subject, added, removed)] of the commits since `base` that change .c or .h files of the folders."""
    log = subprocess.run(['git', 'log', '--format=%x00%s', '--numstat', '--no-renames', base + '..HEAD', '--', *folders],
                         capture_output=True, text=True, check=True).stdout
    for part in log.split('\0')[1:]:
        subject, *rows = part.strip('\n').split('\n')
        counts = [row.split('\t') for row in rows if row.endswith(('.c', '.h')) and not row.endswith(GENERATED)]
        yield subject, sum(int(c[0]) for c in counts), sum(int(c[1]) for c in counts)


def by_feature(base, folders):
    sums, rest = {name: 0 for name, _ in FEATURES}, 0
    for subject, added, removed in commits(base, folders):
        name = next((name for name, pattern in FEATURES if re.search(pattern, subject)), None)
        if name:
            sums[name] += added - removed
        else:
            rest += added - removed
    return sums, rest


def gone(base, folders):
    """Lines of `base` that HEAD no longer has."""
    diff = subprocess.run(['git', 'diff', '--numstat', '-M', '-w', base, 'HEAD', '--', *folders], capture_output=True, text=True, check=True).stdout
    rows = [line.split('\t') for line in diff.splitlines() if re.search(r'\.[ch]}?$', line) and GENERATED not in line]
    return sum(int(cells[1]) for cells in rows)


def row(*cells):
    return '| ' + ' | '.join(f'{c:,}' if isinstance(c, int) else c for c in cells) + ' |'


def folder_table(base):
    before, after = lines(base, OUTER + INNER), lines('HEAD', OUTER + INNER)
    yield row('folder', '`%s`' % base, 'now', 'of the lines of `%s` are gone' % base)
    yield '|---|---|---|---|'
    for folder in OUTER:
        yield row(folder, before[folder], after[folder], '')
    yield row('the nine', sum(before[f] for f in OUTER), sum(after[f] for f in OUTER), gone(base, OUTER))
    yield row('interpreter, without the generated catalogue', before['interpreter'], after['interpreter'], gone(base, INNER))


def feature_table(base):
    outer, rest = by_feature(base, OUTER)
    inner, inner_rest = by_feature(base, INNER)
    yield row('what', 'nine folders', 'interpreter')
    yield '|---|---|---|'
    for name in sorted(outer, key=lambda name: -outer[name] - inner[name]):
        if outer[name] or inner[name]:
            yield row(name, outer[name], inner[name])
    yield row('everything else', rest, inner_rest)
    yield row('together', sum(outer.values()) + rest, sum(inner.values()) + inner_rest)


def write_page(text):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../docs/size.md')
    with open(path, encoding='utf-8') as page:
        before, rest = page.read().split('<!-- tables of scripts/size.py -->\n')
        after = rest.split('<!-- end of the tables -->\n')[1]
    with open(path, 'w', encoding='utf-8') as page:
        page.write(before + '<!-- tables of scripts/size.py -->\n' + text + '<!-- end of the tables -->\n' + after)


def main():
    words = [word for word in sys.argv[1:] if word != '--page']
    base = words[0] if words else BASE
    text = '\n%s\n\n%s\n\n' % ('\n'.join(folder_table(base)), '\n'.join(feature_table(base)))
    if '--page' in sys.argv:
        write_page(text)
    else:
        print(text)


main()
