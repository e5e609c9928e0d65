// Opens provider_b's payment window. What happens in it is only a hint: the checkout page asks the server.

import { detail, page, start, verify } from "./public.js";

const opening = document.getElementById("opening");
const trouble = document.getElementById("trouble");

function goBack() {
  location.replace(page);
}

function fail(title = "The payment window did not open", text = null) {
  opening.hidden = true;
  trouble.hidden = false;
  trouble.querySelector("h1").textContent = title;
  if (text) trouble.querySelector("p").textContent = text;
  // An open popup lies above this notice and keeps the focus.
  if (document.activeElement?.tagName !== "IFRAME") trouble.querySelector("h1").focus();
  document.title = title;
}

/** The popup told of an error: a decline may have ended the payment, or the payer may still try another card. */
async function look() {
  const known = await verify().catch(() => null);
  if (known !== null && known.status !== "PENDING") goBack();
  else if (known?.lastDecline) fail("Your card was declined", "You have not been charged. You can try another card.");
  else fail();
}

function decoded(fragment) {
  const bytes = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0))));
}

async function open() {
  // A link's fragment can be forged to pay somebody else, so the parameters are the server's own: a repeated
  // process returns the one hand-off that exists and starts nothing.
  const payment = await detail();
  if (payment.status !== "PENDING") return goBack();
  const handOff = await start({});
  if (handOff.handoff !== "SDK") return goBack();
  const parameters = decoded(new URL(handOff.checkoutUrl).hash.slice(1));
  const popup = window.PayazaCheckout.setup(parameters);
  popup.setCallback((result) => (result?.type === "success" ? goBack() : look()));
  popup.setOnClose(goBack);
  popup.showPopup();
}

async function run() {
  try {
    await open();
  } catch (problem) {
    if (problem.code === "PAYMENT_EXPIRED" || problem.code === "PAYMENT_ALREADY_PROCESSED") goBack();
    else fail();
  }
}

document.getElementById("again").addEventListener("click", () => location.reload());
run();
