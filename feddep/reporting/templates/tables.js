// Folding, sorting and filtering.  The page says the same without it.
"use strict";
(() => {
  const text = cell => cell ? cell.textContent.trim() : "";
  const number = string => {
    const found = string.replace(/−/g, "-").match(/^[^\d+-]*([+-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?)/i);
    return found ? parseFloat(found[1].replace(/,/g, "")) : NaN;
  };
  // The cell in a column, which may span several.
  const cellAt = (row, column) => {
    let end = 0;
    for (const cell of row.cells) if ((end += cell.colSpan) > column) return cell;
    return null;
  };
  // A row with an empty first cell belongs to the row above.
  const groupsOf = body => {
    const groups = [];
    for (const row of body.rows) {
      if (groups.length && text(row.cells[0]) === "") groups[groups.length - 1].push(row);
      else groups.push([row]);
    }
    return groups;
  };
  const compare = (a, b) => {
    const [x, y] = [number(a), number(b)];
    if (!isNaN(x) && !isNaN(y)) return x - y;
    if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
    return a.localeCompare(b, "en");
  };
  for (const table of document.querySelectorAll("table.data")) {
    const head = table.tHead && table.tHead.rows[0], body = table.tBodies[0];
    if (!head || !body || body.rows.length < 3) continue;
    const groups = groupsOf(body);
    [...head.cells].forEach((cell, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...cell.childNodes);
      if (!text(button)) button.textContent = "↕";
      button.title = "Sort by this column";
      cell.append(button);
      button.addEventListener("click", () => {
        const down = cell.getAttribute("aria-sort") === "ascending";
        for (const other of head.cells) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = group => text(cellAt(group[0], column));
        const known = groups.filter(group => !/^[–-]?$/.test(key(group)));
        const unknown = groups.filter(group => !known.includes(group));
        known.sort((a, b) => (down ? -1 : 1) * compare(key(a), key(b)));
        for (const group of [...known, ...unknown]) body.append(...group);
      });
    });
    if (body.rows.length < 8) continue;
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "Filter rows, such as: cora fedavg";
    field.setAttribute("aria-label", "Filter the rows of the table below");
    const count = document.createElement("span");
    count.className = "soft";
    count.setAttribute("role", "status");
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const group of groups) {
        const said = group.map(row => row.textContent.toLowerCase()).join(" ");
        const fits = words.every(word => said.includes(word));
        for (const row of group) row.hidden = !fits;
        shown += fits ? group.length : 0;
      }
      count.textContent = words.length ? ` ${shown} of ${body.rows.length} rows` : "";
    });
    const bar = document.createElement("p");
    bar.className = "filter";
    bar.append(field, count);
    table.closest(".scroll").before(bar);
  }
  const folds = [...document.querySelectorAll("details.section, details.part")];
  const bar = document.getElementById("folding");
  for (const [label, open] of [["Open all", true], ["Fold all", false]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => folds.forEach(fold => { fold.open = open; }));
    bar.append(button, " ");
  }
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.tagName === "DETAILS") target.open = true;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", () => folds.forEach(fold => { fold.open = true; }));
  for (const figure of document.querySelectorAll("figure .scroll")) {
    figure.title = "Click to see it larger, or fitted again";
    figure.addEventListener("click", () => figure.classList.toggle("large"));
  }
  reveal();
})();
