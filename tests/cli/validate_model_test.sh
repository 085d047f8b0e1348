# tare validate agrees with the independent checker, place by place, on every real model.
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
data=${TARE_TEST_DATA:-$TARE_TEST_DATA_DEFAULT}
checker=$data/../tools/check_savedmodel.py
[ -d "$data/models" ] && [ -f "$checker" ] || exit 77
/usr/bin/python3 "$source_dir/tests/validation/compare.py" "$tare" "$checker" "$data/models"
