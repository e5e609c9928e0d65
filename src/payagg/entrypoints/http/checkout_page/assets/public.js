// What both pages share: the payment's facts, the public endpoints and the server's clock. ECMAScript 2019.

export const facts = () => document.getElementById("payment").dataset;
const READ_MS = 20000;
const PROCESS_MS = 75000; // longer than the server waits for another tab's charge
let clock = { server: Number(facts().now), here: performance.now() };

/** Takes the page over from its guard; false in a browser that the guard has told the payer is too old. */
export function ready() {
  const root = document.documentElement;
  if (root.className === "old") return false;
  root.className = "ready";
  return true;
}

export class Refused extends Error {
  constructor(status, error, retryAfter) {
    super(error.code);
    this.status = status;
    this.code = error.code;
    this.field = error.field;
    this.retryAfter = retryAfter; // seconds, 0 when not said
  }
  get isPassing() {
    return this.status === 429 || (this.status >= 500 && this.code !== "PAYMENT_AMOUNT_MISMATCH");
  }
}

export const UNREACHABLE = { status: 0, code: "UNREACHABLE", retryAfter: 0, isPassing: true };

export const detail = () => call("");
export const verify = () => call("/verify");
export const start = (choice) => call("/process", choice);

/** The heading while the payer may try another card: what became of the last one. */
export const declineTitle = (reason) =>
  ({ CANCELLED: "Payment cancelled", TIMED_OUT: "The bank did not answer in time" })[reason] || "Your card was declined";

/** This very page as the server would draw it now: a document whose scripts do not run. */
export async function drawn() {
  const { response, answer } = await fetched(facts().page, {}, READ_MS, (found) => found.text());
  const fresh = new DOMParser().parseFromString(answer, "text/html");
  if (!fresh.querySelector("main")) throw new Refused(response.status, { code: "UNREADABLE" }, 0);
  return fresh;
}

async function call(path, body) {
  const post = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const { response, answer } = await fetched(facts().api + path, post || {}, body ? PROCESS_MS : READ_MS, (found) => found.json());
  if (!answer.success) throw new Refused(response.status, answer.error || { code: "UNREADABLE" }, retryAfter(response));
  return answer.data;
}

async function fetched(address, options, patience, read) {
  const control = new AbortController();
  const limit = setTimeout(() => control.abort(), patience);
  let response, answer;
  try {
    response = await fetch(address, Object.assign({ cache: "no-store", credentials: "omit", signal: control.signal }, options));
    answer = await read(response);
  } catch (problem) {
    throw response && !response.ok ? new Refused(response.status, { code: "UNREADABLE" }, retryAfter(response)) : UNREACHABLE;
  } finally {
    clearTimeout(limit);
  }
  setClock(response.headers.get("Date"));
  return { response, answer };
}

function retryAfter(response) {
  return Number(response.headers.get("Retry-After")) || 0;
}

// The payer's own clock may be wrong, so time is the server's plus what this page measured since.
function setClock(date) {
  const server = Date.parse(date);
  // The header is cut to whole seconds: half a second is its middle.
  if (!Number.isNaN(server)) clock = { server: server + 500, here: performance.now() };
}

export function serverNow() {
  return clock.server + performance.now() - clock.here;
}

/** An address a redirect may take, else null: never javascript: or data:. */
export function webAddress(text) {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch (problem) {
    return null;
  }
}
