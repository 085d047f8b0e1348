#!/usr/bin/env python3
"""Compares `tare validate` with the independent checker on every model: the same faults at the same places.

usage: compare.py TARE CHECKER MODELS
A place is a node ("graph/save/RestoreV2"), a signature, or a part of the file ("checkpoint", "assets"); the texts differ.
The checker reads saved_model.pb only, so a model in text is given to it as a binary that protoc made.
Known differences are listed here, with the reason in docs/validation.md; one that is no longer there is a failure too.
Needs python3-protobuf, python3-numpy and protoc; exit 77 without them.
"""
import collections, json, os, re, shutil, subprocess, sys, tempfile
try:
    import numpy  # noqa: F401, the checker's
    import google.protobuf  # noqa: F401
except ImportError as error:
    print('skipped:', error)
    sys.exit(77)
if not shutil.which('protoc'):
    print('skipped: protoc is not installed')
    sys.exit(77)

# model: (faults that only tare finds, faults that only the checker finds), each place: how many
KNOWN = {
    'tf-batchfunction': ({}, {'graph/batch_func': 1}),
    'tf-fuzz-attr': ({}, {'model': 1}),
    'tf-fuzz-shape': ({'graph/b/initial_value': 1}, {'graph/save/RestoreV2': 3, 'graph/a': 1, 'graph/b': 1, 'graph/c': 1}),
    'tf-text-segmenter': ({}, {'graph/TokenizerFromLogits/TokenizerFromLogits': 1}),
}

tare, checker, models = sys.argv[1:4]


def place(where, path):
    where = re.sub(r' ?\([A-Za-z0-9_>]*\)$', '', where)
    where = re.sub(r'^signature (.*)/[^/]*$', r'signature \1', where)
    return 'model' if where in (path, 'saved_model', 'model') else where


def of_tare(path):
    run = subprocess.run([tare, 'validate', '--json', path], capture_output=True, text=True)
    answer = json.loads(run.stdout)
    assert answer['valid'] == (run.returncode == 0) == (not answer['faults']), path
    noted = {place(note.split(': ', 1)[0], path) for note in answer['notes']}
    return collections.Counter(place(fault['where'], path) for fault in answer['faults']), noted


def of_checker(path):
    run = subprocess.run([sys.executable, checker, path], capture_output=True, text=True)
    assert re.search(r'^\d+ faults$', run.stdout, re.M), run.stdout + run.stderr
    lines = [line for line in run.stdout.splitlines() if not re.fullmatch(r'\d+ faults', line)]
    return collections.Counter(place(line.split(': ', 1)[0], path) for line in lines)


def as_binary(path, folder):
    """A folder like the model's with saved_model.pb made from saved_model.pbtxt."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
    with open(os.path.join(path, 'saved_model.pbtxt')) as text, open(os.path.join(folder, 'saved_model.pb'), 'wb') as binary:
        subprocess.run(['protoc', '-I', root, '--encode=tensorflow.SavedModel', 'proto/tensorflow/saved_model.proto'],
                       stdin=text, stdout=binary, check=True, cwd=root)
    for name in ('variables', 'assets'):
        if os.path.exists(os.path.join(path, name)): os.symlink(os.path.join(path, name), os.path.join(folder, name))
    return folder


def compare(name):
    path = os.path.join(models, name)
    ours, noted = of_tare(path)
    if os.path.exists(os.path.join(path, 'saved_model.pb')):
        theirs = of_checker(path)
    else:
        with tempfile.TemporaryDirectory() as folder: theirs = of_checker(as_binary(path, folder))
    for where in noted: theirs.pop(where, None)  # a variable without a value that nothing reads: a note here
    only = (dict(ours - theirs), dict(theirs - ours))
    if only == KNOWN.get(name, ({}, {})): return True
    print('%s: only tare: %s; only the checker: %s; known: %s' % ((name,) + only + (KNOWN.get(name, 'none'),)))
    return False


names = sorted(os.listdir(models))
agreed = sum([compare(name) for name in names])
print('%d models, %d as expected, %d with known differences' % (len(names), agreed, len(KNOWN)))
sys.exit(agreed != len(names))
