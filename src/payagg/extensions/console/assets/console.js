// Copy buttons, pages that renew themselves, and addresses that may be loaded again. Every page works without this.

const COPIED_MS = 2000;

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue; // a page without TLS that is not on this machine
  button.hidden = false;
  button.addEventListener("click", async () => {
    const said = button.parentElement.querySelector("[data-copied]");
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      said.textContent = "Copied.";
    } catch {
      said.textContent = "Select the text and copy it.";
    }
    setTimeout(() => { said.textContent = ""; }, COPIED_MS);
  });
}

// The answer to a form that shows a secret or a result: loading it again must show the page and not send the form again.
const { address } = document.body.dataset;
if (address) history.replaceState(null, "", address);

// Seconds that are left until an instant, for who watches a gateway drain.
function tick() {
  for (const left of document.querySelectorAll("time[data-left]")) {
    const seconds = Math.max(0, Math.round((Date.parse(left.dateTime) - Date.now()) / 1000));
    left.textContent = `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  }
}

// The page as it is now: null while it cannot be had, false once nobody is signed in any more.
async function fetched() {
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (answer.redirected) return false;
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch {
    return null; // offline: the next round may do better
  }
}

// Puts what is new into a part of the page, says it, and leaves who stood on a link or button where they were.
function replace(part, found) {
  const held = part.contains(document.activeElement) ? document.activeElement : null;
  part.replaceChildren(...found.childNodes);
  if (held) {
    const same = [...part.querySelectorAll(held.tagName)].find((one) => one.textContent === held.textContent);
    (same ?? part).focus();
  }
  document.getElementById("announced").textContent = part.querySelector("[data-say]")?.textContent ?? "";
  tick();
}

// A part with data-live="seconds" is renewed with the page until the page says that nothing more will happen.
async function live(part) {
  let served = part.innerHTML;
  part.tabIndex = -1;
  while (part.dataset.live) {
    await new Promise((done) => setTimeout(done, Number(part.dataset.live) * 1000));
    if (document.hidden) {
      await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
    }
    const page = await fetched();
    const found = page && page.getElementById(part.id);
    if (page === false || (page && !found)) { location.reload(); return; }
    if (!found) continue;
    part.dataset.live = found.dataset.live ?? "";
    if (found.innerHTML !== served) {
      served = found.innerHTML;
      replace(part, found);
    }
  }
}

for (const part of document.querySelectorAll("[data-live]")) live(part);
if (document.querySelector("time[data-left]")) {
  tick();
  setInterval(tick, 1000);
}
