"""The build backend of the Python package (PEP 517). It needs no other package, so that pip needs no index.

It builds the CMake target ``tare_python`` of the checkout above this folder, and writes the wheel: the modules, the
extension module (with libtare inside), and the metadata. Settings, by ``pip install --config-settings NAME=VALUE``:

build-dir
    A build folder of CMake to use, configured or not. Default: a temporary one.
cmake-args
    Further arguments for the configuration of a new build folder: ``-DTARE_STATIC=ON``.
bundle
    ``yes``: a self-contained wheel for other systems, with the libraries that the extension needs inside; its platform tag is that
    of the oldest glibc that has all symbols used.
"""

import base64
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TAG = "cp39-abi3"
SYSTEM = ("libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "ld-linux", "libstdc++.so", "libgcc_s.so")
DATE = (1980, 1, 1, 0, 0, 0)  # the same wheel from the same files


def version():
    """The version in the header of the library."""
    return re.search(r'TARE_VERSION "([0-9.]+)"', (ROOT / "include/tare/version.h").read_text()).group(1)


def metadata():
    """The file METADATA."""
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    return f"""Metadata-Version: 2.1
Name: tare
Version: {version()}
Summary: Calibrates, quantizes and converts TensorFlow models for Cloud TPU, without TensorFlow
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy>=1.19
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Description-Content-Type: text/markdown

{readme}"""


def output_of(*command):
    """Standard output of a command."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def newest_glibc(files):
    """The newest version of glibc whose symbols the files use, as (major, minor)."""
    found = re.findall(r"GLIBC_([0-9]+)\.([0-9]+)", "".join(output_of("objdump", "-T", file) for file in files))
    return max((int(major), int(minor)) for major, minor in found)


def needed(file):
    """Libraries that a file is linked with, and those that these need: name and path, without those of every system."""
    for line in output_of("ldd", file).splitlines():
        match = re.fullmatch(r"\s*(\S+) => (/\S+) .*", line)
        if match and not match.group(1).startswith(SYSTEM):
            yield match.groups()


def bundled(module):
    """Libraries for a self-contained wheel: {name: path}. OpenBLAS is loaded at run time."""
    libraries = dict(needed(module))
    for line in output_of("/sbin/ldconfig", "-p").splitlines():
        match = re.fullmatch(r"\s*(libopenblas\.so\.0) .* => (/\S+)", line)
        if match:
            libraries.update([match.groups(), *needed(match.group(2))])
    return libraries


def run(*command):
    """Runs a command; its output is pip's."""
    subprocess.run([str(part) for part in command], check=True)


def build(folder, settings):
    """Builds the package in a build folder; returns the folder with its modules."""
    if not (folder / "CMakeCache.txt").exists():
        ninja = ["-G", "Ninja"] if shutil.which("ninja") else []
        run("cmake", "-S", ROOT, "-B", folder, *ninja, "-DCMAKE_BUILD_TYPE=Release", "-DTARE_TESTS=OFF", "-DTARE_MPI=OFF",
            f"-DPython3_EXECUTABLE={sys.executable}", *shlex.split(settings.get("cmake-args", "")))  # fmt: skip
    run("cmake", "--build", folder, "--target", "tare_python", "--parallel", os.cpu_count() or 1)
    if not (folder / "python/tare/_native.abi3.so").exists():
        raise SystemExit("tare: the extension module was not built (are Python's headers installed: python3-dev?)")
    return folder / "python/tare"


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
        self.file.writestr(entry, data)

    def close(self):
        """Writes RECORD."""
        record = f"{self.info}/RECORD"
        self.add(record, "".join(f"{line}\n" for line in [*self.lines, f"{record},,"]).encode())
        self.file.close()


def write_wheel(directory, files, platform=None):
    """Writes a wheel of (name, data, mode); returns its name. `platform`: default that of this machine."""
    platform = platform or sysconfig.get_platform().replace("-", "_").replace(".", "_")
    name = f"tare-{version()}-{TAG}-{platform}.whl"
    wheel = Wheel(pathlib.Path(directory) / name, f"tare-{version()}.dist-info")
    for file, data, mode in files:
        wheel.add(file, data, mode)
    info = f"Wheel-Version: 1.0\nGenerator: tare_build\nRoot-Is-Purelib: false\nTag: {TAG}-{platform}\n"
    wheel.add(f"{wheel.info}/METADATA", metadata().encode())
    wheel.add(f"{wheel.info}/WHEEL", info.encode())
    wheel.add(f"{wheel.info}/LICENSE", (ROOT / "LICENSE").read_bytes())
    wheel.close()
    return name


# ---- the hooks of PEP 517 and PEP 660


def get_requires_for_build_wheel(config_settings=None):
    """No requirements."""
    return []


get_requires_for_build_editable = get_requires_for_build_wheel


def copyrights(libraries):
    """The licenses of bundled libraries, from the Debian packages that they are of."""
    for name, path in sorted(libraries.items()):
        package = output_of("dpkg", "-S", path.name).split(":")[0]
        yield f"tare/lib/{name}.copyright", pathlib.Path(f"/usr/share/doc/{package}/copyright").read_bytes(), 0o644


def package_files(package):
    """The files of the built package."""
    for path in sorted(package.iterdir()):
        if path.is_file():
            yield f"tare/{path.name}", path.read_bytes(), 0o755 if path.suffix == ".so" else 0o644


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the extension and writes the wheel."""
    settings = config_settings or {}
    with tempfile.TemporaryDirectory(prefix="tare-build-") as temporary:
        package = build(pathlib.Path(settings.get("build-dir") or temporary).resolve(), settings)
        files, platform = list(package_files(package)), None
        if settings.get("bundle") == "yes":
            module = package / "_native.abi3.so"
            libraries = {name: pathlib.Path(path).resolve() for name, path in bundled(module).items()}
            files += [(f"tare/lib/{name}", path.read_bytes(), 0o755) for name, path in sorted(libraries.items())]
            files += copyrights(libraries)
            platform = "manylinux_{}_{}_".format(*newest_glibc([module, *libraries.values()])) + os.uname().machine
        return write_wheel(wheel_directory, files, platform)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel that refers to a build folder: rebuild there after a change."""
    settings = config_settings or {}
    folder = pathlib.Path(settings.get("build-dir") or ROOT / "build").resolve()
    package = build(folder, settings)
    return write_wheel(wheel_directory, [("tare.pth", f"{package.parent}\n".encode(), 0o644)])


def build_sdist(sdist_directory, config_settings=None):
    """Not supported: the C sources are above this folder."""
    raise SystemExit("tare: there is no source distribution of the Python package alone; install from a checkout")
