#!/usr/bin/env bash
# check-python.sh FILE.whl|FILE.deb [PYTHON…]: unpacks the Python package without installing it, checks what the extension module is linked
# with, and runs the tutorial, and installs it by pip: the tutorial there, and for each further PYTHON the tests of forms of data and of
# types. Prints what is wrong and exits with 1.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
package=$(realpath "${1:?usage: scripts/check-python.sh FILE [PYTHON…]}")
shift
python=/usr/bin/python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong() { echo "$package: $*" >&2; exit 1; }

case $package in
*.whl) "$python" -m zipfile -e "$package" "$work/site" ;;
*.deb) dpkg-deb -x "$package" "$work/root" && ln -s "$work/root/usr/lib/python3/dist-packages" "$work/site" ;;
*) wrong "not a wheel or a Debian package" ;;
esac
module=$work/site/tare/_native.abi3.so
[ -s "$module" ] || wrong "lacks tare/_native.abi3.so"
for file in __init__.py py.typed _native.pyi; do
    [ -e "$work/site/tare/$file" ] || wrong "lacks tare/$file"
done

# Symbols: only the module's function is exported. Names with an underscore are not part of the stable ABI, except for those that
# macros of the limited API expand to.
exported=$(nm -D --defined-only "$module" | awk '{ print $3 }')
[ "$exported" = PyInit__native ] || wrong "exports $exported"
private=$(nm -D --undefined-only "$module" | awk '{ print $2 }' | grep '^_Py' | grep -vxE '_Py_(Dealloc|NoneStruct|TrueStruct|FalseStruct)|_Py.*_SizeT' || true)
[ -z "$private" ] || wrong "uses private functions of CPython: $private"
if [ "${package##*.}" = whl ]; then
    # Self-contained: everything but the C library is inside, and the C library is not newer than the platform tag allows.
    mapfile -t libraries < <(find "$work/site/tare/lib" -name '*.so*' ! -name '*.copyright')
    [ ${#libraries[@]} -ge 5 ] || wrong "has ${#libraries[@]} libraries"
    needed=$(readelf -d "$module" "${libraries[@]}" | sed -nE 's/.*NEEDED.*\[(.*)\].*/\1/p' | sort -u)
    for library in $needed; do
        case $library in libc.so.6 | libm.so.6 | libpthread.so.0 | libdl.so.2 | librt.so.1 | libstdc++.so.6 | libgcc_s.so.1 | ld-linux-*) continue ;; esac
        [ -e "$work/site/tare/lib/$library" ] || wrong "needs $library"
        used=$(ldd "$module" | awk -v name="$library" '$1 == name { print $3 }')
        [ -z "$used" ] || [ "$(realpath "$used")" = "$work/site/tare/lib/$library" ] || wrong "uses $used instead of its own $library"
    done
    newest=$(for file in "$module" "$work/site/tare/bin/tare" "${libraries[@]}"; do objdump -T "$file"; done | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -1)
    allowed=$(sed -nE 's/.*manylinux_([0-9]+)_([0-9]+)_.*/\1.\2/p' <<<"$package")
    [ "$(printf '%s\n' "$newest" "$allowed" | sort -V | tail -1)" = "$allowed" ] || wrong "needs glibc $newest, its name allows $allowed"
    # In environments of their own, without a compiler: the command, the package and its tutorial. NumPy of PyPI for other Pythons.
    for version in "$python" "$@"; do
        rm -rf "$work/env" "$work/there"
        options=--no-index
        if [ "$version" = "$python" ]; then "$version" -m venv --system-site-packages "$work/env"; else "$version" -m venv "$work/env" && options=; fi
        "$work/env/bin/pip" install --quiet $options "$package" 2>"$work/err" || wrong "$version: pip fails: $(tail -1 "$work/err")"
        mkdir "$work/there" && ln -s "$root/examples" "$work/there/examples"
        (cd "$work/there" && PATH=$work/env/bin tare version && PATH=$work/env/bin python -B "$root/python/examples/tutorial.py") >"$work/out" 2>"$work/err" ||
            wrong "$version: $(tail -3 "$work/err")"
        grep -q "^tare [0-9]" "$work/out" || wrong "$version: the command prints $(head -1 "$work/out")"
        grep -qE '^9[0-9.]+% correct' "$work/out" || wrong "$version: the tutorial prints $(cat "$work/out")"
        [ -s "$work/env/share/man/man1/tare.1.gz" ] || wrong "$version: has no manual page"
        if [ -z "$options" ]; then # the forms of data, and types; with PyPI
            "$work/env/bin/pip" install --quiet pandas mypy 2>"$work/err" || wrong "$version: pip fails: $(tail -1 "$work/err")"
            for test in forms types; do
                (cd "$work/there" && "$work/env/bin/python" -B "$root/python/tests/run.py" "$root/python/tests/test_$test.py") >"$work/out" 2>&1 ||
                    wrong "$version: test_$test.py: $(tail -3 "$work/out")"
            done
        fi
        "$work/env/bin/pip" uninstall --quiet --yes tare-quant
        [ -z "$(find "$work/env" -name 'tare*')" ] || wrong "leaves $(find "$work/env" -name 'tare*') behind"
        echo "$("$version" --version): works"
    done
fi

mkdir "$work/run"
ln -s "$root/examples" "$work/run/examples"
(cd "$work/run" && env -u LD_LIBRARY_PATH PYTHONPATH="$work/site" "$python" -B "$root/python/examples/tutorial.py") >"$work/out" 2>"$work/err" ||
    wrong "the tutorial fails: $(tail -3 "$work/err")"
grep -qE '^9[0-9.]+% correct' "$work/out" || wrong "the tutorial prints $(cat "$work/out")"
[ -d "$work/run/glyphs_tpu" ] || wrong "the tutorial wrote no model"
echo "$(basename "$package"): works"
