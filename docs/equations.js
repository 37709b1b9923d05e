// Typesets the equations of a page: blocks ```math of Markdown, as on GitHub.
document$.subscribe(() => {
  for (const block of document.querySelectorAll("div.math")) {
    katex.render(block.textContent, block, { displayMode: true, throwOnError: false });
  }
});
