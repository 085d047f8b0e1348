# tare validate agrees with the independent checker, place by place, on every real model.
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
need_data models ../tools/check_savedmodel.py
/usr/bin/python3 "$source_dir/tests/validation/compare.py" "$tare" "$test_data/../tools/check_savedmodel.py" "$test_data/models"
