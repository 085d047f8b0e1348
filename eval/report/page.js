/* Sorting and filtering of tables. Pages are complete without it. */
(function () {
  "use strict";
  /* Numbers sort by value; "12 of 20", "2.4 dB" and "+0.10 *" by their first number. */
  function value(row, column) {
    var text = row.cells[column] ? row.cells[column].textContent.trim() : "";
    if (text === "exact") return Infinity;
    var number = /^[+\u2212-]?[0-9.,]+(e[+-]?[0-9]+)?/.exec(text);
    return number ? parseFloat(number[0].replace(/,/g, "").replace("\u2212", "-")) : text.toLowerCase();
  }
  function sort(table, column) {
    var head = table.tHead.rows[0].cells[column], body = table.tBodies[0];
    var up = head.getAttribute("aria-sort") !== "ascending";
    var rows = Array.prototype.slice.call(body.rows);
    rows.sort(function (a, b) {
      var x = value(a, column), y = value(b, column);
      if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
    });
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell) { cell.setAttribute("aria-sort", "none"); });
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    rows.forEach(function (row) { body.appendChild(row); });
  }
  function add_filter(table) {
    var input = document.createElement("input");
    input.className = "filter";
    input.type = "search";
    input.placeholder = "Filter rows";
    input.setAttribute("aria-label", "Filter rows");
    input.addEventListener("input", function () {
      var wanted = input.value.toLowerCase();
      Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
        row.hidden = row.textContent.toLowerCase().indexOf(wanted) < 0;
      });
    });
    table.parentNode.parentNode.insertBefore(input, table.parentNode);
  }
  Array.prototype.forEach.call(document.querySelectorAll("table.data"), function (table) {
    var rows = table.tBodies[0].rows.length;
    if (rows > 1) Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell, column) {
      if (!cell.textContent) return;
      cell.setAttribute("aria-sort", "none");
      cell.tabIndex = 0;
      cell.addEventListener("click", function () { sort(table, column); });
      cell.addEventListener("keydown", function (event) { if (event.key === "Enter") sort(table, column); });
    });
    if (rows > 12) add_filter(table);
  });
  /* A link to a folded card opens it. */
  function open_target() {
    var target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  }
  window.addEventListener("hashchange", open_target);
  window.addEventListener("beforeprint", function () {
    Array.prototype.forEach.call(document.querySelectorAll("details"), function (card) { card.open = true; });
  });
  open_target();
})();
