// What both pages share: the public endpoints, the server's clock, and exact money.

const facts = document.getElementById("payment").dataset;
export const page = facts.page;
const READ_MS = 20_000;
const PROCESS_MS = 75_000; // longer than the server waits for another tab's charge

// The payer's own clock may be wrong, so time is the server's plus what this page measured since.
let clock = { server: Number(facts.now), here: performance.now() };

export class Refused extends Error {
  constructor(status, error, retryAfter) {
    super(error.code);
    this.status = status;
    this.code = error.code;
    this.field = error.field;
    this.retryAfter = retryAfter; // seconds, 0 when not said
  }
  get isPassing() {
    return this.status === 429 || this.status >= 500 && this.code !== "PAYMENT_AMOUNT_MISMATCH";
  }
}

export const UNREACHABLE = { status: 0, code: "UNREACHABLE", retryAfter: 0, isPassing: true };

export const detail = () => call("");
export const gateways = () => call("/gateways");
export const verify = () => call("/verify");
export const start = (choice) => call("/process", choice);

async function call(path, body) {
  const options = { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(body ? PROCESS_MS : READ_MS) };
  if (body) {
    Object.assign(options, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  }
  let response, answer;
  try {
    response = await fetch(facts.api + path, options);
    answer = await response.json();
  } catch {
    throw response && !response.ok ? new Refused(response.status, { code: "UNREADABLE" }, retryAfter(response)) : UNREACHABLE;
  }
  setClock(response.headers.get("Date"));
  if (!answer.success) throw new Refused(response.status, answer.error ?? { code: "UNREADABLE" }, retryAfter(response));
  return answer.data;
}

function retryAfter(response) {
  return Number(response.headers.get("Retry-After")) || 0;
}

function setClock(date) {
  const server = Date.parse(date);
  // The header is cut to whole seconds: half a second is its middle.
  if (!Number.isNaN(server)) clock = { server: server + 500, here: performance.now() };
}

export function serverNow() {
  return clock.server + performance.now() - clock.here;
}

/** ₦1,500.00 from integer kobo, by text alone: no division, so no rounding. */
export function naira(kobo) {
  const digits = String(kobo).padStart(3, "0");
  const whole = digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ",");
  return `₦${whole}.${digits.slice(-2)}`;
}

/** An address a link or a redirect may take, else null: never javascript: or data:. */
export function webAddress(text) {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
