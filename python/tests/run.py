"""run.py FILE: the tests of a file by ctest. Exits with 77 and the reason where NumPy is missing."""

import os
import sys
import unittest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: NumPy (python3-numpy) is not installed")
    sys.exit(77)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
name = os.path.splitext(os.path.basename(sys.argv[1]))[0]
result = unittest.main(module=name, argv=[name], exit=False).result
for test, reason in result.skipped:
    print(f"skipped: {test}: {reason}")
sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
