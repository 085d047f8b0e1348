#!/usr/bin/env bash
# Manual pages and completions hold every command and option that 'tare help' shows, shells accept the scripts, and they
# complete. zsh and fish are tried where they are installed; what their scripts hold is looked at in any case.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"

commands_of() { sed -nE 's/^  ([a-z]+) +[a-z].*/\1/p'; }
options_of() { # the long options of one command, as its help shows them
    "$tare" help $1 | sed -nE 's/^  (-., |    )--(\[no-\])?([A-Za-z0-9_-]+).*/\2 \3/p' |
        while read -r a b; do
            if [ -n "$b" ]; then echo "--$b"; echo "--no-$b"; else echo "--$a"; fi
        done

}
"$tare" help | commands_of >"$work/commands"
"$tare" help dataset | sed -n '/^usage/,$p' | commands_of >"$work/parts"
[ "$(wc -l <"$work/commands")" -ge 17 ] || fail "'tare help' shows $(wc -l <"$work/commands") commands (expected 17 or more)"
[ "$(tr '\n' ' ' <"$work/parts")" = 'info head make split export ' ] || fail "'tare help dataset' shows: $(cat "$work/parts")"
{ cat "$work/commands"; sed 's/^/dataset /' "$work/parts"; } >"$work/paths"
grep -qx man "$work/commands" && fail "a hidden command is shown"

expect 2 "unknown command 'calibrat' (did you mean 'calibrate'?)" "$tare" help calibrat
expect 2 "unknown command 'mak' (did you mean 'make'?)" "$tare" help dataset mak
expect 2 "unknown shell (expected bash, zsh or fish, got 'csh')" "$tare" completion csh
[ "$("$tare" help dataset make)" = "$("$tare" dataset make --help)" ] || fail "'tare help dataset make' is not its help"

"$tare" man --output-dir "$work/man" || fail "man --output-dir: $?"
for shell in bash zsh fish; do "$tare" completion $shell >"$work/$shell" || fail "completion $shell: $?"; done
[ "$(ls "$work/man" | wc -l)" -eq $(($(wc -l <"$work/paths") + 1)) ] || fail "pages: $(ls "$work/man" | tr '\n' ' ')"

bash -n "$work/bash" || fail "bash refuses its script"
. "$work/bash"
completions() { # WORD…: what bash offers for the last word
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _tare
    printf '%s\n' "${COMPREPLY[@]}" | sort
}

while read -r path; do
    page=$work/man/tare-${path// /-}.1
    options_of "$path" | { cat; echo --help; } | sort -u >"$work/page_options"
    # Shells also complete the options of every command, which the manual page of tare itself documents.
    { cat "$work/page_options"; [ "$path" = dataset ] || "$tare" help | sed -n '/^Options of every command/,$p' | grep -oE -- '--[a-z-]+'; } | sort -u >"$work/options"
    [ -s "$page" ] || { fail "$path: no manual page"; continue; }
    while read -r option; do
        place=$page
        grep -qxF -- "$option" "$work/page_options" || place=$work/man/tare.1
        grep -qF "fB${option//-/\\-}\\fR" "$place" || fail "$path: the manual page lacks $option"
        grep -q "^_tare_${path// /_}()" "$work/zsh" || fail "$path: not in the zsh script"
        grep -qE -- "(^|[ {,'])$option[]{},='[]" <<<"$(sed -n "/^_tare_${path// /_}()/,/^}/p" "$work/zsh")" || fail "$path: zsh lacks $option"
        [ "$option" = --help ] || grep -qE "__tare_at $path' -l ${option#--}( |$)" "$work/fish" || fail "$path: fish lacks $option"
    done <"$work/options"
    words=(tare $path)
    completions "${words[@]}" -- >"$work/offered"
    diff "$work/options" "$work/offered" >"$work/diff" || fail "$path: bash offers other options than the help shows: $(cat "$work/diff")"
    name=${path##* }
    grep -qx "$name" <<<"$(completions "${words[@]}")" || fail "bash does not complete '$path'"
    grep -qE "^ +'$name:" "$work/zsh" || fail "zsh does not know '$path'"
    grep -qE "__tare_only( dataset)?' -a $name " "$work/fish" || fail "fish does not know '$path'"
done <"$work/paths"

grep -q -- --max-memory "$work/options" || fail "no options of every command"
[ "$(completions tare cal)" = calibrate ] || fail "tare cal -> $(completions tare cal)"
[ "$(completions tare dataset sp)" = split ] || fail "tare dataset sp -> $(completions tare dataset sp)"
[ "$(completions tare completion f)" = fish ] || fail "tare completion f -> $(completions tare completion f)"
[ "$(completions tare help qu)" = quantize ] || fail "tare help qu -> $(completions tare help qu)"
[ "$(completions tare calibrate m --observe q)" = quantizable ] || fail "--observe q -> $(completions tare calibrate m --observe q)"
[ "$(completions tare calibrate m --observe = a)" = all ] || fail "--observe=a -> $(completions tare calibrate m --observe = a)"
[ -z "$(completions tare calibrate m --limit 1)" ] || fail "--limit 1 -> $(completions tare calibrate m --limit 1)"
# Comma-separated lists: the word after the last comma, without words that the list contains.
[ "$(completions tare compare m --methods static,we)" = static,weight_only ] || fail "--methods static,we -> $(completions tare compare m --methods static,we)"
[ "$(completions tare compare m --methods static,fp8,f | tr '\n' ' ')" = 'static,fp8,float static,fp8,fp8_dynamic static,fp8,fp8_weight_only ' ] ||
    fail "--methods static,fp8,f -> $(completions tare compare m --methods static,fp8,f)"
[ "$(completions tare quantize m --passes gptq,b)" = gptq,bias_correction ] || fail "--passes gptq,b -> $(completions tare quantize m --passes gptq,b)"
[ "$(completions tare quantize m --bits '' | tr '\n' ' ')" = '4 8 ' ] || fail "--bits -> $(completions tare quantize m --bits '')"
mkdir "$work/here" "$work/here/models" && touch "$work/here/modest.calib"
cd "$work/here" || exit 1
[ "$(completions tare inspect mod | tr '\n' ' ')" = 'models modest.calib ' ] || fail "tare inspect mod -> $(completions tare inspect mod)"
[ "$(completions tare convert --input-model-dir = mod)" = models ] || fail "--input-model-dir=mod -> $(completions tare convert --input-model-dir = mod)"
[ "$(completions tare calibrate m -o modes)" = modest.calib ] || fail "-o modes -> $(completions tare calibrate m -o modes)"

if command -v groff >/dev/null; then
    for page in "$work/man/"*.1; do
        groff -man -Kutf8 -Tutf8 -ww "$page" 2>"$work/warnings" >/dev/null
        [ ! -s "$work/warnings" ] || fail "$(basename "$page"): $(head -2 "$work/warnings")"
    done
    grep -qE '^ +--method M' <<<"$(groff -man -Kutf8 -Tutf8 -P-cbou "$work/man/tare-quantize.1")" || fail "tare-quantize.1 does not print '--method M'"
fi
if command -v zsh >/dev/null; then
    zsh -n "$work/zsh" || fail "zsh refuses its script"
fi
if command -v zsh >/dev/null && have_pty; then
    # (The marks around the line are written in two parts: the terminal may echo this definition.)
    # A zsh of its own on a pseudo terminal, with our script alone; tab is pressed behind the line.
    mkdir "$work/functions" && cp "$work/zsh" "$work/functions/_tare"
    cat >"$work/press_tab.zsh" <<'ZSH'
zmodload zsh/zpty
zpty z env PATH=$2:$PATH TERM=dumb HOME=$1 zsh -f -i
zpty -w z "unsetopt zle_bracketed_paste; PS1= PROMPT_EOL_MARK=; stty -echo"
zpty -w z "fpath=($1 \$fpath); autoload -Uz compinit && compinit -u -D"
zpty -w z "show() { print -r -- '<''<'\$BUFFER'>''>'; BUFFER=; }; zle -N show; bindkey '^X' show; print ready"
zpty -r -m z seen '*ready*' && zpty -n -w z "$3"$'\t\x18' && zpty -r -m z seen '*<<*>>*' && print -r -- "${${seen##*<<}%%>>*}"
zpty -d z
ZSH
    press_tab() { timeout 60 zsh -f "$work/press_tab.zsh" "$work/functions" "$(dirname "$tare")" "$1" </dev/null 2>&1; }
    while IFS='|' read -r typed expected; do
        became=$(press_tab "$typed")
        [ "$became" = "$expected" ] || fail "zsh makes '$became' of '$typed' (expected '$expected')"
    done <<'LINES'
tare cal|tare calibrate 
tare dataset sp|tare dataset split 
tare help qu|tare help quantize 
tare calibrate m --observe q|tare calibrate m --observe quantizable 
tare convert --output_m|tare convert --output_model_dir=
LINES
fi
if command -v fish >/dev/null; then
    fish --no-execute "$work/fish" || fail "fish refuses its script"
    offered=$(HOME=$work fish -N -c "source $work/fish; complete -C 'tare cal'; complete -C 'tare dataset ma'; complete -C 'tare help qu'; complete -C 'tare calibrate m --observe q'; complete -C 'tare convert --output_m'" 2>&1 | cut -f1 | tr '\n' ' ')
    [ "$offered" = 'calibrate make quantize quantizable --output_model_dir ' ] || fail "fish offers '$offered'"
fi
finish
