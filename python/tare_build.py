"""The build backend of the Python package (PEP 517, PEP 660). It needs no other package, so that pip needs no index.

It builds program, libtare and extension module of the tree above this folder with CMake, and writes the wheel: the package, in it
the program (`tare/bin`), libtare with its headers (`tare/lib`, `tare/include`), and the command `tare`, manual pages and completions.
Settings, by ``pip install --config-settings NAME=VALUE``:

build-dir
    A build folder of CMake to use, configured or not. Default: a temporary one.
cmake-args
    Further arguments for the configuration of a new build folder.
bundle
    ``yes``: a self-contained wheel for systems with glibc 2.28 or later, with the other libraries inside (scripts/wheel.sh).
system, packages
    Of a wheel for another processor: the root folder of its libraries, and the folder of its scipy-openblas32.
"""

import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

import tare_bundle

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
NAME, FILE_NAME = "tare-quant", "tare_quant"  # `tare` is another project of PyPI
TAG = "cp39-abi3"
DATE = (1980, 1, 1, 0, 0, 0)  # the same archives from the same files
CMAKE = (3, 25)
#: Of the tree: what a source distribution does not need.
LEFT_OUT = ("tests/", "bench/", "docs/", ".ci/", "python/tests/", "scripts/")
#: The command on the path: the program of the package, without importing it.
COMMAND = """#!python
import importlib.util
import os
import sys

program = os.path.join(os.path.dirname(importlib.util.find_spec("tare").origin), "bin", "tare")
os.execv(program, ["tare", *sys.argv[1:]])
"""


def version():
    """The version in the header of the library."""
    return re.search(r'TARE_VERSION "([0-9.]+)"', (ROOT / "include/tare/version.h").read_text()).group(1)


def metadata(licenses=("LICENSE",), expression="Apache-2.0"):
    """The file METADATA, with the license files and their SPDX expression."""
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    files = "".join(f"License-File: {name}\n" for name in licenses)
    return f"""Metadata-Version: 2.4
Name: {NAME}
Version: {version()}
Summary: Calibrates, quantizes and converts TensorFlow models for Cloud TPU, without TensorFlow
Author: The tare authors
License-Expression: {expression}
{files}Keywords: quantization,calibration,int8,tpu,tensorflow,savedmodel,stablehlo,inference,bfloat16
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: Console
Classifier: Intended Audience :: Developers
Classifier: Intended Audience :: Science/Research
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Python :: 3 :: Only
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Typing :: Typed
Requires-Python: >=3.9
Requires-Dist: numpy>=1.19
Provides-Extra: tpu
Requires-Dist: jax>=0.4.30; extra == "tpu"
Requires-Dist: libtpu; extra == "tpu"
Provides-Extra: notebook
Requires-Dist: jupyterlab; extra == "notebook"
Requires-Dist: pandas; extra == "notebook"
Requires-Dist: tqdm; extra == "notebook"
Description-Content-Type: text/markdown

{readme}"""


# ---- building


def run(*command):
    """Runs a command; its output is pip's."""
    try:
        subprocess.run([str(part) for part in command], check=True)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"tare: {' '.join(map(str, command[:2]))} failed (its output is above: pip install -v)") from error


def check_cmake():
    """One sentence if CMake is missing or too old."""
    program = shutil.which("cmake")
    text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout if program else ""
    found = tuple(map(int, re.findall(r"\d+", text)[:2]))
    if found < CMAKE:
        have = f"found {'.'.join(map(str, found))}" if found else "it is not installed"
        raise SystemExit(
            f"tare: building from source needs CMake {CMAKE[0]}.{CMAKE[1]} or later ({have}: pip install cmake ninja, then "
            "the libraries of docs/install.md; or install a wheel, which needs neither)"
        )


def build(folder, settings):
    """Builds in a build folder, and returns it."""
    if not (folder / "CMakeCache.txt").exists():
        check_cmake()
        ninja = ["-G", "Ninja"] if shutil.which("ninja") else []
        run("cmake", "-S", ROOT, "-B", folder, *ninja, "-DCMAKE_BUILD_TYPE=Release", "-DTARE_TESTS=OFF", "-DTARE_MPI=OFF",
            "-DTARE_WHEEL=ON", f"-DPython3_EXECUTABLE={sys.executable}", *shlex.split(settings.get("cmake-args", "")))  # fmt: skip
    if "TARE_WHEEL:BOOL=ON" not in (folder / "CMakeCache.txt").read_text():
        raise SystemExit(f"tare: {folder} is not configured for wheels (cmake -DTARE_WHEEL=ON)")
    run("cmake", "--build", folder, "--target", "tare_python", "tare", "tare_shared", "pages", "--parallel", os.cpu_count() or 1)
    if not (folder / "python/tare/_native.abi3.so").exists():
        raise SystemExit("tare: the extension module was not built (are Python's headers installed: python3-dev?)")
    return folder


def stripped(path):
    """An ELF file without the symbols that only debuggers use."""
    with tempfile.NamedTemporaryFile() as file:
        run(tare_bundle.machine_of(path)[1] + "strip", "--strip-unneeded", "-o", file.name, path)
        return pathlib.Path(file.name).read_bytes()


def package_files(folder):
    """(name, data, mode) of all files of the package in a build folder, and of the command with its pages."""
    for path in sorted((folder / "python/tare").iterdir()):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            yield f"tare/{path.name}", path.read_bytes(), 0o644
    yield "tare/_native.abi3.so", stripped(folder / "python/tare/_native.abi3.so"), 0o755
    yield "tare/bin/tare", stripped(folder / "tare"), 0o755
    yield "tare/lib/libtare.so", stripped(folder / "libtare.so"), 0o755
    yield "tare/lib/pkgconfig/tare.pc", (folder / "tare.pc").read_bytes(), 0o644
    for path in sorted((ROOT / "include/tare").glob("*.h")):
        yield f"tare/include/tare/{path.name}", path.read_bytes(), 0o644
    data = f"{FILE_NAME}-{version()}.data"
    yield f"{data}/scripts/tare", COMMAND.encode(), 0o755
    for place, target in (("man", "man/man1"), ("bash", "bash-completion/completions"), ("zsh", "zsh/site-functions"),
                          ("fish", "fish/vendor_completions.d")):  # fmt: skip
        for path in sorted((folder / "pages" / place).iterdir()):
            yield f"{data}/data/share/{target}/{path.name}", path.read_bytes(), 0o644


# ---- archives


class Wheel:
    """A wheel file; closing it writes RECORD."""

    def __init__(self, path, info):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.info, self.lines = info, []

    def add(self, name, data, mode=0o644):
        """Adds one file."""
        entry = zipfile.ZipInfo(name, DATE)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.lines.append(f"{name},sha256={digest},{len(data)}")
        self.file.writestr(entry, data, compresslevel=9)

    def close(self):
        """Writes RECORD."""
        record = f"{self.info}/RECORD"
        self.add(record, "".join(f"{line}\n" for line in [*self.lines, f"{record},,"]).encode())
        self.file.close()


def info_files(platform, licenses, expression):
    """(name, data) of the files of the folder dist-info, but for RECORD. `licenses`: {name: text} besides LICENSE."""
    licenses = {"LICENSE": (ROOT / "LICENSE").read_bytes(), **licenses}
    yield "METADATA", metadata(licenses, expression).encode()
    yield "WHEEL", f"Wheel-Version: 1.0\nGenerator: tare_build\nRoot-Is-Purelib: false\nTag: {TAG}-{platform}\n".encode()
    for name, text in licenses.items():
        yield f"licenses/{name}", text


def this_platform():
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def write_wheel(directory, files, platform=None, licenses=None, expression="Apache-2.0"):
    """Writes a wheel of (name, data, mode); returns its name. `platform`: default that of this machine."""
    platform = platform or this_platform()
    name = f"{FILE_NAME}-{version()}-{TAG}-{platform}.whl"
    wheel = Wheel(pathlib.Path(directory) / name, f"{FILE_NAME}-{version()}.dist-info")
    for file, data, mode in files:
        wheel.add(file, data, mode)
    for file, data in info_files(platform, licenses or {}, expression):
        wheel.add(f"{wheel.info}/{file}", data)
    wheel.close()
    return name


def source_files():
    """The files of the tree that building needs: those of git in a checkout, all of an unpacked source distribution."""
    if (ROOT / ".git").exists():
        command = ["git", "-C", str(ROOT), "ls-files", "-z"]
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    names = [name for name in names if name and not name.startswith(LEFT_OUT) and name not in ("PKG-INFO", "pyproject.toml")]
    return {name: (ROOT / name).read_bytes() for name in sorted(names) if (ROOT / name).is_file()}


# ---- the hooks of PEP 517 and PEP 660


def get_requires_for_build_wheel(config_settings=None):
    """No requirements."""
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes the folder dist-info without compiling."""
    info = pathlib.Path(metadata_directory) / f"{FILE_NAME}-{version()}.dist-info"
    for file, data in info_files(this_platform(), {}, "Apache-2.0"):
        (info / file).parent.mkdir(parents=True, exist_ok=True)
        (info / file).write_bytes(data)
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds everything and writes the wheel."""
    settings = config_settings or {}
    with tempfile.TemporaryDirectory(prefix="tare-build-") as temporary:
        folder = build(pathlib.Path(settings.get("build-dir") or temporary).resolve(), settings)
        files = list(package_files(folder))
        if settings.get("bundle") != "yes":
            return write_wheel(wheel_directory, files)
        binaries = [folder / "python/tare/_native.abi3.so", folder / "tare", folder / "libtare.so"]
        newest = tare_bundle.newest_glibc(binaries)
        if newest > tare_bundle.OLDEST:
            raise SystemExit(f"tare: the build needs glibc {newest[0]}.{newest[1]} (expected at most 2.28: cmake/glibc_2_28.c)")
        libraries = tare_bundle.bundled(binaries, settings.get("system", "/"), settings.get("packages"))
        files += [(f"tare/lib/{name}", data, 0o755) for name, (data, _, _) in sorted(libraries.items())]
        licenses = {f"{owner}.txt": text for _, (_, owner, text) in sorted(libraries.items())}
        platform = "manylinux_2_28_" + tare_bundle.machine_of(binaries[0])[0]
        return write_wheel(wheel_directory, files, platform, licenses, tare_bundle.LICENSES)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel that refers to a build folder: rebuild there after a change."""
    settings = config_settings or {}
    folder = pathlib.Path(settings.get("build-dir") or ROOT / "build").resolve()
    if not (folder / "CMakeCache.txt").exists():
        check_cmake()
        run("cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", f"-DPython3_EXECUTABLE={sys.executable}")
    run("cmake", "--build", folder, "--target", "tare_python", "--parallel", os.cpu_count() or 1)
    return write_wheel(wheel_directory, [("tare.pth", f"{folder / 'python'}\n".encode(), 0o644)])


def build_sdist(sdist_directory, config_settings=None):
    """The sources of program, library and package, with this backend."""
    top = f"{FILE_NAME}-{version()}"
    files = source_files()
    project = (HERE / "pyproject.toml").read_text().replace('backend-path = ["."]', 'backend-path = ["python"]')
    files.update({"pyproject.toml": project.encode(), "PKG-INFO": metadata().encode()})
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(data)
            entry.mode = 0o755 if data.startswith(b"#!") else 0o644
            archive.addfile(entry, io.BytesIO(data))
    with open(pathlib.Path(sdist_directory) / f"{top}.tar.gz", "wb") as file:
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
            packed.write(plain.getvalue())
    return f"{top}.tar.gz"
