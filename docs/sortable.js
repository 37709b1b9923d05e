// The leaderboard without this script is one table. It adds a button to each head, which sorts, and fields
// above: of heads with data-filter, which rows are shown; of data-columns, which columns; and a search.
document.addEventListener("DOMContentLoaded", () => {
  for (const board of document.querySelectorAll(".board")) {
    const [head] = board.querySelectorAll("thead tr"), heads = [...head.cells], body = board.querySelector("tbody");
    const rows = [...body.rows], fields = document.createElement("form"), count = document.createElement("output");
    const value = (row, k) => {
      const { order } = row.cells[k].dataset, text = row.cells[k].textContent;
      return order ? Number(order) : text === "–" || row.cells[k].dataset.columns ? null : text;
    };
    const sort = (k) => {
      const orders = rows.some((row) => row.cells[k].dataset.order) ? ["descending", "ascending"] : ["ascending", "descending"];
      const order = orders.find((each) => each !== heads[k].ariaSort);
      heads.forEach((each, other) => (each.ariaSort = other === k ? order : null));
      const sign = order === "ascending" ? 1 : -1;
      const before = (x, y) => (x === y ? 0 : x === null ? 1 : y === null ? -1 : x < y ? -sign : sign);
      body.append(...rows.sort((a, b) => before(value(a, k), value(b, k))));
    };
    heads.forEach((each, k) => {
      const button = document.createElement("button");
      button.append(...each.childNodes);
      button.addEventListener("click", () => sort(k));
      each.append(button);
    });
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
