// The payer's journey: choose, start, wait, result. The server alone says what the payment's state is.

import { UNREACHABLE, detail, gateways, naira, page, start, verify, webAddress } from "./public.js";
import {
  alertWith, announce, at, cardError, isShown, remaining, show, showDecline, showGateways, showNotice, showSummary, showWayHome, tick,
  titled,
} from "./view.js";

const SANDBOX = "sandbox";
const FIRST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 10_000;
const LONG_WAIT_MS = 60_000; // after this the page says that waiting is not needed
let payment = null;
let wait = FIRST_WAIT_MS;
let timer = 0;
let waitingSince = 0;
let asking = false;

/** Reads the payment and shows the state it is in, whatever the page believed before. */
async function load() {
  clearTimeout(timer);
  try {
    payment = await detail();
    showSummary(payment);
    if (payment.status === "INITIATED") await choose();
    else if (payment.status === "PENDING") await beginWaiting();
    else await finish();
  } catch (problem) {
    trouble(problem);
  }
}

async function choose(message = "") {
  const [{ gateways: options }] = await Promise.all([gateways(), wayHome()]);
  const chosen = selected()?.value ?? payment.gateway;
  alertWith("");
  showGateways(options, chosen);
  if (message) alertWith(message);
  followChoice();
  show("choose", titled("Pay"));
}

/** Asks whether the payment is still open, leaving a form that the payer is filling in alone. */
async function recheck() {
  const now = await detail().catch(() => payment);
  if (now.status !== "INITIATED" && isShown("choose")) return load();
  tick();
}

async function wayHome() {
  const known = await verify().catch(() => null);
  showWayHome(known?.redirectUrl ?? null, false);
}

const selected = () => document.querySelector('input[name="gateway"]:checked');

function followChoice() {
  const choice = selected();
  const isTest = choice?.value === SANDBOX;
  at("card").hidden = !isTest;
  if (!choice) at("pay").textContent = "Check again";
  else at("pay").textContent = isTest ? `Pay ${naira(payment.amount)}` : `Continue to ${choice.dataset.name}`;
}

async function pay(event) {
  event.preventDefault();
  if (isShown("processing")) return;
  const slug = selected()?.value;
  if (!slug) return load();
  const choice = { gatewaySlug: slug };
  if (slug === SANDBOX) {
    choice.cardNumber = digits();
    if (!cards.has(choice.cardNumber)) return refuseCard();
  }
  alertWith("");
  show("processing", titled("Starting"));
  try {
    await follow(await start(choice));
  } catch (problem) {
    await refused(problem, slug);
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

async function refused(problem, slug) {
  if (problem.code === "PAYMENT_EXPIRED" || problem.code === "PAYMENT_ALREADY_PROCESSED") return load();
  if (problem.code === "PAYMENT_NOT_FOUND") return trouble(problem);
  if (problem.field === "cardNumber") {
    show("choose", titled("Pay"));
    return refuseCard();
  }
  const name = document.querySelector(`input[value="${CSS.escape(slug)}"]`)?.dataset.name ?? "This option";
  const message = problem.isPassing
    ? "We could not reach the payment service. Please try again: trying again never charges you twice."
    : `${name} cannot take this payment right now and you have not been charged. Please try again or choose another option.`;
  try {
    await choose(message);
  } catch {
    show("choose", titled("Pay"));
    alertWith(message);
  }
}

function refuseCard() {
  cardError("Use one of the test cards below. Never type a real card number here.");
  at("card-number").focus();
}

const cards = new Set([...document.querySelectorAll(".test-card")].map((button) => button.dataset.number));
const digits = () => at("card-number").value.replaceAll(" ", "");

function typed() {
  // Grouping moves the caret, so the text is only rewritten while typing at its end.
  const input = at("card-number");
  if (input.selectionStart === input.value.length) {
    input.value = input.value.replace(/\D/g, "").slice(0, 19).replace(/(\d{4})(?=\d)/g, "$1 ");
  }
  cardError("");
  for (const button of document.querySelectorAll(".test-card")) {
    button.setAttribute("aria-pressed", String(button.dataset.number === digits()));
  }
}

// --- waiting: ask the server, ever less often, and not at all while nobody looks

async function beginWaiting() {
  if (!isShown("waiting")) {
    wait = FIRST_WAIT_MS;
    waitingSince = performance.now();
    showDecline(null);
    at("waiting-note").textContent = "";
  }
  at("resume").hidden = payment.gateway === SANDBOX || remaining() <= 0;
  show("waiting", titled("Waiting"));
  await poll();
}

async function poll() {
  clearTimeout(timer);
  if (asking || document.hidden) return; // becoming visible polls again
  asking = true;
  let pause = wait;
  try {
    const known = await verify();
    showWayHome(known.redirectUrl, false);
    if (known.status !== "PENDING") return await load();
    showDecline(remaining() > 0 ? known.lastDecline : null);
    at("waiting-note").textContent =
      performance.now() - waitingSince > LONG_WAIT_MS
        ? `This is taking longer than usual. You may close this page: ${payment.businessName} will be told the result.`
        : "";
  } catch (problem) {
    if (problem.code === "PAYMENT_AMOUNT_MISMATCH") return mismatch();
    if (problem.code === "PAYMENT_NOT_FOUND") return trouble(problem);
    at("waiting-note").textContent = "We could not check just now. We will keep trying.";
    pause = Math.max(pause, problem.retryAfter * 1000);
  } finally {
    asking = false;
  }
  wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
  timer = setTimeout(poll, pause);
}

async function resume() {
  show("processing", titled("Starting"));
  try {
    await follow(await start({}));
  } catch {
    await load();
    at("waiting-note").textContent = "The payment page could not be opened. Please try again in a moment.";
  }
}

// --- results, in plain words

async function finish() {
  const known = await verify().catch(() => null);
  showWayHome(known?.redirectUrl ?? null, true);
  showNotice(result());
}

function result() {
  const amount = naira(payment.amount);
  const merchant = payment.businessName;
  if (payment.status === "SUCCESS") {
    return { tone: "good", title: "Payment successful", text: `You paid ${amount} to ${merchant}.`, next: "There is nothing more to do." };
  }
  if (payment.status === "REVERSED") {
    return {
      tone: "back", title: "Payment reversed", text: `The payment of ${amount} to ${merchant} was reversed.`,
      next: `Your bank may need a few working days to show the money again. Questions? Ask ${merchant} and give the reference above.`,
    };
  }
  const again = `To try again, go back to ${merchant} and start a new payment.`;
  switch (payment.failureReason) {
    case "EXPIRED":
      return { tone: "warn", title: "This payment link has expired", text: "The payment was not made in time.", next: again };
    case "DECLINED":
      return { tone: "bad", title: "Payment declined", text: "The card was declined and the payment was not made.", next: again };
    case "INSUFFICIENT_FUNDS":
      return { tone: "bad", title: "Not enough funds", text: "There was not enough money for this payment, so it was not made.", next: again };
    case "EXPIRED_CARD":
      return { tone: "bad", title: "This card has expired", text: "The payment was not made. Use another card.", next: again };
    case "CANCELLED":
      return { tone: "warn", title: "Payment cancelled", text: "The payment was cancelled before it was made.", next: again };
    case "TIMED_OUT":
      return { tone: "bad", title: "The bank did not answer in time", text: "The payment was not made.", next: again };
    default:
      return { tone: "bad", title: "Payment not completed", text: "The payment did not go through.", next: again };
  }
}

function mismatch() {
  showNotice({
    tone: "warn", title: "This payment needs a check", text: "The payment provider's details differ from this payment. Please do not pay again.",
    next: `Contact ${payment.businessName} and give the reference above.`, retry: "Check again",
  });
}

function trouble(problem) {
  if (problem.code === "PAYMENT_NOT_FOUND" || problem.code === "INVALID_REFERENCE") {
    return showNotice({ tone: "warn", title: "We can't find this payment", text: "Ask the merchant for a new payment link." });
  }
  const offline = problem === UNREACHABLE;
  showNotice({
    tone: "warn", title: offline ? "You seem to be offline" : "We can't load this payment right now",
    text: offline ? "We could not reach the payment service. Check your connection." : "Something went wrong on our side. Please try again in a moment.",
    next: "Loading this page again never charges you.", retry: "Try again",
  });
}

at("choose").addEventListener("submit", pay);
at("gateways").addEventListener("change", () => { cardError(""); followChoice(); });
at("card-number").addEventListener("input", typed);
for (const button of document.querySelectorAll(".test-card")) {
  button.addEventListener("click", () => {
    at("card-number").value = button.dataset.number;
    at("card-number").setSelectionRange(99, 99);
    typed();
    announce(`Test card ${button.textContent} chosen.`);
  });
}
at("resume").addEventListener("click", resume);
at("retry").addEventListener("click", load);
addEventListener("online", () => { if (!at("retry").hidden && isShown("notice")) load(); });
addEventListener("pageshow", (event) => { if (event.persisted) load(); });
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  if (isShown("waiting")) poll();
  else if (isShown("choose")) recheck(); // the machine may have slept, and another tab may have paid
});

let askedAt = -Infinity;
setInterval(() => {
  // The countdown decides nothing: at zero the server is asked, and asked again while it says the window is open.
  if (payment && tick() && isShown("choose") && performance.now() - askedAt > 5_000) {
    askedAt = performance.now();
    recheck();
  }
}, 1_000);

// What a provider adds to the address on return is informational, and the reference is in the path already.
if (location.search) history.replaceState(null, "", page);
load();
