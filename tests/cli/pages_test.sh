#!/usr/bin/env bash
# HTML pages have no external references (that of a batch links to the pages next to it), and nothing is wider than the
# screen of a phone or a wide screen (except inside scrolling boxes). Tables sort by mouse and keyboard and can be filtered,
# points of plots are reached by keyboard. All but the first needs Chromium and is skipped without it.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model

"$tare" calibrate "$model" --data "$glyphs/calibration.tfrecord.gz" -o "$work/c.calib" --quiet || fail "calibrate: $?"
"$tare" show "$work/c.calib" --report "$work/calibration.html" >/dev/null || fail "show: $?"
"$tare" compare "$model" --calibration "$work/c.calib" --data "$glyphs/eval.tfrecord.gz" --limit 100 --quiet --depthwise \
    --methods static,dynamic,weight_only,bfloat16 --algorithms min_max,mse --granularities per_channel,per_tensor \
    --sensitivity --sensitivity-limit 20 --report "$work/comparison.html" >/dev/null || fail "compare: $?"
mkdir "$work/models"
ln -s "$model" "$work/models/a_model_with_a_rather_long_name_as_people_give_them_when_they_keep_many_versions"
"$tare" batch "$work/models" --methods static,weight_only --data "$glyphs/calibration.tfrecord.gz" --output-dir "$work/out" \
    --eval "$glyphs/eval.tfrecord.gz" --limit 20 --min-sqnr 45 --quiet --report "$work/batch.html" >/dev/null 2>&1

"$tare" diff "$work/out/"*-weight_only "$model" --report "$work/models_diff.html" >/dev/null || fail "diff: $?"
for limit in 20 40; do
    "$tare" compare "$model" --data "$glyphs/eval.tfrecord.gz" --methods weight_only,bfloat16 --limit $limit --quiet --report "$work/$limit.json" >/dev/null ||
        fail "compare: $?"
done
"$tare" diff "$work/20.json" "$work/40.json" --report "$work/reports_diff.html" >/dev/null || fail "diff: $?"
pages="calibration comparison batch models_diff reports_diff"
# what stands at 100 dB is not measured there
"$tare" compare "$model" --data "$glyphs/eval.tfrecord.gz" --methods weight_only --limit 5 --metric sqnr --quiet --report "$work/sqnr.html" >/dev/null ||
    fail "compare: $?"
exact="A model with the values of float is at the top."
grep -q "$exact" "$work/sqnr.html" || fail "the plot of SQNR does not say where an exact model is"
grep -q "$exact" "$work/comparison.html" && fail "the plot of top-1 speaks of exact models"

for page in $pages; do
    [ -s "$work/$page.html" ] || fail "$page: no page"
    grep -Eoi '<script [^>]*|<(link|iframe|object|embed)[ >]|(src|action)=[^;]*;[a-z0-9]*|href="[^#][^"]*|url\(|@import|https?://' "$work/$page.html" |
        grep -viE 'http://www.w3.org/|^src="data:image/png;base64$|^href="batch-pages/[a-z0-9_.-]*\.html$' | head -3 | while read -r found; do echo "$page: $found"; done >"$work/found"
    [ -s "$work/found" ] && fail "external references: $(cat "$work/found")"
done

browser=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$browser" ]; then
    echo "skipped: the widths of pages (needs Chromium: apt-get install chromium)"
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
# Every page in a frame of every width: a phone, a wide screen, and paper (the print rules, on A4 within its margins, where
# nothing scrolls and a browser shrinks what is too wide). One window, because a browser takes a second to start.
frame() { # NAME WIDTH FILE
    printf '<iframe id="%s" srcdoc="%s" style="width:%spx;height:900px;border:0"></iframe>' "$1" "$(sed 's/&/\&amp;/g; s/"/\&quot;/g' "$3")" "$2"
}
{
    for page in $pages; do
        { cat "$work/$page.html"; echo '<script>'; cat "$work/measure.js"; echo '</script>'; } >"$work/measured.html"
        sed 's/@media print {/@media all {/' "$work/measured.html" >"$work/printed.html"
        frame "$page-screen" 360 "$work/measured.html"
        frame "$page-screen" 1600 "$work/measured.html"
        frame "$page-paper" 703 "$work/printed.html"
    done
    echo '<pre id="all"></pre><script>addEventListener("load", () => {'
    echo 'document.getElementById("all").textContent = [...document.querySelectorAll("iframe")].map(f => f.id + " " + parseInt(f.style.width) + " " + f.contentDocument.title).join("\n") + "\n" })</script>'
} >"$work/frames.html"
timeout 600 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size=1700,900 --dump-dom \
    "file://$work/frames.html" 2>/dev/null | grep -oE '[a-z_]+-(screen|paper) [0-9]+ [^<]*$|[a-z_]+-(screen|paper) [0-9]+ measured[^<]*' >"$work/widths"
measured=0
while read -r page width word inner _ whole _ over; do
    [ "$word" = measured ] && [ "$inner" = "$width" ] || { fail "$page at $width: the browser measured '$word ${inner:-nothing}'"; continue; }
    [ "$whole" -le "$width" ] && [ -z "$over" ] || fail "$page at $width: the page is $whole wide; beyond the edge: $over"
    measured=$((measured + 1))
done <"$work/widths"
[ "$measured" = $((3 * $(wc -w <<<"$pages"))) ] || fail "$measured pages fit (expected three widths each of: $pages)"

# Sorting, filtering and keyboard focus, by a script that does what a reader does.
cat >"$work/use.js" <<'JS'
const problems = [], check = (holds, what) => { if (!holds) problems.push(what); };
const heading = [...document.querySelectorAll('table.data th')].find(h => h.textContent === 'MB');
const table = heading.closest('table'), heads = [...table.tHead.rows[0].cells], column = heading.cellIndex;
const numbers = () => [...table.tBodies[0].rows].map(r => parseFloat(r.cells[column].textContent));
const ordered = (list, up) => list.every((x, i) => !i || (up ? list[i - 1] <= x : list[i - 1] >= x));
check(new Set(numbers()).size > 2, 'no sizes to sort by');
check(!ordered(numbers(), true) && !ordered(numbers(), false), 'sorted before a click');
const button = heads[column].querySelector('button');
check(button, 'a heading that sorts is no button');
button.click();
check(ordered(numbers(), true) && heads[column].getAttribute('aria-sort') === 'ascending', 'a click does not sort: ' + numbers());
button.focus(); /* Enter and Space press the button that has the focus */
check(document.activeElement === button, 'a heading cannot be focused');
const active = button.matches(':focus');
button.click();
check(ordered(numbers(), false), 'a second press does not sort downwards: ' + numbers());
const filter = document.querySelector('input.filter:has(+ .scroll)');
if (filter) {
  const body = filter.nextElementSibling.querySelector('tbody'), shown = () => [...body.rows].filter(r => !r.hidden).length;
  const all = shown();
  filter.value = 'dynamic'; filter.dispatchEvent(new Event('input'));
  check(shown() > 0 && shown() < all, 'the filter shows ' + shown() + ' of ' + all + ' rows');
} else check(false, 'no filter over a long table');
const points = [...document.querySelectorAll('.point[tabindex]')];
const hidden = p => { const s = getComputedStyle(p.querySelector('.tip')); return s.display === 'none' || s.visibility === 'hidden' || s.opacity === '0'; };
check(points.length > 5, points.length + ' points for the keyboard');
check(points.every(hidden), 'a tip is shown without focus');
for (const p of points) { p.focus(); check(document.activeElement === p && !hidden(p), 'a point has no focus, or no tip with it'); }
const lines = [...document.querySelectorAll('.network .unit')], line = n => lines[n].querySelector('summary');
check(lines.length > 15, 'a network of ' + lines.length + ' lines');
line(0).focus();
line(0).dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }));
check(document.activeElement === line(1), 'the arrow key does not lead to the next layer');
line(1).dispatchEvent(new KeyboardEvent('keydown', { key: 'End', bubbles: true }));
check(document.activeElement === line(lines.length - 1), 'End does not lead to the last layer');
const layer = lines.find(l => /Conv2D/.test(l.textContent) && /int8/.test(l.textContent));
layer.querySelector('summary').click();
check(layer.open && layer.querySelector('.inside').getBoundingClientRect().height > 50, 'a layer does not open');
const link = layer.querySelector('a[href^="#unit-"]');
check(link && document.getElementById(link.hash.slice(1)), 'what a layer reads is no link');
check([...document.querySelectorAll('.network a')].every(a => document.getElementById(a.hash.slice(1))), 'a link to nothing');
check(line(2).querySelector('.lanes path').getAttribute('d').includes('M10 0V50'), 'no line between layers');
const spot = layer.querySelector('.spot'), colour = () => getComputedStyle(spot).backgroundColor, before = colour();
document.querySelector('.network .by-time').click();
check(colour() !== before, 'the colour does not change from error to time');
const copies = [...document.querySelectorAll('code.command + .copy')];
check(copies.length > 3, copies.length + ' buttons that copy');
document.title = 'used ' + (problems.length ? problems.join('; ') : 'without problems') + (active ? '' : ' (inactive window)');
JS
{ cat "$work/comparison.html"; echo '<script>'; cat "$work/use.js"; echo '</script>'; } >"$work/used.html"
# :focus applies to the active window only. A slow machine may activate it after the script, which is then repeated.
for _ in 1 2 3 4 5 6; do
    used=$(timeout 300 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --dump-dom "file://$work/used.html" 2>/dev/null |
        grep -oE '<title>used [^<]*')
    [[ $used = *'(inactive window)' ]] || break
done
[ "$used" = '<title>used without problems' ] || fail "using the comparison's page: ${used:-the script did not end}"
finish
