/* Sorting and filtering of tables, copying of commands, arrow keys in the network. Pages are complete without it. */
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
  /* A search field before an element that hides the items without its text. */
  function add_filter(before, label, items) {
    var input = document.createElement("input");
    input.className = "filter";
    input.type = "search";
    input.placeholder = label;
    input.setAttribute("aria-label", label);
    input.addEventListener("input", function () {
      var wanted = input.value.toLowerCase();
      Array.prototype.forEach.call(items, function (item) {
        item.hidden = item.textContent.toLowerCase().indexOf(wanted) < 0;
      });
    });
    before.parentNode.insertBefore(input, before);
  }
  Array.prototype.forEach.call(document.querySelectorAll("table.data"), function (table) {
    var rows = table.tBodies[0].rows.length;
    if (rows > 1) Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell, column) {
      if (!cell.textContent) return;
      var button = document.createElement("button");
      button.type = "button";
      while (cell.firstChild) button.appendChild(cell.firstChild);
      cell.appendChild(button);
      cell.setAttribute("aria-sort", "none");
      button.addEventListener("click", function () { sort(table, column); });
    });
    if (rows > 12) add_filter(table.parentNode, "Filter rows", table.tBodies[0].rows);
  });
  /* Commands get a button that copies them. */
  Array.prototype.forEach.call(document.querySelectorAll("code.command"), function (code) {
    var button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", function () {
      function done(copied) {
        button.textContent = copied ? "Copied" : "Press Ctrl+C";
        setTimeout(function () { button.textContent = "Copy"; }, 2000);
      }
      function select() {
        getSelection().selectAllChildren(code);
        done(document.execCommand("copy"));
      }
      if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(function () { done(true); }, select);
      else select();
    });
    code.parentNode.insertBefore(button, code.nextSibling);
  });
  /* Arrow keys, Home and End go from line to line of the network. */
  Array.prototype.forEach.call(document.querySelectorAll(".network"), function (network) {
    var units = network.querySelectorAll(".unit");
    if (units.length > 12) add_filter(units[0], "Filter layers", units);
    network.addEventListener("keydown", function (event) {
      var lines = Array.prototype.filter.call(units, function (unit) { return !unit.hidden; });
      var at = lines.indexOf(event.target.parentNode), last = lines.length - 1;
      var to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      lines[Math.max(0, Math.min(last, to))].querySelector("summary").focus();
    });
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
