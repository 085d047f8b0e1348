#!/usr/bin/env python3
"""Exactly rounded values of elementary functions (mpmath), for tests/unit/interpreter/kernels/elementary_double_test.c:
python3 tests/golden/elementary_double.py > tests/golden/elementary_double.values. A line: function, x, y (pow and atan2
only, else 0), f(x, y) rounded to double, and rounded to float."""
import random
import numpy
import mpmath
from mpmath import mp, mpf

mp.prec = 1300  # digits of pi for the largest arguments
generator = random.Random(41)
FUNCTIONS = "exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()
RANGES = {
    "exp": [(-700, 700), (-1, 1), (-87, 88)], "expm1": [(-40, 700), (-1, 1), (-1e-3, 1e-3)],
    "log": [(0, 4), (0.99, 1.01), (0, 1e300)], "log1p": [(-1, 3), (-1e-3, 1e-3), (-1e-12, 1e-12)],
    "sin": [(-4, 4), (-1e5, 1e5), (-1e300, 1e300)], "asin": [(-1, 1), (-1e-3, 1e-3)], "atan": [(-3, 3), (-1e5, 1e5)],
    "sinh": [(-700, 700), (-2, 2)], "tanh": [(-15, 15), (-1, 1), (-1e-4, 1e-4)],
    "asinh": [(-4, 4), (-1e12, 1e12), (-1e-3, 1e-3)], "acosh": [(1, 5), (1, 1.001), (1, 1e12)],
    "atanh": [(-1, 1), (-1e-3, 1e-3)],
}
RANGES.update(cos=RANGES["sin"], tan=RANGES["sin"], acos=RANGES["asin"], cosh=RANGES["sinh"])
# Near multiples of pi / 2, powers near 1 and at the ends of the range, subnormal numbers.
HARD = {
    "sin": [6381956970095103.0 * 2.0**797, 3.141592653589793, 0.7853981633974483], "cos": [6381956970095103.0 * 2.0**797, 1.5707963267948966],
    "tan": [6381956970095103.0 * 2.0**797, 1.5707963267948966], "exp": [-744.0, 709.75, 5e-324], "expm1": [5e-324, -1e-17],
    "log": [5e-324, 2.0**-1030, 1 + 2.0**-52, 1.7e308], "log1p": [2.0**-53, -2.0**-53, -1 + 2.0**-53],
}


def write(name, x, y, exact):
    as_float = numpy.float32(numpy.longdouble(mpmath.nstr(exact, 25))) if abs(exact) < mpf(2) ** 128 else numpy.float32(numpy.sign(float(exact)) * numpy.inf)
    print(name, float(x).hex(), float(y).hex(), float(exact).hex(), float(as_float).hex())


for name in FUNCTIONS:
    function = getattr(mpmath, name)
    values = HARD.get(name, [])
    for low, high in RANGES[name]:
        values = values + [generator.uniform(low, high) for _ in range(20)]
    for i, x in enumerate(values):
        x = float(numpy.float32(x)) if i % 2 and abs(x) < 1e38 and not (name in ("log1p", "atanh") and abs(float(numpy.float32(x))) == 1) else x
        write(name, x, 0, function(mpf(x)))
for i in range(80):
    x = generator.choice([generator.uniform(0, 50), 1 + generator.uniform(-1e-3, 1e-3), 2.0 ** generator.uniform(-900, 900)])
    limit = 700 / abs(float(mpmath.log(mpf(x))))
    y = generator.uniform(-limit, limit)
    if i % 2 and 1e-30 < x < 1e30:
        x, y = float(numpy.float32(x)), float(numpy.float32(y / 10))
    write("pow", x, y, mpmath.exp(mpf(y) * mpmath.log(mpf(x))))
for i in range(60):
    x, y = generator.uniform(-5, 5), generator.uniform(-5, 5) * 10.0 ** generator.choice([0, 0, -9, 9, 200, -200])
    write("atan2", y, x, mpmath.atan2(mpf(y), mpf(x)))
