#!/usr/bin/env python3
"""Prints the tests that a run of CTest skipped, with the last line that each printed: the reason.

usage: list-skips.py FILE     FILE: what ctest --output-junit wrote"""
import sys
import xml.etree.ElementTree as xml


def main():
    for test in xml.parse(sys.argv[1]).iter('testcase'):
        if test.find('skipped') is not None:
            output = (test.findtext('system-out') or '').strip()
            print(f'{test.get("name")}: {output.splitlines()[-1] if output else "skipped without a reason"}')


if __name__ == '__main__':
    main()
