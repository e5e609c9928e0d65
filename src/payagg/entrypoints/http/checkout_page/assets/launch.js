// Opens provider_b's payment window. What happens in it is only a hint: the checkout page asks the server.

import { declineTitle, detail, facts, ready, start, verify } from "./public.js";

const SLOW_MS = 8000; // since the page began to load
const page = facts().page;
const at = (id) => document.getElementById(id);

function goBack() {
  location.replace(page);
}

function fail(title = "The payment window did not open", text = null) {
  const trouble = at("trouble");
  at("opening").hidden = true;
  trouble.hidden = false;
  trouble.querySelector("h1").textContent = title;
  if (text) trouble.querySelector("p").textContent = text;
  // An open popup lies above this notice and keeps the focus.
  if (!document.activeElement || document.activeElement.tagName !== "IFRAME") trouble.querySelector("h1").focus();
  document.title = title;
}

/** The popup told of an error: a decline may have ended the payment, or the payer may still try another card. */
async function look() {
  const known = await verify().catch(() => null);
  if (known !== null && known.status !== "PENDING") goBack();
  else if (known !== null && known.lastDecline) fail(declineTitle(known.lastDecline), "You have not been charged. You can try another card.");
  else fail();
}

function decoded(fragment) {
  const bytes = atob(fragment.replace(/-/g, "+").replace(/_/g, "/"));
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0))));
}

/** The provider's own script, which loads beside this one; the page's guard marks one that failed before. */
function provider() {
  return new Promise((resolve, reject) => {
    const tag = at("sdk");
    if (window.PayazaCheckout) resolve(window.PayazaCheckout);
    else if ("failed" in tag.dataset) reject(new Error("no script"));
    tag.addEventListener("load", () => resolve(window.PayazaCheckout));
    tag.addEventListener("error", () => reject(new Error("no script")));
  });
}

async function open() {
  // A link's fragment can be forged to pay somebody else, so the parameters are the server's own: a repeated
  // process returns the one hand-off that exists and starts nothing.
  const payment = await detail();
  if (payment.status !== "PENDING") return goBack();
  const handOff = await start({});
  if (handOff.handoff !== "SDK") return goBack();
  const parameters = decoded(new URL(handOff.checkoutUrl).hash.slice(1));
  const popup = (await provider()).setup(parameters);
  popup.setCallback((result) => (result && result.type === "success" ? goBack() : look()));
  popup.setOnClose(goBack);
  popup.showPopup();
}

async function run() {
  const slow = setTimeout(() => {
    at("slow").textContent = "This is taking longer than usual. Trying again never charges you twice.";
    at("sooner").hidden = false;
  }, Math.max(0, SLOW_MS - performance.now()));
  try {
    await open();
  } catch (problem) {
    if (problem.code === "PAYMENT_EXPIRED" || problem.code === "PAYMENT_ALREADY_PROCESSED") goBack();
    else fail();
  }
  clearTimeout(slow);
}

for (const id of ["again", "sooner"]) at(id).addEventListener("click", () => location.reload());
if (ready()) run();
