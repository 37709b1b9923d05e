// The leaderboard without this script is one table. It adds a button to each head, which sorts, and fields
// above: of heads with data-filter, which rows are shown; of data-columns, which columns; and a search.
// A plain table with numbers sorts, too: by the number that a cell begins with, such as 0.012 of "+0.012▲".
const sortable = (table) => {
  const [head] = table.querySelectorAll("thead tr"), heads = [...head.cells], body = table.querySelector("tbody");
  const rows = [...body.rows];
  const number = (cell) => {
    const { order } = cell.dataset, [, found] = /^±?([+−]?\d[\d,]*(?:\.\d+)?)/.exec(order ? "" : cell.textContent) ?? [];
    return order ? Number(order) : found ? Number(found.replace("−", "-").replaceAll(",", "")) : null;
  };
  const cells = (k) => rows.map((row) => row.cells[k]);
  const numbers = heads.map((_, k) => cells(k).some((cell) => cell.dataset.order) || cells(k).filter((cell) => number(cell) !== null).length > rows.length / 2);
  if (rows.length < 4 || !numbers.includes(true)) return;
  const value = (row, k) => {
    const cell = row.cells[k], text = cell.textContent;
    return numbers[k] ? number(cell) : text === "–" || cell.dataset.columns ? null : text;
  };
  const sort = (k) => {
    const orders = numbers[k] ? ["descending", "ascending"] : ["ascending", "descending"];
    const order = orders.find((each) => each !== heads[k].ariaSort);
    heads.forEach((each, other) => (each.ariaSort = other === k ? order : null));
    const sign = order === "ascending" ? 1 : -1;
    const before = (x, y) => (x === y ? 0 : x === null ? 1 : y === null ? -1 : x < y ? -sign : sign);
    body.append(...rows.sort((a, b) => before(value(a, k), value(b, k))));
  };
  heads.forEach((each, k) => {
    if (!each.textContent) return;
    const button = document.createElement("button");
    button.append(...each.childNodes);
    button.addEventListener("click", () => sort(k));
    each.append(button);
  });
};
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".md-typeset table:has(thead)").forEach(sortable);
  for (const board of document.querySelectorAll(".board")) {
    const heads = [...board.querySelectorAll("thead th")], rows = [...board.querySelectorAll("tbody tr")];
    const fields = document.createElement("form"), count = document.createElement("output");
    const field = (title, control) => {
      const label = document.createElement("label");
      label.append(title, control);
      fields.append(label);
      return control;
    };
    const choice = (title, values) => {
      const select = field(title, document.createElement("select"));
      select.append(...values.map((each) => new Option(each)));
      return select;
    };
    const parts = (row, k) => row.cells[k].textContent.split("; ");
    const columns = choice("columns", [...new Set(heads.map((each) => each.dataset.columns).filter(Boolean)), "all"]);
    columns.parentElement.hidden = columns.length < 2;
    const filters = heads.flatMap((each, k) => ("filter" in each.dataset ? [k] : [])).map((k) => [
      k, choice(heads[k].textContent, ["any", ...new Set(rows.flatMap((row) => parts(row, k)))])]);
    const query = field("search", Object.assign(document.createElement("input"), { type: "search" }));
    const show = () => {
      for (const row of rows) {
        row.hidden = !row.textContent.toLowerCase().includes(query.value.toLowerCase()) ||
          filters.some(([k, { value }]) => value !== "any" && !parts(row, k).includes(value));
      }
      for (const cell of board.querySelectorAll("[data-columns]")) {
        cell.hidden = ![cell.dataset.columns, "all"].includes(columns.value);
      }
      count.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    };
    fields.addEventListener("input", show);
    fields.addEventListener("submit", (event) => event.preventDefault());
    fields.append(count);
    board.before(fields);
    show();
  }
});
