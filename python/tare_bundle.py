"""The libraries that a self-contained wheel contains in tare/lib, with their licenses, and the versions of glibc's symbols that they use."""

import os
import pathlib
import re
import struct
import subprocess
import sysconfig

SYSTEM = ("libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "ld-linux", "libstdc++.so", "libgcc_s.so")
#: The oldest glibc of the platform tag manylinux_2_28.
OLDEST = (2, 28)
#: SPDX identifiers of what a self-contained wheel contains.
LICENSES = (
    "Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND IJG AND MIT AND Zlib AND libpng-2.0"
    " AND GPL-3.0-or-later WITH GCC-exception-3.1"
)


def output_of(*command):
    """Standard output of a command."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def machine_of(file):
    """The name of a binary's processor in a platform tag, and the prefix of Debian's tools for it."""
    number = struct.unpack_from("<H", pathlib.Path(file).read_bytes()[:20], 18)[0]
    name = {62: "x86_64", 183: "aarch64"}[number]
    return name, "" if name == os.uname().machine else f"{name}-linux-gnu-"


def newest_glibc(files):
    """The newest version of glibc whose symbols the files use, as (major, minor)."""
    found = re.findall(r"Name: GLIBC_([0-9]+)\.([0-9]+)", "".join(output_of("readelf", "-V", file) for file in files))
    return max((int(major), int(minor)) for major, minor in found)


def needed(file, folders):
    """The libraries that a file is linked with and those that these need, {name: path}, without those of every system."""
    found, todo = {}, [file]
    while todo:
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", todo.pop())):
            if name not in found and not name.startswith(SYSTEM):
                found[name] = next(folder / name for folder in folders if (folder / name).exists()).resolve()
                todo.append(found[name])
    return found


def license_of(path):
    """The Debian source package that a library is of, and its copyright file: those of this machine, also for another processor."""
    package = output_of("dpkg", "-S", path.name).split(":")[0]
    source = output_of("dpkg-query", "-W", "-f", "${source:Package}\n", package).split()[0]
    return source, pathlib.Path(f"/usr/share/doc/{package}/copyright").read_bytes()


def openblas(folder):
    """OpenBLAS as the package scipy-openblas32 of PyPI has it, for glibc 2.27, installed in a folder: {name: (bytes, owner, license)}. It
    is loaded at run time."""
    library = folder / "scipy_openblas32/lib/libscipy_openblas.so"
    if not library.exists():
        raise SystemExit("tare: a self-contained wheel needs OpenBLAS of PyPI (pip install scipy-openblas32)")
    text = next(folder.glob("scipy_openblas32-*.dist-info/licenses/LICENSE.txt"))
    return {library.name: (library.read_bytes(), "openblas", text.read_bytes())}


def bundled(files, system="/", packages=None):
    """The libraries of the files: {name: (bytes, owner, license)}. `system`: the root folder of the processor's libraries; `packages`: the
    folder of the package scipy-openblas32, by default that of this Python."""
    places = (f"{system}/usr/lib", f"{system}/lib")
    folders = [pathlib.Path(place) / f"{machine_of(files[0])[0]}-linux-gnu" for place in places]
    paths = {name: path for file in files for name, path in needed(file, folders).items() if not name.startswith("libtare")}
    found = {name: (with_old_symbols(path.read_bytes(), path.name), *license_of(path)) for name, path in paths.items()}
    return {**found, **openblas(pathlib.Path(packages or sysconfig.get_paths()["platlib"]))}


# ---- old versions of symbols


def _text(data, at):
    return data[at : data.index(b"\0", at)].decode()


def _hash(name):
    value = 0
    for character in name.encode():
        value = (value << 4) + character
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def with_old_symbols(data, name):
    """An ELF file in which functions of libm of glibc 2.29 (exp, log, pow: the same values, without setting errno as SVID did) are
    those of the oldest version."""
    data = bytearray(data)
    start, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    for _, kind, _, _, offset, _, link, entries, _, _ in sections:
        if kind != 0x6FFFFFFE:  # .gnu.version_r
            continue
        strings, at = sections[link][4], offset
        names = {}
        places = []
        for _ in range(entries):
            _, auxiliary, file, first, following = struct.unpack_from("<HHIII", data, at)
            place = at + first
            for _ in range(auxiliary):
                _, _, _, text, step = struct.unpack_from("<IHHII", data, place)
                names[_text(data, strings + text)] = text
                places.append((place, _text(data, strings + text), _text(data, strings + file)))
                place += step
            at += following
        oldest = "GLIBC_2.2.5" if "GLIBC_2.2.5" in names else "GLIBC_2.17"
        for place, version, file in places:
            if tuple(map(int, re.findall(r"\d+", version)[:2])) <= OLDEST or not version.startswith("GLIBC_2."):
                continue
            if version != "GLIBC_2.29" or not file.startswith("libm.so"):
                raise SystemExit(f"tare: {name} needs {version} of {file} (expected at most {OLDEST[0]}.{OLDEST[1]})")
            struct.pack_into("<I", data, place, _hash(oldest))
            struct.pack_into("<I", data, place + 8, names[oldest])
    return bytes(data)
