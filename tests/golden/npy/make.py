"""Writes the .npy files of this folder with NumPy and ml_dtypes: python3 make.py. Values: arange(24) - 4, cast to each dtype."""
import ml_dtypes
import numpy as np

for dtype in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "c8", "c16"]:
    values = (np.arange(24) - (0 if dtype[0] in "ub" else 4)).astype(dtype).reshape(2, 3, 4)
    if dtype[0] == "c":
        values = (values + 0.5j).astype(dtype)
    np.save(f"{dtype}.npy", values)
    np.save(f"{dtype}_big_fortran.npy", np.asfortranarray(values.astype(">" + dtype if dtype[1] != "1" or len(dtype) > 2 else dtype)))

np.save("V2.npy", (np.arange(24) - 4).reshape(2, 3, 4).astype(ml_dtypes.bfloat16))
np.save("scalar.npy", np.float32(2.5))
np.save("empty.npy", np.zeros((0, 3), "f4"))
np.save("text.npy", np.array(["ab"]))
np.save("record.npy", np.zeros(2, [("x", "f4")]))
with open("version2.npy", "wb") as file:
    np.lib.format.write_array(file, np.arange(3, dtype="i4"), version=(2, 0))
with open("version3.npy", "wb") as file:
    np.lib.format.write_array(file, np.arange(3, dtype="i4"), version=(3, 0))
np.save("text_big_fortran.npy", np.asfortranarray(np.array([["a\u00e9", "\u20ac"], ["", "\U0001f600x"]], ">U2")))
np.save("bytes.npy", np.array([b"ab", b"", b"c\0d"]))
np.save("dates.npy", np.array(["2024-01-01"], "M8[D]"))
x = np.arange(24, dtype="f4").reshape(4, 2, 3)
np.savez("samples.npz", x=x, y=np.arange(4), name=np.array(["a", "bb", "c", "d"]))
np.savez_compressed("compressed.npz", x=np.asfortranarray(x), y=np.arange(4).astype(">i8"))
np.savez("uneven.npz", x=x, y=np.arange(3))
np.savez("scalar.npz", x=x, y=np.float32(1))
