// What the scripts of all pages share: the data, light and dark, formats, tables that sort.
// Functions that touch no element stand in `npumesh` also where there is no page (node, in tests).
"use strict";

var npumesh = (() => {
  // Three digits, as the command's tables have them.
  function scaled(value, units) {
    let unit = 0;
    while (Math.abs(value) >= 999.5 && unit + 1 < units.length) {
      value /= 1000;
      ++unit;
    }
    if (unit === 0) return `${Math.round(value)} ${units[0]}`;
    const size = Math.abs(value);
    return `${value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0)} ${units[unit]}`;
  }
  const duration = (ns) => scaled(ns, ["ns", "us", "ms", "s"]);
  const bytes = (count) => scaled(count, ["B", "kB", "MB", "GB"]);
  const percent = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)}%` : "");
  const rate = (value) => (value === null || value === undefined ? "-" : value.toPrecision(3));

  // Rows in the order of a column; equal ones keep their order. Values that are not known come last.
  function sorted(rows, value, descending) {
    const known = (row) => value(row) !== null && value(row) !== undefined;
    const compare = (a, b) => {
      if (known(a) !== known(b)) return known(a) ? -1 : 1;
      if (!known(a)) return 0;
      const x = value(a), y = value(b);
      const order = x < y ? -1 : x > y ? 1 : 0;
      return descending ? -order : order;
    };
    return rows.slice().sort(compare);
  }

  // An element with attributes and children; texts become text, never HTML.
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // A table that sorts by its heads. A column is {title, value(row), text(row) or none, node(row)
  // (an element in place of the text) or none, isText}; of more rows than `most` the rest comes at a
  // press of a button.
  function table(columns, rows, caption, most = 50) {
    const head = element("tr");
    const body = element("tbody");
    const more = element("button", { type: "button" });
    let shown = most;
    let order = rows;
    const fill = () => {
      body.replaceChildren(...order.slice(0, shown).map((row) => {
        const line = element("tr");
        for (const column of columns) {
          const content = column.node ? column.node(row) : column.text ? column.text(row) : String(column.value(row));
          line.append(element("td", column.isText ? { class: "text" } : {}, content));
        }
        return line;
      }));
      more.hidden = shown >= order.length;
      more.textContent = `show ${Math.min(order.length - shown, 500)} more of ${order.length}`;
    };
    columns.forEach((column) => {
      const button = element("button", { type: "button" }, column.title);
      const cell = element("th", { scope: "col" }, button);
      if (column.isText) cell.className = "text";
      button.addEventListener("click", () => {
        const descending = cell.getAttribute("aria-sort") !== "descending";
        for (const other of head.children) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
        order = sorted(rows, column.value, descending);
        fill();
      });
      head.append(cell);
    });
    more.addEventListener("click", () => {
      shown += 500;
      fill();
    });
    fill();
    const frame = element("div", { class: "frame", tabindex: "0", role: "region", "aria-label": caption },
      element("table", {}, element("thead", {}, head), body));
    return element("div", {}, frame, more);
  }

  // The value of a colour of the style sheet.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  // Tells pages that draw in colours of their script: the event "themechange" of the document.
  function setUpTheme() {
    const button = document.getElementById("theme");
    const show = () => {
      button.textContent = isDark() ? "light" : "dark";
      document.dispatchEvent(new Event("themechange"));
    };
    button.addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      show();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    show();
  }

  const shared = { duration, bytes, percent, rate, sorted, element, table, colour, isDark, data: null };
  if (typeof document !== "undefined") {
    shared.data = JSON.parse(document.getElementById("data").textContent);
    setUpTheme();
  }
  return shared;
})();
if (typeof module !== "undefined") module.exports = npumesh;
