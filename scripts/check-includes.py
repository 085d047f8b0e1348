#!/usr/bin/env python3
"""Checks that every include points downward: a module may include its own headers and those of the modules that its
CMakeLists.txt names in DEPENDS, and nothing else. Inside base/ the rules of FOLDERS hold, too.

usage: check-includes.py [ROOT]     prints each violation; exit 1 when there is one"""
import os
import re
import subprocess
import sys

# Folders of one module: each may include its own headers and those of the listed folders.
FOLDERS = {
    'base': {'base': [], 'base/tensor': ['base'], 'base/image': ['base', 'base/tensor']},
}


def modules(root):
    """{module: the modules it may include}, from the tare_module() calls."""
    depends = {}
    for name in sorted(os.listdir(root)):
        path = os.path.join(root, name, 'CMakeLists.txt')
        if not os.path.exists(path):
            continue
        call = re.search(r'tare_module\((\w+)([^)]*)\)', open(path, encoding='utf-8').read())
        if call:
            words = re.search(r'DEPENDS ([^A-Z$]*)', call[2])
            depends[call[1]] = set(words[1].split()) if words else set()
    return depends


def folder_of(path, folders):
    return max((f for f in folders if path.startswith(f + '/')), key=len)


def violation(path, included, depends):
    """Why `path` may not include `included`; None when it may."""
    module, target = path.split('/')[0], included.split('/')[0]
    if target not in depends or module not in depends:
        return None
    if target != module:
        return None if target in depends[module] else '%s does not depend on %s' % (module, target)
    if module in FOLDERS:
        own, other = folder_of(path, FOLDERS[module]), folder_of(included, FOLDERS[module])
        if own != other and other not in FOLDERS[module][own]:
            return '%s/ may not include %s/' % (own, other)
    return None


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    depends = modules(root)
    files = subprocess.run(['git', 'ls-files', '*.c', '*.h'], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    wrong = count = 0
    for path in files:
        full = os.path.join(root, path)
        if path.split('/')[0] not in depends or not os.path.exists(full):
            continue
        for number, line in enumerate(open(full, encoding='utf-8'), 1):
            match = re.match(r'\s*#\s*include "([^"]+)"', line)
            if match:
                count += 1
                why = violation(path, match[1], depends)
                if why:
                    wrong += 1
                    print('%s:%d: includes %s: %s' % (path, number, match[1], why))
    if not count:
        sys.exit('check-includes: found no includes below ' + root)
    sys.exit(wrong > 0)


main()
