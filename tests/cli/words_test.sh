#!/usr/bin/env bash
# The wording of comments, messages and documents follows CONTRIBUTING.md.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null && command -v git >/dev/null || skip "needs python3 and git"
git -C "$TARE_SOURCE_DIR" rev-parse --git-dir >/dev/null 2>&1 || skip "the source tree is not a git checkout"
check=$TARE_SOURCE_DIR/scripts/check-words.sh

bash "$check" "$TARE_SOURCE_DIR" >"$work/found" || fail "$(cat "$work/found")"

# The check finds a banned construction in a comment, a message and a document, and too many strained lines.
mkdir "$work/tree" && cd "$work/tree" || exit 1
printf '/* The label is no number. */\nint a;\nconst char *b = "somebody reads it";\n' >a.c
printf 'It is told to the caller.\n' >README.md
git init -q && git add .
bash "$check" . >"$work/found" && fail "banned constructions pass"
for text in 'a.c:1: "is no number"' 'a.c:3: "somebody"' 'README.md:1: "is told"'; do
    grep -qF -- "$text" "$work/found" || fail "no '$text' in: $(cat "$work/found")"
done
printf '/* What stands behind it goes, too. */\nconst char *b = "a text";\n' >a.c
echo 'A line.' >README.md
bash "$check" . >"$work/found" && fail "strained lines pass"
grep -qF 'comments: 1 of 1 lines strained' "$work/found" || fail "$(cat "$work/found")"
finish
