#!/usr/bin/env python3
"""Generates the op catalogue (interpreter/ops/catalogue.c) from a table of op signatures.

usage: make-catalogue.py OPS.tsv OUTPUT.c

OPS.tsv has one op a line, tab-separated: name, inputs, outputs, attrs, flags, source file. Inputs and outputs are
"name:type" joined by ", ", where type is a dtype, an attribute, N*T, list:ATTR or Ref(type). Attributes are
name:type{allowed|...}>=minimum=default; flags hold "stateful" or "?" (not known). Ops whose names say that they belong
to one vendor's kernels (_Mkl) or that are graph-runtime internals are left out, see INTERNAL below."""
import re
import sys

# What the table calls NaN is an infinity there: its writer had no way to write one.
NUMBERS = {'"-NaN"': '-inf', '"NaN"': 'inf', 'True': 'true', 'False': 'false'}
DTYPES = {'float16', 'float32', 'float64'}
# The table has no text for these defaults.
DEFAULTS = {('ImageSummary', 'bad_color'):
            '{ dtype: DT_UINT8 tensor_shape { dim { size: 4 } } int_val: 255 int_val: 0 int_val: 0 int_val: 255 }'}
# Ops that the table says nothing of ("?"), but that keep state: they read a resource or draw random numbers.
STATEFUL = {'StatefulStandardNormalV2', 'StatefulTruncatedNormal', 'StatefulUniform', 'StatefulUniformFullInt',
            'BoostedTreesEnsembleResourceHandleOp', 'BoostedTreesQuantileStreamResourceHandleOp'}
# Examples of how to add an op: they are in no release.
EXAMPLES = {'ZeroOut'}
# Nodes that graphs are made of but that no registration table of public ops holds.
INTERNAL = [
    ('_Arg', '', 'output: T', 'T: type; index: int >= 0', True),
    ('_Retval', 'input: T', '', 'T: type; index: int >= 0', True),
]


def split(text, separator):
    """Parts at separators outside quotes and brackets."""
    parts, depth, quote, current, i = [], 0, '', '', 0
    while i < len(text):
        c = text[i]
        if quote:
            current += c
            if c == '\\':
                i += 1
                current += text[i]
            elif c == quote:
                quote = ''
        elif c == separator and depth == 0:
            parts.append(current.strip())
            current = ''
        else:
            quote = c if c in '"\'' else ''
            depth += c in '([{'
            depth -= c in ')]}'
            current += c
        i += 1
    return [p for p in parts + [current.strip()] if p]


def dtype(name):
    return {'float16': 'half', 'float32': 'float', 'float64': 'double'}.get(name, name)


def argument(text):
    name, kind = text.split(':', 1)
    ref = re.match(r'Ref\((.*)\)$', kind)
    kind = ref[1] if ref else kind
    if kind.startswith('list:'):
        kind = kind[5:]
    if '*' in kind:
        number, kind = kind.split('*', 1)
        kind = number + ' * ' + dtype(kind)
    return '%s: %s' % (name, 'Ref(%s)' % dtype(kind) if ref else dtype(kind))


def default(op, name, kind, is_list, value):
    if (op, name) in DEFAULTS:
        return DEFAULTS[op, name]
    if is_list:
        return value
    if kind == 'string':
        body = value[1:-1]
        return "'%s'" % body.replace("'", "\\'")
    if kind == 'type':
        return value if value.startswith('DT_') else 'DT_' + dtype(value).upper()
    if kind == 'shape':
        if value != 'shape("?")':
            sys.exit('%s: default %s of %s' % (op, value, name))
        return '{ unknown_rank: true }'
    if kind == 'func':
        return "{ name: '' }" if value == '{}' else value
    return NUMBERS.get(value, value)


def attribute(op, text):
    match = re.match(r'(\w+):(list\()?([a-z]*)(\))?(\{[^}]*\})?(\))?(>=-?\d+)?(=.*)?$', text, re.S)
    if not match:
        sys.exit('%s: attribute %r' % (op, text))
    name, kind, allowed, is_list = match[1], match[3], match[5], bool(match[2])
    if allowed:
        items = list(dict.fromkeys(x.strip() for x in re.split(r'[|,]', allowed[1:-1])))  # the table repeats some
        texts = kind == 'string' or items[0][:1] in '\'"'
        written = '{%s}' % ', '.join(("'%s'" % x.strip('\'"')) if texts else dtype(x) for x in items)
        kind = 'string' if texts else 'type'
    elif kind == 'function':
        kind = written = 'func'
    else:
        written = kind
        if kind.endswith(('numbertype', 'quantizedtype', 'numerictype')):
            kind = 'type'
    if is_list:
        written = 'list(%s)' % written
    if match[7]:
        written += ' >= ' + match[7][2:]
    if match[8]:
        written += ' = ' + default(op, name, kind, is_list, match[8][1:])
    return '%s: %s' % (name, written)


def c_string(text):
    return '"%s"' % text.replace('\\', '\\\\').replace('"', '\\"') if text else 'NULL'


def c_lines(text, indent):
    """A string literal, broken behind separators into lines of at most 120 columns."""
    lines, current = [], ''
    for word in re.split(r'(?<=[;,] )', text):
        if current and len(c_string(current + word)) + indent > 118:
            lines.append(current)
            current = ''
        current += word
    lines.append(current)
    return ('\n' + ' ' * indent).join(c_string(line) for line in lines) if text else 'NULL'


def read(path):
    ops = []
    for line in open(path, encoding='utf-8'):
        if line.startswith('#') or not line.strip():
            continue
        columns = (line.rstrip('\n').split('\t') + [''] * 5)[:5]
        name, inputs, outputs, attrs, flags = columns
        if 'Mkl' in name or name in EXAMPLES:
            continue
        attrs = [a for a in split(attrs, ',') if a != ':']
        ops.append((name, ', '.join(argument(a) for a in split(inputs, ',')),
                    ', '.join(argument(a) for a in split(outputs, ',')),
                    '; '.join(attribute(name, a) for a in attrs), 'stateful' in flags.split(',') or name in STATEFUL))
    known = {op[0] for op in ops}
    return sorted(ops + [op for op in INTERNAL if op[0] not in known])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], 'w', encoding='utf-8') as out:
        out.write('/* Op definitions, generated by scripts/make-catalogue.py: do not edit. */\n')
        out.write('#include "interpreter/ops/catalogue.h"\n\n/* clang-format off */\n')
        out.write('const struct tare_catalogue_entry tare_catalogue[] = {\n')
        for name, inputs, outputs, attrs, stateful in read(sys.argv[1]):
            out.write('    { "%s",\n' % name)
            for text in (inputs, outputs, attrs):
                out.write('      %s,\n' % c_lines(text, 6))
            out.write('      %s },\n' % ('true' if stateful else 'false'))
        out.write('    { 0 },\n};\n')


main()
