#!/usr/bin/env bash
# format.sh [--fix] [BASE]: checks the C files that differ from BASE (default: main, else HEAD), new ones included, with
# clang-format; --fix rewrites them. format.sh --all [--fix]: the same for all C files, as CI does. Files are formatted as
# a whole: a change of one line may move comments and operands of lines next to it. Exits with 1 when a file would change.
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
while IFS= read -r -d '' file; do
    [ -f "$file" ] || continue
    if [ $fix = yes ]; then
        clang-format -i "$file"
    elif ! clang-format "$file" | diff -u --label "$file" --label "$file (formatted)" "$file" -; then
        wrong=1
    fi
done < <(git diff -z --name-only --diff-filter=d "$base" -- '*.c' '*.h'
    git ls-files -z --others --exclude-standard -- '*.c' '*.h')
exit $wrong
