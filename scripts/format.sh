#!/usr/bin/env bash
# format.sh [--fix] [BASE]: checks the C lines that differ from BASE (default: main, else HEAD) with clang-format; --fix
# rewrites them. format.sh --all [--fix]: the same for all C files. Exits with 1 when a line would change.
#   As a hook: ln -s ../../scripts/format.sh .git/hooks/pre-commit
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
fix=no all=no
while :; do
    case ${1:-} in
        --fix) fix=yes ;;
        --all) all=yes ;;
        *) break ;;
    esac
    shift
done
command -v clang-format >/dev/null || { echo "format: clang-format is not installed (apt-get install clang-format)" >&2; exit 2; }
base=${1:-$(git rev-parse -q --verify main || git rev-parse HEAD)}
base=$(git merge-base "$base" HEAD)
if [ $all = yes ]; then
    how=(--dry-run --Werror)
    [ $fix = no ] || how=(-i)
    git ls-files -z -- '*.c' '*.h' | xargs -0 -r -P "$(nproc)" -n 30 clang-format "${how[@]}"
    exit
fi
wrong=0
while read -r file; do
    [ -f "$file" ] || continue
    # "@@ -a,b +START,COUNT @@": the lines that are new; a COUNT of 0 is a removal.
    lines=$(git diff -U0 "$base" -- "$file" | sed -nE 's/^@@ -[0-9,]+ \+([0-9]+)(,([0-9]+))? @@.*/\1 \3/p' |
        awk '{ n = $2 == "" ? 1 : $2; if (n > 0) printf "--lines=%d:%d ", $1, $1 + n - 1 }')
    [ -n "$lines" ] || continue
    # shellcheck disable=SC2086
    if [ $fix = yes ]; then
        clang-format -i $lines "$file"
    elif ! clang-format $lines "$file" | diff -u --label "$file" --label "$file (formatted)" "$file" -; then
        wrong=1
    fi
done < <(git diff --name-only --diff-filter=d "$base" -- '*.c' '*.h')
exit $wrong
