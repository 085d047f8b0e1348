#!/usr/bin/env bash
# What the documents say is there: every relative link leads to a file or a section of one, every `tare SUBCOMMAND --option` in a code block or
# between backquotes is a subcommand and an option of it.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$TARE_SOURCE_DIR" || exit 1

# The sections of a page as links name them: headings outside code blocks in lower case, without punctuation, with
# hyphens for spaces; a second section of the same name ends in -1.
sections() { # FILE
    LC_ALL=C awk '
        /^ *```/ { block = !block }
        !block && sub(/^#+ +/, "") {
            gsub(/\]\([^)]*\)/, "")
            name = tolower($0)
            gsub(/[^a-z0-9_ -]/, "", name)
            gsub(/ /, "-", name)
            print name (seen[name] ? "-" seen[name] : "")
            seen[name]++
        }' "$1"
}

check_links() { # FILE…: prints what is wrong
    local file link target
    for file in "$@"; do
        # `[text](link)`; what stands in backquotes is code. "#section" alone is within the page.
        sed 's/`[^`]*`//g' "$file" | grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\(//; s/\)$//' | while read -r link; do
            case $link in http://* | https://* | mailto:*) continue ;; esac
            target=${link%%#*}
            target=${target:+$(dirname "$file")/}${target:-$file}
            if [ ! -e "$target" ]; then
                echo "$file: the link $link leads nowhere"
            elif [[ $link = *.md\#* || $link = \#* ]] && ! grep -qxF -- "${link#*#}" <<<"$(sections "$target")"; then
                echo "$file: the link $link names no section of $target"
            fi
        done
    done
}

# Prints "FILE: WORD…" for each command line: code blocks with lines that end in a backslash joined, and backquotes that
# begin with "tare ".
command_lines() {
    awk '
        FNR == 1 { block = 0 }
        /^ *```/ { block = !block; next }
        block {
            line = line $0
            if (line ~ /\\$/) { sub(/\\$/, " ", line); next }
            if (match(line, /^ *(\$ |[A-Z_]+=[^ ]+ |mpirun [^t]*)?tare /)) print FILENAME ": " substr(line, RLENGTH + 1)
            line = ""
            next
        }
        { line = ""; rest = $0
          while (match(rest, /`[^`]*`/)) {
              code = substr(rest, RSTART + 1, RLENGTH - 2)
              rest = substr(rest, RSTART + RLENGTH)
              if (code ~ /^tare [a-z]/) print FILENAME ": " substr(code, 6)
          } }' "$@"
}

check_commands() { # FILE…: prints what is wrong, and counts on the last line
    local file words command option count=0
    while IFS= read -r words; do
        file=${words%%: *}
        words=$(sed -E "s/'[^']*'?//g; s/\"[^\"]*\"?//g; s/ [|>&;] .*//; s/ #.*//" <<<"${words#*: }")
        read -r command part _ <<<"$words"
        part=${part%%\\|*} # a table says info\|head
        [ "$command" != dataset ] || case $part in [a-z]*) command="dataset $part" ;; esac
        count=$((count + 1))
        if [ ! -e "$work/help.$command" ]; then
            "$tare" help $command >"$work/help.$command" 2>/dev/null || { rm -f "$work/help.$command"; echo "$file: tare $words: unknown command '$command'"; continue; }
        fi
        for option in $(grep -oE '(^| |\[)--[A-Za-z][A-Za-z0-9_-]*' <<<"$words" | tr -d ' ['); do
            [ "$option" = --help ] && continue
            option=${option#--}
            option=${option//_/[-_]}
            grep -qE "^  (-., |    )--(\[no-\])?(${option//-/[-_]}|${option#no-})( |$)" "$work/help.$command" ||
                echo "$file: tare $words: '$command' has no option --$option"
        done
        for option in $(grep -oE ' -[a-zA-Z]( |$)' <<<"$words" | tr -d ' '); do
            grep -qE "^  $option, " "$work/help.$command" || echo "$file: tare $words: '$command' has no option $option"
        done
    done < <(command_lines "$@")
    echo "$count"
}

# The checks find what is wrong.
mkdir "$work/docs"
cat >"$work/docs/wrong.md" <<'WRONG'
# A `Part`, and more
# A part and more
See [here](nowhere.md), [there](wrong.md#part), [there](#a-part-and-more), [there](wrong.md#a-part-and-more-1), [a block](#no-part),
`[not](a-link)` and `tare run m --dato x`.
```
# no part
tare calibrat m
$ tare convert --input_model_dir=a \
      --output-model-dir b --no-such | tare --ignored
tare dataset make -z f
```
WRONG
check_links "$work/docs/wrong.md" | sed "s|$work/||g" | diff - <(echo "docs/wrong.md: the link nowhere.md leads nowhere
docs/wrong.md: the link wrong.md#part names no section of docs/wrong.md
docs/wrong.md: the link #no-part names no section of docs/wrong.md") || fail "links: other errors are found"
check_commands "$work/docs/wrong.md" >"$work/found"
[ "$(wc -l <"$work/found")" -eq 5 ] && [ "$(tail -1 "$work/found")" = 4 ] || fail "wrong commands: $(cat "$work/found")"
for text in "no option --dato" "unknown command 'calibrat'" "no option --no[-_]such\|no option --no-such" "no option -z"; do
    grep -q -- "$text" "$work/found" || fail "did not find: $text in $(cat "$work/found")"
done

# Every error that a person can meet is explained by the troubleshooting page, and what it explains is said by some source.
# (Kernels' own words are a family there.)
if command -v python3 >/dev/null; then
    python3 scripts/list-messages.py --page docs/troubleshooting.md base proto datasets calib quant tpu convert eval workflow api cli \
        graph interpreter/kernel.c interpreter/feedback.c interpreter/execution interpreter/inference interpreter/validation interpreter/plugins >"$work/found" || fail "docs/troubleshooting.md: $(cat "$work/found")"
    read -r texts _ entries _ < <(tail -1 "$work/found")
    [ "${texts:-0}" -ge 700 ] && [ "${entries:-0}" -ge 400 ] || fail "only found: $(tail -1 "$work/found")"
    mkdir "$work/sources" # the check finds what is wrong
    cat >"$work/sources/a.c" <<'WRONG'
    TARE_FAIL(TARE_IO, "a new error of %s, "
              "%" PRId64 " lines (expected %d)", a, b, c);
    TARE_TRY(TARE_FAIL(TARE_USAGE, near ? "no word '%s' (did you mean '%s'?)" : "no word '%s'", word, near));
WRONG
    printf "| message | cause | remedy |\n|---|---|---|\n| \`no word '…' (did\`, \`never said\` | a | b |\n" >"$work/docs/messages.md"
    python3 scripts/list-messages.py --page "$work/docs/messages.md" "$work/sources" >"$work/found" && fail "the check finds nothing wrong"
    grep -qF 'a.c:1: no entry explains: a new error of …, … lines (expected …)' "$work/found" && grep -qF "a.c:3: no entry explains: no word '…'" "$work/found" &&
        grep -qF 'messages.md: no error says: never said' "$work/found" && grep -q '^3 texts, 2 entries, 3 wrong$' "$work/found" || fail "messages: $(cat "$work/found")"
fi

# C listings of docs/adding.md compile where they belong; Python blocks are Python.
listings=0
while IFS= read -r name; do
    sed -n "\|^/\* $name \*/\$|,/^\`\`\`\$/p" docs/adding.md | sed '$d' >"$work/$name"
    cc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -I. -I"$TARE_BUILD_DIR/generated" "$work/$name" 2>"$work/found" ||
        fail "docs/adding.md: $name: $(head -3 "$work/found")"
    [ "$(wc -l <"$work/$name")" -ge 10 ] && listings=$((listings + 1))
done < <(sed -nE 's|^/\* ([a-z_]+\.c) \*/$|\1|p' docs/adding.md)
[ "$listings" -ge 3 ] || fail "docs/adding.md: $listings listings"
if command -v python3 >/dev/null; then
    python3 - README.md docs/*.md python/examples/*.py >"$work/found" 2>&1 <<'PYTHON' || fail "$(cat "$work/found")"
import re, sys
count = 0
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    for block in [text] if path.endswith(".py") else re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        count += 1
        try:
            compile(block, path, "exec")
        except SyntaxError as error:
            sys.exit(f"{path}: {error}: {error.text}")
if count < 5:
    sys.exit(f"only {count} blocks of Python were found")
PYTHON
fi

# Names and options in the types of the Python package are those of the program.
if command -v python3 >/dev/null; then python3 scripts/make-python-types.py "$tare" --check >"$work/found" 2>&1 || fail "$(cat "$work/found")"; fi

# The picture of a terminal in README shows what the program prints.
python=$(command -v python3) && have_pty && { "$python" scripts/record-terminal.py "$tare" --check >"$work/found" 2>&1 || fail "$(cat "$work/found")"; }

check_links README.md CONTRIBUTING.md CHANGELOG.md docs/*.md examples/*/*.md */README.md */*/README.md >"$work/found"
[ ! -s "$work/found" ] || fail "$(cat "$work/found")"
check_commands README.md CONTRIBUTING.md docs/*.md >"$work/found"
[ "$(tail -1 "$work/found")" -ge 60 ] || fail "only $(tail -1 "$work/found") commands were found in the documents (expected 60 or more)"
[ "$(wc -l <"$work/found")" -eq 1 ] || fail "$(sed '$d' "$work/found")"
finish
