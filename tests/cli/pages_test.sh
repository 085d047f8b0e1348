#!/usr/bin/env bash
# The HTML pages stand for themselves and fit: no reference to the outside, nothing wider than a telephone's or a wide
# screen (what lies in a box that scrolls may be). The second half needs Chromium and is left out without it.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model

"$tare" calibrate "$model" --data "$glyphs/calibration.tfrecord.gz" -o "$work/c.calib" --quiet || fail "calibrate: $?"
"$tare" show "$work/c.calib" --html "$work/calibration.html" >/dev/null || fail "show: $?"
"$tare" compare "$model" --calibration "$work/c.calib" --data "$glyphs/eval.tfrecord.gz" --limit 100 --quiet --depthwise \
    --methods static,dynamic,weight_only,bfloat16 --algorithms min_max,mse --granularities per_channel,per_tensor \
    --sensitivity --sensitivity-limit 20 --report "$work/comparison.html" >/dev/null || fail "compare: $?"
mkdir "$work/models"
ln -s "$model" "$work/models/a_model_with_a_rather_long_name_as_people_give_them_when_they_keep_many_versions"
"$tare" batch "$work/models" --methods static,weight_only --data "$glyphs/calibration.tfrecord.gz" --output-dir "$work/out" \
    --evaluation "$glyphs/eval.tfrecord.gz" --limit 20 --min-sqnr 45 --quiet --report "$work/batch.html" >/dev/null 2>&1

for page in calibration comparison batch; do
    [ -s "$work/$page.html" ] || fail "$page: no page"
    grep -Eoi '<(script|link|img|iframe|object|embed)[ >]|(src|href|action)=|url\(|@import|https?://' "$work/$page.html" |
        grep -vi 'http://www.w3.org/' | head -3 | while read -r found; do echo "$page: $found"; done >"$work/found"
    [ -s "$work/found" ] && fail "refers to the outside: $(cat "$work/found")"
done

browser=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$browser" ]; then
    echo "no Chromium: widths are not measured"
    finish
    exit
fi
# Elements outside of scrolling boxes that reach beyond the window's edge, by tag and class.
cat >"$work/measure.js" <<'JS'
addEventListener('load', () => {
  const wide = [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') || e.classList.contains('scroll'))
    .filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && (r.right > innerWidth + 1 || r.left < -1); })
    .map(e => e.tagName + '.' + (e.className.baseVal ?? e.className));
  document.title = 'measured ' + innerWidth + ' page ' + document.documentElement.scrollWidth + ' over ' + [...new Set(wide)].join(' ');
});
JS
for page in calibration comparison batch; do
    { cat "$work/$page.html"; echo '<script>'; cat "$work/measure.js"; echo '</script>'; } >"$work/measured.html"
    for width in 500 1600; do # a headless window is 500 pixels wide at least; 360 is emulated by a frame
        timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size=$width,900 \
            --dump-dom "file://$work/measured.html" 2>/dev/null | grep -o '<title>measured[^<]*' >"$work/title" || true
        read -r _ inner _ whole _ over < <(sed 's/<title>//' "$work/title")
        [ -n "${inner:-}" ] || { fail "$page at $width: the browser measured nothing"; continue; }
        [ "$whole" -le "$inner" ] && [ -z "$over" ] || fail "$page at $width: the page is $whole wide in $inner; beyond the edge: $over"
    done
    printf '<body style="margin:0"><iframe srcdoc="%s" style="width:360px;height:900px;border:0"></iframe><script>addEventListener("load",()=>{document.title=frames[0].document.title})</script>' \
        "$(sed 's/&/\&amp;/g; s/"/\&quot;/g' "$work/measured.html")" >"$work/frame.html"
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size=800,900 \
        --dump-dom "file://$work/frame.html" 2>/dev/null | grep -o '<title>measured[^<]*' >"$work/title" || true
    read -r _ inner _ whole _ over < <(sed 's/<title>//' "$work/title")
    [ "${inner:-0}" = 360 ] || { fail "$page at 360: the browser measured '$(cat "$work/title")'"; continue; }
    [ "$whole" -le 360 ] && [ -z "$over" ] || fail "$page at 360: the page is $whole wide; beyond the edge: $over"
done
finish
