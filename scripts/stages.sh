# Sourced by scripts of several stages: `stage NAME COMMAND…` runs a command, and at the end of the script, also when a
# stage fails, the seconds of each stage are listed on standard error. A command that ends with 77 was skipped.
stages=
stage() {
    local start=$SECONDS status=0
    "${@:2}" || status=$?
    local result=
    case $status in
    0) ;;
    77) result=': skipped' status=0 ;;
    *) result=': failed' ;;
    esac
    stages+=$(printf '%6d s  %s%s' $((SECONDS - start)) "$1" "$result")$'\n'
    return $status
}
trap 'printf "%s" "$stages" >&2' EXIT
