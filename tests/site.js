// Runs in the leaderboard's page; tells the page around it what is not as it should be.
addEventListener("load", async () => {
  const wrong = {}, board = document.querySelector(".board"), page = document.documentElement;
  const same = (what, found, expected) => {
    if (JSON.stringify(found) !== JSON.stringify(expected)) wrong[what] = [found, expected];
  };
  const rows = () => [...board.querySelectorAll("tbody tr:not([hidden])")];
  const names = () => rows().map((row) => row.cells[0].innerText).sort();
  const heads = () => [...board.querySelectorAll("thead th:not([hidden])")];
  const field = (title) =>
    [...document.querySelectorAll("form label")].find((label) => label.firstChild.data === title).control;
  const choose = (title, value) => {
    field(title).value = value;
    field(title).dispatchEvent(new Event("input", { bubbles: true }));
  };

  const numbers = (k) => rows().map((row) => row.cells[k].dataset.order).filter(Boolean).map(Number);
  const [, , gain, , graphs] = heads();
  for (const [order, sign] of [["descending", -1], ["ascending", 1]]) {
    gain.firstChild.click();
    same("aria-sort", heads().map((head) => head.ariaSort).filter(Boolean), [order]);
    same(`gains ${order}`, numbers(2), numbers(2).sort((a, b) => sign * (a - b)));
  }
  for (const order of ["descending", "ascending"]) {
    graphs.firstChild.click();
    same(`missing ${order}`, rows().slice(-4).map((row) => row.cells[4].innerText === "–"), [false, true, true, true]);
  }
  const reached = heads().map((head) => (head.firstChild.focus(), document.activeElement.tagName));
  same("keyboard", new Set(reached).size === 1 && reached[0] === "BUTTON" && board.tabIndex === 0, true);

  const every = rows().length;
  choose("sees", "edges across clients");
  choose("encoder", "GCN");
  same("edges across clients", names(), ["Answers, Bayes", "Answers, pooled", "FedGCN"]);
  same("count", document.querySelector("form output").value, `3 of ${every} rows`);
  choose("search", "fedgcn");
  same("searched rows", names(), ["FedGCN"]);
  for (const [title, value] of [["sees", "any"], ["encoder", "any"], ["search", ""]]) choose(title, value);
  choose("beyond FedAvg", "class shares shared");
  same("needs", [...new Set(names())], ["FedGTA", "FedSpray", "FedTAD"]);
  choose("beyond FedAvg", "any");
  choose("columns", "purchases");
  same("columns", heads().slice(4, 6).map((head) => head.innerText), ["Amazon Photo", "Amazon Computers"]);
  choose("columns", "all");

  same("width", page.scrollWidth, page.clientWidth);
  board.scrollTo(500, 500);
  const place = (selector) => board.querySelector(selector).getBoundingClientRect();
  same("method in sight", place("tbody tr:last-child th").left, board.getBoundingClientRect().left);
  same("head in sight", place("thead th:last-child").top, board.getBoundingClientRect().top);
  for (const scheme of ["default", "slate"]) {
    document.body.dataset.mdColorScheme = scheme;
    const colours = [board.querySelector("tbody th"), document.body].map((each) => getComputedStyle(each).backgroundColor);
    same(`colours of ${scheme}`, colours[0], colours[1]);
    same(`${scheme} is white`, colours[0] === "rgb(255, 255, 255)", scheme === "default");
  }

  const query = document.querySelector("[data-md-component=search-query]");
  document.querySelector("#__search").click();
  query.focus();
  query.value = "leaderboard";
  query.dispatchEvent(new Event("input", { bubbles: true }));
  const hits = () => [...document.querySelectorAll(".md-search-result__link")].map((link) => link.pathname);
  for (let k = 0; k < 50 && !hits().length; k++) await new Promise((done) => setTimeout(done, 200));
  same("search", hits().some((path) => path.endsWith("/leaderboard.html")), true);
  parent.postMessage(wrong, "*");
});
