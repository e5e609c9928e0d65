// What the page shows. The server draws every state; here is what moves within one. All text goes in as textContent.

import { declineTitle, drawn, facts, serverNow } from "./public.js";

export const at = (id) => document.getElementById(id);
let warned = Infinity;
let declined = null;

/** The state on the page: choose, waiting, result, processing or trouble; "" on a page that has no payment. */
export function shown() {
  const section = document.querySelector("[data-state]:not([hidden])");
  return section ? section.dataset.state : "";
}

/** Shows one of the states on the page; the heading takes the focus so that a screen reader is where the news is. */
export function show(name, title) {
  at("payment").setAttribute("aria-busy", String(name === "processing"));
  if (title) document.title = `${title} · ${facts().title}`;
  for (const section of document.querySelectorAll("[data-state]")) section.hidden = section.dataset.state !== name;
  focusHeading();
}

/** Puts the payment on the page as the server draws it now. */
export async function redraw() {
  const fresh = await drawn();
  document.querySelector("main").replaceWith(fresh.querySelector("main"));
  document.title = fresh.title;
  warned = Infinity;
  declined = null;
}

export function focusHeading() {
  const heading = document.querySelector("[data-state]:not([hidden]) h2") || document.querySelector("main h1");
  heading.setAttribute("tabindex", "-1");
  heading.focus();
}

export function announce(text) {
  at("announce").textContent = text;
}

/** Milliseconds until the window closes, by the server's clock. */
export const remaining = () => Number(facts().expires) - serverNow();

/** Redraws the countdown; true while the page should ask the server whether the window has closed. */
export function tick() {
  if (!at("window")) return false;
  const seconds = Math.max(0, Math.floor(remaining() / 1000));
  at("window-name").textContent = "Expires in";
  at("countdown").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  at("window").classList.toggle("soon", seconds <= 300);
  for (const limit of [300, 60]) {
    if (seconds <= limit && warned > limit && seconds > 0) {
      warned = limit;
      announce(`This payment link expires in ${limit === 60 ? "one minute" : "five minutes"}.`);
    }
  }
  return remaining() <= 0;
}

const DECLINES = {
  DECLINED: "The bank refused the card. ",
  INSUFFICIENT_FUNDS: "There was not enough money for this payment. ",
  EXPIRED_CARD: "That card has expired. ",
};

/** While the payer is at the provider's page: what became of the last card, null for nothing bad. */
export function showDecline(reason) {
  if (reason === declined) return;
  declined = reason;
  at("waiting-spinner").hidden = reason !== null;
  const title = reason === null ? "Waiting for confirmation" : declineTitle(reason);
  at("waiting-title").textContent = title;
  document.title = `${title} · ${facts().title}`;
  at("waiting-text").textContent =
    reason === null
      ? "If you have paid, there is nothing more to do: this page updates by itself."
      : `${DECLINES[reason] || ""}You have not been charged. You can try another card.`;
  at("resume").textContent = reason === null ? "Not paid yet? Continue" : "Try another card";
  if (reason !== null) announce(`${title}. You can try another card.`);
}

export function alertWith(text) {
  at("alert").textContent = text;
  at("alert").hidden = text === "";
}

/** Says `text` where the hint stands; without one the hint is there again. */
export function cardError(text) {
  const said = at("card-hint");
  said.dataset.hint = said.dataset.hint || said.textContent;
  said.textContent = text || said.dataset.hint;
  said.className = text ? "field-error" : "hint";
  at("card-number").setAttribute("aria-invalid", String(text !== ""));
}

/** A problem that is not the payment's own: title, text, what to do next and the button's words. */
export function showTrouble(title, text, next, retry) {
  at("trouble-title").textContent = title;
  at("trouble-text").textContent = text;
  at("trouble-next").textContent = next;
  at("retry").textContent = retry;
  show("trouble", title);
}

/** Copies the text on the page, or marks it so that the payer can. */
export async function copy(id) {
  getSelection().selectAllChildren(at(id));
  const done = navigator.clipboard
    ? await navigator.clipboard.writeText(at(id).textContent).then(() => true, () => false)
    : document.execCommand("copy");
  announce(done ? "The reference is copied." : "The reference is marked. Copy it from here.");
  if (done) at("copy").firstChild.textContent = "Copied";
}
