// Tables below an element with the class "sortable" are sorted by a click on a column's head.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".sortable table")) {
    const heads = [...table.tHead.rows[0].cells];
    const value = (row, k) => {
      const text = row.cells[k].textContent.replace("−", "-").trim();
      const parsed = parseFloat(text);
      return Number.isNaN(parsed) ? text : parsed;
    };
    heads.forEach((head, k) => {
      head.setAttribute("aria-sort", "none");
      head.addEventListener("click", () => {
        const order = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", order);
        const rows = [...table.tBodies[0].rows].sort((a, b) => {
          const [x, y] = [value(a, k), value(b, k)];
          const less = typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === "number" ? -1 : 1;
          return order === "ascending" ? less : -less;
        });
        table.tBodies[0].append(...rows);
      });
    });
  }
});
