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

// Whether one letter was added, left out or replaced.
function isClose(one, other) {
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  const [rest, after] = [one.slice(same), other.slice(same)];
  return rest.slice(1) === after.slice(1) || rest.slice(1) === after || rest === after.slice(1);
}

// A word that stands nowhere becomes the names and words of the site that are one letter off.
function spellings(word) {
  const texts = (window.SECTIONS || []).map((section) => section.join(" ").toLowerCase());
  if (word.length < 4 || texts.some((text) => text.includes(word))) return [word];
  const known = new Set(texts.flatMap((text) => text.split(/[^a-z0-9_]+/)));
  const close = [...known].filter((one) => isClose(one, word));
  return close.length ? close : [word];
}

// Sections that hold every word; those with more of them in their title or heading come first.
function matches(typed) {
  const words = typed.map(spellings);
  const holds = (text, word) => word.some((spelling) => text.includes(spelling));
  return (window.SECTIONS || [])
    .map(([page, heading, place, text]) => {
      const title = `${page} ${heading}`.toLowerCase();
      const whole = `${title} ${text}`.toLowerCase();
      const hit = words.every((word) => holds(whole, word));
      return { page, heading, place, text, score: hit ? 1 + words.filter((word) => holds(title, word)).length : 0 };
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
