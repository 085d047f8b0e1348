# Sourced by scripts of several stages: `stage NAME COMMAND…` runs a command, and at the end of the script, also when a
# stage fails, the seconds of each stage are listed on standard error.
stages=
stage() {
    local start=$SECONDS status=0
    "${@:2}" || status=$?
    stages+=$(printf '%6d s  %s%s' $((SECONDS - start)) "$1" "$([ $status -eq 0 ] || echo ': failed')")$'\n'
    return $status
}
trap 'printf "%s" "$stages" >&2' EXIT
