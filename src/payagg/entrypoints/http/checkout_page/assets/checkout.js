// The payer's journey: choose, start, wait, result. The server alone says what the payment's state is, and draws it.

import { UNREACHABLE, detail, facts, ready, start, verify, webAddress } from "./public.js";
import {
  alertWith, announce, at, cardError, copy, focusHeading, redraw, remaining, show, showDecline, showTrouble, shown, tick,
} from "./view.js";

const SANDBOX = "sandbox";
const FIRST_WAIT_MS = 2000;
const LONGEST_WAIT_MS = 10000;
const LONG_WAIT_MS = 60000; // after this the page says that waiting is not needed
const RECEIPT_S = 4; // how long the receipt stands before the payer is taken back
const all = (selector) => Array.from(document.querySelectorAll(selector));
let wait, waitingSince;
let leavesIn = null; // seconds, null while the payer stays
let timer = 0;
let asking = false;
let askedAt = -Infinity;

/** Takes up the state that the server drew. */
function begin() {
  clearTimeout(timer);
  leavesIn = null;
  if (!at("payment")) return; // a refusal has no payment on it, only its own words
  tick();
  if (shown() === "choose") {
    at("pay").disabled = false;
    followChoice();
  } else if (shown() === "waiting") {
    wait = FIRST_WAIT_MS;
    waitingSince = performance.now();
    poll();
  } else if (facts().status === "SUCCESS" && facts().home && tookPart()) {
    leavesIn = RECEIPT_S;
    at("stay").hidden = false;
    at("returning").textContent = `Taking you back to ${facts().merchant} in ${RECEIPT_S} seconds.`;
  }
}

/** Shows the payment as it stands now, whatever the page believed before. True when that could be found out. */
async function load() {
  const before = shown();
  try {
    await redraw();
  } catch (problem) {
    trouble(problem);
    return false;
  }
  begin();
  if (shown() !== before) focusHeading();
  return true;
}

// --- choosing

const selected = () => document.querySelector('input[name="gateway"]:checked');

function followChoice() {
  const choice = selected();
  if (at("card")) at("card").hidden = !choice || choice.value !== SANDBOX;
  if (choice) at("pay").textContent = choice.dataset.label || `Pay ${at("amount").textContent}`;
}

/** Asks whether the payment is still open, leaving a form that the payer is filling in alone. */
async function recheck() {
  const now = await detail().catch(() => null);
  if (now && now.status !== facts().status && shown() === "choose") load();
}

async function pay() {
  const choice = selected();
  if (shown() !== "choose") return;
  if (!choice) return load();
  const wanted = { gatewaySlug: choice.value };
  if (choice.value === SANDBOX) {
    wanted.cardNumber = digits();
    if (!all(".test-card").some((card) => card.dataset.number === wanted.cardNumber)) return refuseCard();
  }
  alertWith("");
  show("processing", "Starting");
  takePart();
  try {
    await follow(await start(wanted));
  } catch (problem) {
    await refused(problem, choice);
  }
}

async function follow(handOff) {
  if (handOff.handoff === "SIMULATOR") {
    await verify().catch(() => null); // the simulator answers when asked
    return load();
  }
  const address = webAddress(handOff.checkoutUrl);
  if (address === null) throw UNREACHABLE;
  location.assign(address);
}

async function refused(problem, choice) {
  if (["PAYMENT_EXPIRED", "PAYMENT_ALREADY_PROCESSED", "PAYMENT_NOT_FOUND"].includes(problem.code)) return load();
  const isCard = problem.field === "cardNumber";
  const typed = at("card-number") && at("card-number").value;
  show("choose", "Pay");
  if (!isCard) await redraw().catch(() => null);
  begin();
  focusHeading(); // what was focused has been drawn anew
  if (shown() !== "choose") return;
  const left = all('input[name="gateway"]:enabled');
  const again = left.find((option) => option.value === choice.value);
  if (again) again.checked = true;
  if (typed && at("card-number")) at("card-number").value = typed;
  followChoice();
  pressed();
  if (isCard) return refuseCard();
  if (left.length === 0) return; // the server's own alert says so
  const hasOther = left.some((option) => option !== again);
  const ways = [again && "try again", hasOther && "choose another option"].filter(Boolean).join(" or ");
  alertWith(
    problem.isPassing
      ? "We could not reach the payment service. Please try again: trying again never charges you twice."
      : `${choice.dataset.name} cannot take this payment right now and you have not been charged. Please ${ways}.`,
  );
}

function refuseCard() {
  cardError("This is no test card. Choose one below; never type a real card number here.");
  at("card-number").focus();
}

const digits = () => at("card-number").value.replace(/ /g, "");

function pressed() {
  for (const card of all(".test-card")) card.setAttribute("aria-pressed", String(card.dataset.number === digits()));
}

function typed() {
  // Grouping moves the caret, so the text is only rewritten while typing at its end.
  const input = at("card-number");
  if (input.selectionStart === input.value.length) {
    input.value = input.value.replace(/\D/g, "").slice(0, 19).replace(/(\d{4})(?=\d)/g, "$1 ");
  }
  cardError("");
  pressed();
}

function take(card) {
  at("card-number").value = card.dataset.number;
  at("card-number").setSelectionRange(99, 99);
  typed();
  announce(`Test card ${card.textContent} chosen.`);
}

// --- waiting: ask the server, ever less often, and not at all while nobody looks

async function poll() {
  clearTimeout(timer);
  const isOpen = remaining() > 0;
  at("resume").hidden = facts().gateway === SANDBOX || !isOpen;
  if (asking || document.hidden) return; // becoming visible polls again
  asking = true;
  let pause = wait;
  try {
    const known = await verify();
    if (shown() !== "waiting") return;
    if (known.status !== "PENDING") return await load();
    showDecline(isOpen ? known.lastDecline : null);
    at("waiting-note").textContent =
      performance.now() - waitingSince > LONG_WAIT_MS
        ? `This is taking longer than usual. You may close this page: ${facts().merchant} will be told the result.`
        : "";
  } catch (problem) {
    if (shown() !== "waiting") return;
    if (problem.code === "PAYMENT_AMOUNT_MISMATCH") return mismatch();
    if (problem.code === "PAYMENT_NOT_FOUND") return await load();
    at("waiting-note").textContent = "We could not check just now. We will keep trying.";
    pause = Math.max(pause, problem.retryAfter * 1000);
  } finally {
    asking = false;
  }
  wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
  timer = setTimeout(poll, pause);
}

async function resume() {
  show("processing", "Starting");
  takePart();
  try {
    await follow(await start({}));
  } catch (problem) {
    if ((await load()) && shown() === "waiting") {
      at("waiting-note").textContent = "The payment page could not be opened. Please try again in a moment.";
    }
  }
}

function mismatch() {
  showTrouble(
    "This payment needs a check",
    "The payment provider's details differ from this payment. Please do not pay again.",
    `Contact ${facts().merchant} and give the reference.`,
    "Check again",
  );
}

function trouble(problem) {
  const offline = problem === UNREACHABLE;
  showTrouble(
    offline ? "You seem to be offline" : "We can't load this payment right now",
    offline ? "We could not reach the payment service. Check your connection." : "Something went wrong on our side. Please try again in a moment.",
    "Loading this page again never charges you.",
    "Try again",
  );
}

// --- after success: back to the merchant, once, from the tab in which the payer paid

function takePart() {
  try {
    sessionStorage.setItem("paying", facts().reference);
  } catch (problem) {
    // A browser that keeps nothing leaves the payer on the receipt, with the link.
  }
}

function tookPart() {
  try {
    return sessionStorage.getItem("paying") === facts().reference;
  } catch (problem) {
    return false;
  }
}

function stay() {
  if (leavesIn === null) return;
  leavesIn = null;
  sessionStorage.removeItem("paying");
  at("stay").hidden = true;
  at("returning").textContent = "";
}

function countDown() {
  if (leavesIn === null || document.hidden) return;
  leavesIn -= 1;
  if (leavesIn > 0) return;
  const address = webAddress(facts().home);
  stay(); // so that the browser's back button leads to a receipt that stays
  if (address) location.assign(address);
}

const CLICKS = {
  copy: () => { stay(); copy("reference"); },
  resume,
  retry: load,
  stay: () => { stay(); focusHeading(); },
  print: () => { stay(); print(); },
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.matches(".test-card")) take(button);
  else if (CLICKS[button.id]) CLICKS[button.id]();
});
document.addEventListener("submit", (event) => { event.preventDefault(); pay(); });
document.addEventListener("change", (event) => {
  if (event.target.name !== "gateway") return;
  if (at("card")) cardError("");
  followChoice();
});
document.addEventListener("input", (event) => { if (event.target.id === "card-number") typed(); });
addEventListener("online", () => { if (shown() === "trouble") load(); });
addEventListener("pageshow", (event) => { if (event.persisted) load(); });
document.addEventListener("visibilitychange", () => {
  if (document.hidden || !at("payment")) return;
  if (shown() === "waiting") poll();
  else if (shown() === "choose") recheck(); // the machine may have slept, and another tab may have paid
});

function everySecond() {
  if (!at("payment")) return;
  countDown();
  // The countdown decides nothing: at zero the server is asked, and asked again while it says the window is open.
  if (tick() && shown() === "choose" && performance.now() - askedAt > 5000) {
    askedAt = performance.now();
    recheck();
  }
}

// What a provider adds to the address on return is informational, and the reference is in the path already.
if (location.search) history.replaceState(null, "", facts().page);
if (ready()) {
  begin();
  setInterval(everySecond, 1000);
}
