#!/usr/bin/env python3
"""pin.py: rewrites requirements/*.txt, the exact versions and hashes of the judges' packages, from what pip resolves today.

PACKAGES are the only choice. The hashes are those of the wheels for Python 3.11 on x86-64 Linux. tf_keras requires the package
tensorflow, which contains the same files as tensorflow-cpu and more: it is left out, and pip installs with --no-deps."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "requirements"
PACKAGES = {
    "tensorflow": ["tensorflow-cpu==2.21.0", "tf-keras==2.21.0", "keras==3.15.1"],
    "jax": ["jax[tpu]==0.10.2", "flax==0.12.8"],
}
UNUSED = {"tensorflow", "libclang"}


def resolve(packages: list[str]) -> dict[str, str]:
    """{name==version: sha256} of the packages and of everything that they require."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run([sys.executable, "-m", "pip", "--isolated", "install", "--quiet", "--dry-run", "--ignore-installed",
                        "--index-url", "https://pypi.org/simple", "--report", report.name, *packages], check=True)
        installed = json.load(report)["install"]
    return {f"{one['metadata']['name']}=={one['metadata']['version']}": one["download_info"]["archive_info"]["hashes"]["sha256"]
            for one in installed if one["metadata"]["name"] not in UNUSED}


def main() -> None:
    known: dict[str, str] = {}
    for name, packages in PACKAGES.items():
        found = resolve([*packages, *(requirement for requirement in known)])
        lines = [f"{requirement} --hash=sha256:{found[requirement]}" for requirement in sorted(set(found) - set(known), key=str.lower)]
        (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        known |= found


if __name__ == "__main__":
    main()
