// The search, and a copy button on each listing. Everything else works without this.
const query = document.getElementById("query");
const found = document.getElementById("found");
const SHOWN = 12;

function load() {
  const script = document.createElement("script");
  script.src = `${document.body.dataset.files}search.js`;
  script.addEventListener("load", show);
  document.head.append(script);
}

// Sections that hold every word; those with more of them in their title or heading come first.
function matches(words) {
  return (window.SECTIONS || [])
    .map(([page, heading, place, text]) => {
      const title = `${page} ${heading}`.toLowerCase();
      const whole = `${title} ${text}`.toLowerCase();
      const hit = words.every((word) => whole.includes(word));
      return { page, heading, place, text, score: hit ? 1 + words.filter((word) => title.includes(word)).length : 0 };
    })
    .filter((section) => section.score)
    .sort((one, other) => other.score - one.score)
    .slice(0, SHOWN);
}

function row({ page, heading, place, text }) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  const words = document.createElement("p");
  link.href = place;
  link.textContent = page === heading ? page : `${page}: ${heading}`;
  words.textContent = text.slice(0, 120);
  item.append(link, words);
  return item;
}

function show() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = words.length ? matches(words).map(row) : [];
  if (words.length && !rows.length && window.SECTIONS) {
    const none = document.createElement("li");
    none.textContent = "Nothing found.";
    rows.push(none);
  }
  found.replaceChildren(...rows);
}

query.closest(".search").hidden = false;
query.addEventListener("focus", load, { once: true });
query.addEventListener("input", show);
query.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    query.value = "";
    show();
  }
});

for (const listing of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(listing.querySelector("code").textContent);
    button.textContent = "Copied";
  });
  listing.before(button);
}
