// What the page shows. Every text that comes from outside goes in as textContent, never as markup.

import { naira, serverNow, webAddress } from "./public.js";

export const at = (id) => document.getElementById(id);
const sections = [...document.querySelectorAll("[data-state]")];
let shown = "loading";
let summary = null;
let warned = Infinity;

export const isShown = (name) => shown === name;

/** Shows one state; the heading takes the focus so that a keyboard or a screen reader is where the news is. */
export function show(name, title) {
  at("payment").setAttribute("aria-busy", String(name === "loading" || name === "processing"));
  if (title) document.title = title;
  if (shown === name && name !== "notice") return;
  const first = shown === "loading";
  shown = name;
  for (const section of sections) section.hidden = section.dataset.state !== name;
  const heading = sections.find((section) => !section.hidden).querySelector("h2");
  if (first) announce(heading.textContent);
  else heading.focus();
}

export function announce(text) {
  at("announce").textContent = text;
}

export function showSummary(payment) {
  summary = payment;
  for (const [id, text] of [["business", payment.businessName], ["amount", naira(payment.amount)]]) {
    at(id).textContent = text;
    at(id).classList.remove("blank");
  }
  at("amount").classList.toggle("long", at("amount").textContent.length > 15);
  tick();
}

export const titled = (words) => `${words} · ${naira(summary.amount)} to ${summary.businessName}`;

/** Milliseconds until the window closes, by the server's clock. */
export const remaining = () => Date.parse(summary.expiresAt) - serverNow();

/** Redraws the countdown; true while the page should ask the server whether the window has closed. */
export function tick() {
  const open = summary !== null && summary.status === "INITIATED";
  at("window").classList.toggle("absent", !open);
  if (!open) return false;
  const seconds = Math.max(0, Math.floor(remaining() / 1000));
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

/** Links back to the merchant; none without an address the merchant gave. */
export function showWayHome(address, isOver) {
  const href = address === null ? null : webAddress(address);
  for (const link of document.querySelectorAll(".home")) {
    link.hidden = href === null;
    if (href === null) continue;
    link.href = href;
    link.textContent = isOver ? `Return to ${summary.businessName}` : `Go back to ${summary.businessName}`;
  }
}

const DECLINES = {
  INSUFFICIENT_FUNDS: "There was not enough money for this payment.",
  EXPIRED_CARD: "That card has expired.",
  CANCELLED: "The payment was cancelled.",
  TIMED_OUT: "The bank did not answer in time.",
};
let declined = null;

/** While the payer is at the provider's page: what became of the last card, null for nothing bad. */
export function showDecline(reason) {
  const isNews = reason !== null && reason !== declined;
  declined = reason;
  at("waiting-spinner").hidden = reason !== null;
  at("waiting-title").textContent = reason === null ? "Waiting for confirmation" : "Your card was declined";
  at("waiting-text").textContent =
    reason === null
      ? "If you have paid, there is nothing more to do: this page updates by itself."
      : `${DECLINES[reason] ?? "The bank refused the card."} You have not been charged. You can try another card.`;
  at("resume").textContent = reason === null ? "Not paid yet? Continue" : "Try another card";
  if (isNews) announce("Your card was declined. You can try another card.");
}

const REASONS = {
  NOT_CONFIGURED: "Not set up for this merchant yet",
  UNHEALTHY: "Not responding right now. Try again in a few minutes",
  DISABLED: "Switched off for now",
};

export function showGateways(options, preferred) {
  const usable = options.filter((option) => option.available);
  const chosen =
    usable.find((option) => option.slug === preferred) ?? usable.find((option) => option.isDefault) ?? usable[0];
  at("gateways").replaceChildren(...options.map((option) => gatewayRow(option, option === chosen)));
  if (usable.length === 0) alertWith("No payment option is available right now. Please try again in a few minutes.");
}

function gatewayRow(option, isChosen) {
  const input = Object.assign(document.createElement("input"), {
    type: "radio", name: "gateway", value: option.slug, checked: isChosen, disabled: !option.available,
  });
  input.dataset.name = option.name;
  const words = element("span", "words", element("span", "name", option.name));
  const text = option.available ? option.description : REASONS[option.unavailableReason] ?? "Not available right now";
  if (text) {
    words.append(element("span", option.available ? "hint" : "hint reason", text));
  }
  return element("label", option.available ? "gateway" : "gateway unavailable", input, logo(option), words);
}

function logo(option) {
  const initial = element("span", "logo", [...option.name][0]?.toUpperCase() ?? "");
  initial.setAttribute("aria-hidden", "true");
  // Logos are ours to serve; an address elsewhere would tell a stranger who is paying whom.
  if (!option.logoUrl?.startsWith("/") || option.logoUrl.startsWith("//")) return initial;
  const image = Object.assign(document.createElement("img"), {
    className: "logo", src: option.logoUrl, alt: "", width: 40, height: 40,
  });
  image.addEventListener("error", () => image.replaceWith(initial));
  return image;
}

function element(name, className, ...children) {
  const made = document.createElement(name);
  made.className = className;
  made.append(...children); // strings become text nodes
  return made;
}

export function alertWith(text) {
  at("alert").textContent = text;
  at("alert").hidden = text === "";
}

export function cardError(text) {
  at("card-error").textContent = text;
  at("card-number").setAttribute("aria-invalid", String(text !== ""));
}

/** A result or a problem: title, text, what to do next, and how it is coloured. */
export function showNotice({ tone, title, text, next = "", retry = "" }) {
  const section = document.querySelector('[data-state="notice"]');
  section.dataset.tone = tone;
  at("notice-title").textContent = title;
  at("notice-text").textContent = text;
  at("notice-next").textContent = next;
  at("retry").textContent = retry;
  at("retry").hidden = retry === "";
  show("notice", summary ? titled(title) : title);
}
