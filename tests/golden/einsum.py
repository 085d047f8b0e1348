"""Einsum by numpy in float64."""
import numpy as np

from golden import Golden, T, from_bfloat16

FLOATS = (2e-5, 1e-5, 0)
rng = np.random.default_rng(6)
g = Golden()
SIZES = dict(a=2, b=3, c=4, d=5, e=6, f=2, h=3, i=3, j=4, k=5, n=2, q=7, s=3, t=4)


def shape(labels, ellipsis):
    out = []
    for part in labels.replace("...", "."):
        out += list(ellipsis) if part == "." else [SIZES[part]]
    return out


def add(equation, ellipses=((), ()), t="float"):
    operands = equation.split("->")[0].split(",")
    values = []
    for text, ellipsis in zip(operands, ellipses):
        dims = shape(text, ellipsis)
        if t == "int32":
            values.append(rng.integers(-50, 50, dims).astype(np.int32))
        elif t.startswith("complex"):
            values.append((rng.standard_normal(dims) + 1j * rng.standard_normal(dims)).astype(t))
        else:
            values.append(rng.standard_normal(dims).astype({"float": np.float32, "double": np.float64}.get(t, t)))
    wide = [v.astype({"int32": np.int64}.get(t, np.complex128 if t.startswith("complex") else np.float64)) for v in values]
    y = np.einsum(equation, *wide)
    out = np.asarray(y).astype(values[0].dtype)
    tol = (0, 0, 0) if t == "int32" else (1e-12, 1e-12, 0) if t == "double" else FLOATS
    g.case("Einsum", f"T: {t}; N: {len(operands)}; equation: '{equation}'", values, [out], tol)


for equation in ["ab,bc->ac", "ab,cb->ac", "ba,bc->ca", "abc,cd->abd", "abc,abd->acd", "abc,adc->abd", "abcd,de->abce",
                 "aecd,abcd->acbe", "acbe,aecd->abcd", "ab,ab->a", "ab,ab->", "a,b->ab", "a,b->ba", "abc,c->ab",
                 "abc,bc->a", "ab,b->ab", "abc,ade->abcde", "ab,cd->acbd", "abcd,efcd->abef", "abc,cde->abde",
                 "abde,cde->abc", "ab,bc->", "ab,c->", "abc,d->ad", "ihq,hqk->ik", "bqk,k->bq", "aab,bc->ac",
                 "ab,bbc->ac", "nhqd,nhkd->nhqk", ",ab->ab", ",->"]:
    add(equation)
for equation in ["ab->ba", "abc->cab", "ab->", "ab->a", "ab->b", "abc->b", "aa->a", "aab->b", "aab->ab", "a->a", "->",
                 "abcde->edcba"]:
    add(equation, ((),))
for equation, ellipses in [("...ij,...jk->...ik", ((2, 3), (2, 3))), ("...ij,...jk->...ik", ((2, 1), (3,))),
                           ("...ij,jk->...ik", ((2, 3), ())), ("i...,j...->ij...", ((4,), (4,))),
                           ("...i,...i->...", ((3,), (1,))), ("...,...->...", ((2, 3), (3,))),
                           ("a...b,b...c->a...c", ((1, 2), (2, 1)))]:
    add(equation, ellipses)
add("...ij->...ji", ((2, 3),))
add("i...->...", ((2, 3),))
add("ab,bc->ac", t="int32")
add("abc,cd->abd", t="double")
add("ab,bc->ca", t="complex64")
for t in ("half", "bfloat16"):
    a, b = T(t, rng.standard_normal((3, 8))), T(t, rng.standard_normal((8, 5)))
    wide = [from_bfloat16(v.array) if t == "bfloat16" else v.array.astype(np.float32) for v in (a, b)]
    g.case("Einsum", f"T: {t}; N: 2; equation: 'ab,bc->ac'", [a, b], [T(t, wide[0] @ wide[1])], (0.02, 0.01, 0))
f = np.float32
g.case("Einsum", "T: float; N: 2; equation: 'ab,bc->ac'", [np.zeros((2, 0), f), np.zeros((0, 3), f)],
       [np.zeros((2, 3), f)], infer="[?,2] [2,5] -> [?,5]; [2,?] [7,?] -> [2,?]")
g.case("Einsum", "T: float; N: 2; equation: '...ab,...bc->...ac'", [np.zeros((4, 2, 3), f), np.zeros((3, 3), f)],
       [np.zeros((4, 2, 3), f)], infer="[?,1,2,3] [5,3,4] -> [?,5,2,4]")
g.case("Einsum", "T: float; N: 2; equation: 'ab,bc->ac'", [np.zeros((2, 3), f), np.zeros((4, 3), f)], [], error="is 4")
g.case("Einsum", "T: float; N: 2; equation: 'ab,bc->ad'", [np.zeros((2, 3), f), np.zeros((3, 3), f)], [], error="in no operand")
g.case("Einsum", "T: float; N: 1; equation: 'ab,bc->ac'", [np.zeros((2, 3), f)], [], error="does not have 1 operands")
g.case("Einsum", "T: float; N: 1; equation: 'a->aa'", [np.zeros(2, f)], [], error="duplicate output label")
g.case("Einsum", "T: float; N: 1; equation: 'a1->a'", [np.zeros(2, f)], [], error="has a '1'")
g.case("Einsum", "T: float; N: 1; equation: 'ab'", [np.zeros((2, 2), f)], [], error="no ->")
g.save(__file__)
