// An honest payment aggregator in plain Node, written from the interface alone. Its one argument is JSON: `port`,
// `jwtKey`, `ttl`, `drain`, `rate` and `businesses` (`id`, `name`, `kyc`, `status`, `members`). What the document does
// not show is left out, as to change or to try a webhook endpoint, or chosen unlike payagg,
// but for the names of credentials and provider_b's hand-off.
import { createHash, createHmac, randomBytes, randomInt, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const CONFIG = JSON.parse(process.argv[2]);
const ORIGIN = `http://127.0.0.1:${CONFIG.port}`;
const EVENTS = { SUCCESS: "money.in", FAILED: "money.none", REVERSED: "money.back" };
const OUTCOMES = { ok: "SUCCESS", ko: "FAILED", undo: "REVERSED" };
const CARDS = {
  1111111111111111: "SUCCESS", 2222222222222222: "FAILED", 3333333333333333: "REVERSED", 4444444444444444: null,
};
const WORDS = { success: "SUCCESS", Completed: "SUCCESS", failed: "FAILED", Failed: "FAILED", reversed: "REVERSED" };
const PROVIDERS = { // what it needs, what proves its events, in which digest, where an event names a payment
  provider_a: { needs: "SecretKey", proofs: ["WebhookSecret", "SecretKey"], digest: "hex", reference: "reference" },
  provider_b: { needs: "PublicKey", proofs: ["SigningSecret"], digest: "base64", reference: "merchant_reference" },
};
const OVERLAP = 86_400_000; // how long a replaced secret proves events
const businesses = CONFIG.businesses.map((one) => ({ ...one, settings: {} }));
const gateways = new Map();
const keys = new Map(); // by digest
const endpoints = new Map();
const payments = new Map();
const paymentsByToken = new Map(); // business, environment and idempotency key
const inbound = new Map(); // times of events by address
const routes = [];
const GATEWAY = "/admin/gateways/:gateway";
const SHOP = "/merchant/businesses/:business";
const CHECKOUT = "/public/payments/:payment";
let revocations = 0;

class Refusal extends Error {
  constructor(status, code, field) {
    super(code);
    this.status = status;
    this.body = { success: false, error: { code, message: `We cannot do that (${code}).`, field } };
  }
}
const refuse = (when, status, code, field) => {
  if (when) throw new Refusal(status, code, field);
};
const reject = (when, field) => refuse(when, 400, "VALIDATION_ERROR", field);
const answer = (data, status = 200, more = {}) => ({ status, body: { success: true, data, ...more } });
const date = (later = 0) => new Date(Date.now() + later * 1000).toISOString();
const pick = (row, names) => Object.fromEntries(names.split(" ").map((name) => [name, row[name] ?? null]));
const parsed = (raw) => {
  try {
    return JSON.parse(raw.toString());
  } catch {
    return null;
  }
};

// What is sent: tables of fields, each with its check; `!` marks one that is required, and `?` one that may be null.

const form = (pattern) => (value) => typeof value === "string" && pattern.test(value);
const text = (low = 0, high = 4000) => form(new RegExp(`^.{${low},${high}}$`, "su"));
const oneOf = (...words) => (value) => words.includes(value);
const list = (low, high, check) => (value) =>
  Array.isArray(value) && value.length >= low && value.length <= high && value.every(check);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const object = (low, high, check = () => true) => (value) =>
  isObject(value) && list(low, high, check)(Object.values(value));
const url = (...schemes) => (value) =>
  text()(value) && URL.canParse(value) && schemes.includes(new URL(value).protocol.slice(0, -1));
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isFlag = (value) => typeof value === "boolean";
const isAmount = (value) => isCount(value) && value >= 100;
const isPlace = (value) => isObject(value) && text()(value.gatewayId) && isCount(value.displayOrder);
const isSlug = (value) => text(2, 50)(value) && form(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)(value);

const NEW_GATEWAY = { "slug!": isSlug, "name!": text(2, 100), description: text(0, 1000), displayOrder: isCount };
const GATEWAY_CHANGE = { name: text(2, 100), "description?": text(0, 1000), displayOrder: isCount };
const PAGE = { page: form(/^[1-9][0-9]{0,8}$/), perPage: form(/^([1-9][0-9]?|100)$/), search: text(0, 100) };
const SETTING = { isEnabled: isFlag, isDefault: isFlag, "displayName?": text(0, 50), displayOrder: isCount };
const NEW_KEY = { "environment!": oneOf("SANDBOX", "LIVE"), "name!": text(2, 100) };
const NEW_ENDPOINT = {
  "url!": url("https", "http"), "environment!": oneOf("SANDBOX", "LIVE"), description: text(0, 200),
  events: list(0, 100, oneOf(...Object.values(EVENTS))),
};
const TEST_PAYMENT = {
  "amount!": isAmount, currency: oneOf("NGN"), customerEmail: form(/^\S+@\S+\.\S+$/), customerName: text(),
  customerPhone: text(), callbackUrl: url("https", "http"), metadata: object(0, 50), idempotencyKey: text(1, 200),
};
const NEW_PAYMENT = { ...TEST_PAYMENT, gateway: text(), webhookUrl: url("https") };
const CHOICE = { gatewaySlug: text(), cardNumber: text() };
const OUTCOME = { "outcome!": oneOf(...Object.keys(OUTCOMES)) };

/** `sent` by the fields of a body; any other property is refused. */
function checked(sent, fields) {
  reject(!isObject(sent), "body");
  const known = Object.fromEntries(Object.keys(fields).map((field) => [field.replace(/[!?]$/, ""), field]));
  for (const [name, field] of Object.entries(known)) reject(field.endsWith("!") && !Object.hasOwn(sent, name), name);
  for (const [name, value] of Object.entries(sent)) {
    const field = Object.hasOwn(known, name) ? known[name] : "";
    reject(!field || !((value === null && field.endsWith("?")) || fields[field](value)), name);
  }
  return { ...sent };
}

// Who asks

const isSame = (ours, theirs = "") =>
  Buffer.byteLength(ours) === Buffer.byteLength(theirs) && timingSafeEqual(Buffer.from(ours), Buffer.from(theirs));
const digestOf = (secret) => createHash("sha256").update(secret).digest("hex");
const anybody = () => {};

function bearer(ask) {
  const found = /^bearer +(\S+) *$/i.exec(ask.headers.authorization ?? "");
  refuse(!found, 401, "UNAUTHORIZED");
  return found[1];
}

function claims(ask, realm) {
  const [head, body, signature] = bearer(ask).split(".");
  const good = createHmac("sha256", CONFIG.jwtKey).update(`${head}.${body}`).digest("base64url");
  const isHS256 = parsed(Buffer.from(head, "base64url"))?.alg === "HS256";
  const found = isHS256 && isSame(good, signature) ? parsed(Buffer.from(body, "base64url")) : null;
  refuse(!found?.sub || !(found.exp > Date.now() / 1000), 401, "UNAUTHORIZED");
  refuse(found.type !== realm, 403, "OTHER_REALM");
  return found;
}

function admin(ask) {
  refuse(!["ADMIN", "SUPER_ADMIN"].includes(claims(ask, "admin").role), 403, "ROLE_MISSING");
}

function manager(ask) {
  const { sub, emailVerified } = claims(ask, "merchant");
  ask.business = businesses.find((one) => one.id === ask.params.business);
  ask.environment = "SANDBOX";
  refuse(emailVerified !== true || !["OWNER", "ADMIN"].includes(ask.business?.members[sub]), 403, "ROLE_MISSING");
}

function changer(ask) {
  manager(ask);
  refuse(ask.business.status !== "ACTIVE", 403, "BUSINESS_RESTRICTED");
}

function server(ask) {
  const key = keys.get(digestOf(bearer(ask)));
  refuse(key?.status !== "ACTIVE", 401, "INVALID_API_KEY");
  [ask.business, ask.environment] = [key.business, key.environment];
  refuse(ask.path.endsWith("/simulate") && key.environment === "LIVE", 403, "SANDBOX_ONLY");
  refuse(ask.business.status !== "ACTIVE", 403, "BUSINESS_RESTRICTED");
  refuse(key.environment === "LIVE" && ask.business.kyc !== "APPROVED", 403, "KYC_REQUIRED");
  key.lastUsedAt = date();
}

// The rows that a path names, each for whoever asks; a payer may see each payment.

const found = (row, code) => {
  refuse(!row, 404, code);
  return row;
};
const FINDERS = {
  gateway: ({ params }) => settled(found(gateways.get(params.gateway), "GATEWAY_UNKNOWN")),
  key: ({ params, business }) => found(keysOf(business).find((one) => one.id === params.key), "KEY_UNKNOWN"),
  endpoint: ({ params, business }) =>
    found(endpointsOf(business).find((one) => one.id === params.endpoint), "ENDPOINT_UNKNOWN"),
  payment({ params, business, environment }) {
    refuse(!/^[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}$/.test(params.payment), 400, "INVALID_REFERENCE", "reference");
    const payment = found(payments.get(params.payment), "PAYMENT_NOT_FOUND");
    const isOther = business && (payment.business !== business || payment.environment !== environment);
    return current(found(!isOther && payment, "PAYMENT_NOT_FOUND"));
  },
};

// Gateways

function addGateway(facts) {
  const gateway = {
    id: randomUUID(), description: null, logoPath: null, logoUrl: null, displayOrder: 0, isBuiltIn: false,
    status: "DISABLED", drainStartedAt: null, drainEndsAt: null, hasCredentials: false, createdAt: date(),
    updatedAt: date(), ...facts, hidden: { credentials: {}, replaced: [], logo: null },
  };
  gateways.set(gateway.id, gateway);
  return gateway;
}

function settled(gateway) {
  if (gateway.status === "DRAINING" && gateway.drainEndsAt <= date())
    Object.assign(gateway, { status: "DISABLED", drainStartedAt: null, drainEndsAt: null });
  return gateway;
}

const usual = { isEnabled: true, isDefault: false, displayName: null, businessDisplayOrder: null };
const settingOf = (business, gateway) => (business.settings[gateway.id] ??= { ...usual });
const summary = (gateway) => {
  const { hidden, ...shown } = settled(gateway);
  const users = businesses.filter((one) => one.status === "ACTIVE" && settingOf(one, gateway).isEnabled);
  return { ...shown, isActive: gateway.status === "ACTIVE", businessCount: users.length };
};
const changed = (gateway, change) => summary(Object.assign(gateway, change, { updatedAt: date() }));
route("GET", "/admin/gateways", admin, null, () => answer([...gateways.values()].map(summary)));
route("POST", "/admin/gateways", admin, NEW_GATEWAY, ({ body }) => {
  refuse(["sandbox", ...[...gateways.values()].map((one) => one.slug)].includes(body.slug), 409, "SLUG_IN_USE");
  return answer(summary(addGateway(body)), 201);
});
route("GET", GATEWAY, admin, null, ({ gateway }) => {
  const off = businesses.filter((one) => !settingOf(one, gateway).isEnabled);
  const overrides = off.map((one) => ({ businessId: one.id, businessName: one.name, updatedAt: one.changedAt }));
  return answer({ ...summary(gateway), overrides });
});
route("PATCH", GATEWAY, admin, GATEWAY_CHANGE, ({ gateway, body }) => {
  const other = Object.keys(body).find((name) => name !== "displayOrder");
  reject(gateway.isBuiltIn && other, other);
  return answer(changed(gateway, body));
});
route("DELETE", GATEWAY, admin, null, ({ gateway }) => {
  refuse(gateway.isBuiltIn || gateway.status !== "DISABLED", 409, "GATEWAY_NEEDED");
  gateways.delete(gateway.id);
  return answer({ message: `${gateway.name} is deleted.` });
});
route("POST", `${GATEWAY}/enable`, admin, null, ({ gateway }) => {
  refuse(gateway.status === "ACTIVE", 409, "NOTHING_TO_DO");
  return answer(changed(gateway, { status: "ACTIVE", drainStartedAt: null, drainEndsAt: null }));
});
route("POST", `${GATEWAY}/disable`, admin, null, ({ gateway }) => {
  refuse(gateway.isBuiltIn || gateway.status !== "ACTIVE", 409, "NOTHING_TO_DO");
  return answer(changed(gateway, { status: "DRAINING", drainStartedAt: date(), drainEndsAt: date(CONFIG.drain) }));
});
route("GET", `${GATEWAY}/merchants`, admin, PAGE, ({ gateway, body }) => {
  const [page, perPage] = [Number(body.page ?? 1), Number(body.perPage ?? 20)];
  const search = (body.search ?? "").toLowerCase();
  const found = businesses.filter((one) => one.status === "ACTIVE" && one.name.toLowerCase().includes(search));
  const rows = found.slice((page - 1) * perPage, page * perPage).map((one) => {
    const { businessDisplayOrder, ...own } = settingOf(one, gateway);
    const ids = { id: `${gateway.id}/${one.id}`, businessId: one.id, businessName: one.name };
    return { ...ids, ...own, displayOrder: businessDisplayOrder ?? 0, createdAt: gateway.createdAt };
  });
  return answer(rows, 200, { meta: { page, perPage, total: found.length } });
});
route("PATCH", `${GATEWAY}/credentials`, admin, { "credentials!": object(1, 50, text()) }, ({ gateway, body }) => {
  gateway.hidden.replaced.push({ credentials: gateway.hidden.credentials, until: Date.now() + OVERLAP });
  gateway.hidden.credentials = body.credentials;
  changed(gateway, { hasCredentials: true });
  return { status: 200, body: { success: true } };
});
route("POST", `${GATEWAY}/logo`, admin, null, async ({ gateway, raw, headers }) => {
  const request = new Response(raw, { headers: { "Content-Type": headers["content-type"] ?? "" } });
  const part = await request.formData().then((one) => one.get("file"), () => null);
  reject(!part?.arrayBuffer, "file");
  const file = Buffer.from(await part.arrayBuffer());
  const is = (head, end) => file.toString("latin1").startsWith(head) && file.toString("latin1").endsWith(end);
  const isPng = is("\x89PNG\r\n\x1a\n", "IEND\xaeB`\x82");
  reject(!(isPng || is("\xff\xd8\xff", "\xff\xd9")) || file.length > 2 * 1024 * 1024, "file");
  const kind = isPng ? "png" : "jpeg";
  gateway.hidden.logo = { type: `image/${kind}`, file };
  changed(gateway, { logoPath: `${gateway.id}.${kind}`, logoUrl: `/api/v1/public/gateways/${gateway.id}/logo` });
  return answer({ logoUrl: gateway.logoUrl }, 201);
});
route("GET", "/public/gateways/:gateway/logo", anybody, null, ({ gateway: { hidden } }) => {
  refuse(!hidden.logo, 404, "LOGO_UNKNOWN");
  const headers = { "Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff" };
  return { status: 200, headers: { "Content-Type": hidden.logo.type, ...headers }, file: hidden.logo.file };
});

// What a business makes of them

const asSeen = (business, gateway) => ({
  ...pick(gateway, "id slug name description logoPath logoUrl displayOrder isBuiltIn"), ...settingOf(business, gateway),
});
const offered = (business) => {
  const place = (one) => (one.isBuiltIn ? -1 : (settingOf(business, one).businessDisplayOrder ?? one.displayOrder));
  const active = [...gateways.values()].filter((one) => settled(one).status === "ACTIVE");
  return active.sort((one, other) => place(one) - place(other));
};
const enabled = (business) => offered(business).filter((one) => settingOf(business, one).isEnabled);
const listSettings = ({ business }) => answer(offered(business).map((one) => asSeen(business, one)));
route("GET", `${SHOP}/gateways`, manager, null, listSettings);
route("PATCH", `${SHOP}/gateways/:gateway`, changer, SETTING, ({ business, gateway, body }) => {
  refuse(gateway.status !== "ACTIVE", 404, "GATEWAY_UNKNOWN");
  const { displayOrder, ...change } = body;
  const own = settingOf(business, gateway);
  const isOn = change.isEnabled ?? own.isEnabled;
  reject(gateway.isBuiltIn && !isOn, "isEnabled");
  reject(gateway.isBuiltIn && displayOrder !== undefined, "displayOrder");
  reject(change.isDefault && !isOn, "isDefault");
  for (const one of change.isDefault ? Object.values(business.settings) : []) one.isDefault = false;
  Object.assign(own, change, { businessDisplayOrder: displayOrder ?? own.businessDisplayOrder });
  own.isDefault &&= isOn;
  business.changedAt = date();
  return answer(asSeen(business, gateway));
});
route("POST", `${SHOP}/gateways/reorder`, changer, { "order!": list(1, 100, isPlace) }, (ask) => {
  const active = new Map(offered(ask.business).map((one) => [one.id, one]));
  for (const { gatewayId } of ask.body.order) reject(!active.has(gatewayId), "order");
  for (const { gatewayId, displayOrder } of ask.body.order)
    if (!active.get(gatewayId).isBuiltIn)
      settingOf(ask.business, active.get(gatewayId)).businessDisplayOrder = displayOrder;
  return listSettings(ask);
});

// Keys and endpoints of merchants

const keysOf = (business) => [...keys.values()].filter((one) => one.business === business);
const keysIn = (business, environment, status) =>
  keysOf(business).filter((one) => one.environment === environment && one.status === status);
const keyRecord = (key) => pick(key, "id name publicKey secretKeyDisplay status lastUsedAt createdAt revokedAt");
route("GET", `${SHOP}/api-keys`, changer, null, ({ business }) => {
  const group = (environment) => {
    const revoked = keysIn(business, environment, "REVOKED").sort((one, other) => other.number - one.number);
    return [...keysIn(business, environment, "ACTIVE"), ...revoked.slice(0, 20)].map(keyRecord);
  };
  return answer({ sandbox: group("SANDBOX"), live: group("LIVE") });
});
route("POST", `${SHOP}/api-keys`, changer, NEW_KEY, ({ business, body: { environment, name } }) => {
  refuse(environment === "LIVE" && business.kyc !== "APPROVED", 403, "KYC_REQUIRED");
  refuse(keysIn(business, environment, "ACTIVE").length >= 5, 409, "KEY_LIMIT_REACHED");
  const word = environment === "LIVE" ? "live" : "sand";
  const secretKey = `ssk_${word}_${randomBytes(32).toString("hex")}`;
  const key = {
    id: randomUUID(), business, name, environment, publicKey: `spk_${word}_${randomBytes(32).toString("hex")}`,
    secretKeyDisplay: `ssk_${word}_...${secretKey.slice(-4)}`, status: "ACTIVE", createdAt: date(),
  };
  keys.set(digestOf(secretKey), key);
  const shown = pick(key, "id name publicKey environment createdAt");
  return answer({ ...shown, secretKey, secretKeyNote: "Keep it: nobody can show it again." }, 201);
});
route("DELETE", `${SHOP}/api-keys/:key`, manager, null, ({ key }) => {
  refuse(key.status === "REVOKED", 409, "NOTHING_TO_DO");
  revocations += 1;
  Object.assign(key, { status: "REVOKED", revokedAt: date(), number: revocations });
  return answer({ message: `${key.name} is revoked.` });
});

const endpointsOf = (business) => [...endpoints.values()].filter((one) => one.business === business);
const endpointRecord = ({ secret, business, ...shown }) => shown;
route("GET", `${SHOP}/webhooks`, manager, null, ({ business }) => answer(endpointsOf(business).map(endpointRecord)));
route("POST", `${SHOP}/webhooks`, changer, NEW_ENDPOINT, ({ business, body }) => {
  reject(body.environment === "LIVE" && !url("https")(body.url), "url");
  refuse(endpointsOf(business).filter((one) => one.isActive).length >= 5, 409, "FIVE_ENDPOINTS");
  const secret = randomBytes(30).toString("base64");
  const endpoint = {
    id: randomUUID(), description: null, events: [], ...body, isActive: true, createdAt: date(),
    secretLast4: secret.slice(-4), deliverySummary: { successful: 0, failed: 0 }, secret, business,
  };
  endpoints.set(endpoint.id, endpoint);
  return answer({ endpoint: endpointRecord(endpoint), ...endpointRecord(endpoint), key: secret }, 201);
});
route("DELETE", `${SHOP}/webhooks/:endpoint`, changer, null, ({ endpoint }) => {
  endpoint.isActive = false;
  return answer(endpointRecord(endpoint));
});

async function deliver(endpoint, event) {
  const body = JSON.stringify(event);
  const signature = createHmac("sha512", endpoint.secret).update(body).digest("base64");
  const headers = { "Content-Type": "application/json", "X-Service-Signature": `v0 ${signature}` };
  const isTaken = await fetch(endpoint.url, { method: "POST", body, headers }).then((one) => one.ok, () => false);
  endpoint.deliverySummary[isTaken ? "successful" : "failed"] += 1;
}

// Payments

const detail = (payment) =>
  pick(payment, "reference amount currency status gateway environment customerEmail expiresAt");
const initiated = (payment) =>
  pick(payment, "reference amount currency environment status expiresAt checkoutUrl");

/** To a later status; what is final stays. */
function move(payment, status) {
  if (!status || payment.status === status || payment.status in EVENTS) return;
  payment.status = status;
  const kind = EVENTS[status];
  for (const one of endpointsOf(payment.business)) {
    const isWanted = !one.events.length || one.events.includes(kind);
    const isDue = kind && isWanted && one.isActive && one.environment === payment.environment;
    if (isDue) deliver(one, { kind, about: detail(payment) });
  }
}

/** A payment as its window leaves it. */
function current(payment) {
  if (payment.status === "INITIATED" && payment.expiresAt <= date()) move(payment, "FAILED");
  return payment;
}

/** A credential of a gateway in an environment, by its name there. */
const credential = (gateway, environment, name) => gateway.hidden.credentials[environment.toLowerCase() + name] ?? "";
function isReady(gateway, environment) {
  const needed = PROVIDERS[gateway.slug]?.needs;
  return credential(gateway, environment, needed) !== "" && credential(gateway, environment, "Enabled") !== "false";
}

function initiate({ business, environment, body }) {
  const token = body.idempotencyKey && JSON.stringify([business.id, environment, body.idempotencyKey]);
  if (paymentsByToken.has(token)) {
    const payment = current(paymentsByToken.get(token));
    refuse(payment.status in EVENTS, 409, "DUPLICATE_PAYMENT");
    return answer(initiated(payment));
  }
  const isSimulated = body.gateway === "sandbox" && environment === "SANDBOX";
  const isAmong = (rows) => !body.gateway || isSimulated || rows.some((one) => one.slug === body.gateway);
  refuse(!isAmong(offered(business)), 400, "GATEWAY_NOT_FOUND", "gateway");
  refuse(!isAmong(enabled(business)), 400, "GATEWAY_DISABLED", "gateway");
  const isServed = environment === "SANDBOX" || enabled(business).some((one) => isReady(one, environment));
  refuse(!isServed, 503, "NO_GATEWAY_AVAILABLE");
  const letters = Array.from({ length: 6 }, () => "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"[randomInt(32)]).join("");
  const reference = `NOD-${date().slice(0, 10).replaceAll("-", "")}-${letters}`;
  const payment = {
    currency: "NGN", ...body, reference, business, environment, status: "INITIATED", expiresAt: date(CONFIG.ttl),
    checkoutUrl: `${ORIGIN}/c/${reference}`, tries: 0, handOff: null, provider: null, turn: Promise.resolve(),
  };
  payments.set(reference, payment);
  if (token) paymentsByToken.set(token, payment);
  return answer(initiated(payment), 201);
}

function readPayment({ payment }) {
  return answer(detail(payment));
}

function simulate({ payment, body }) {
  refuse(payment.status in EVENTS, 409, "PAYMENT_ALREADY_FINAL");
  move(payment, OUTCOMES[body.outcome]);
  return answer(detail(payment));
}

route("GET", "/payments/context", server, null, ({ business, environment }) =>
  answer({ businessId: business.id, businessName: business.name, environment, kycStatus: business.kyc }));
route("POST", "/payments/initiate", server, NEW_PAYMENT, initiate);
route("GET", "/payments/:payment", server, null, readPayment);
route("POST", "/payments/:payment/simulate", server, OUTCOME, simulate);
route("POST", `${SHOP}/test-payment`, changer, TEST_PAYMENT, ({ business, environment, body }) => {
  refuse(!keysIn(business, "SANDBOX", "ACTIVE").length, 400, "NO_SANDBOX_KEY");
  return initiate({ business, environment, body: { ...body, gateway: "sandbox", isTest: true } });
});
route("GET", `${SHOP}/test-payment/:payment`, manager, null, readPayment);
route("POST", `${SHOP}/test-payment/:payment/simulate`, manager, OUTCOME, simulate);

// The hosted checkout

/** One work at a time for each payment. */
function inTurn(payment, work) {
  const mine = payment.turn.then(work);
  payment.turn = mine.catch(() => {});
  return mine;
}

/** The redirect URL or launch parameters of a provider. A try after the first has a reference of its own there. */
async function charged(payment, slug) {
  const { environment, reference, tries } = payment;
  const provider = enabled(payment.business).find((one) => one.slug === slug);
  refuse(!provider || payment.isTest, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug");
  refuse(!isReady(provider, environment), 400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "gatewaySlug");
  Object.assign(payment, { provider, named: tries ? `${reference}=${tries}` : reference, tries: tries + 1 });
  const email = payment.customerEmail ?? "nobody@example.com";
  if (slug === "provider_b") {
    const launch = {
      merchant_key: credential(provider, environment, "PublicKey"), checkout_amount: payment.amount / 100,
      connection_mode: environment === "LIVE" ? "Live" : "Test", currency_code: "NGN", email_address: email,
      first_name: "A", last_name: "Payer", phone_number: "", transaction_reference: payment.named,
    };
    return `${ORIGIN}/popup#${Buffer.from(JSON.stringify(launch)).toString("base64url")}`;
  }
  const charge = { email, amount: String(payment.amount), currency: "NGN", reference: payment.named };
  const told = await call(payment, "/transaction/initialize", { method: "POST", body: JSON.stringify(charge) });
  refuse(!told.authorization_url, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug");
  return told.authorization_url;
}

/** The `data` of a provider's answer; empty where it gives none. */
async function call({ provider, environment }, path, request = {}) {
  const publicKey = Buffer.from(credential(provider, environment, "PublicKey")).toString("base64");
  const isA = provider.slug === "provider_a";
  const proof = isA ? `Bearer ${credential(provider, environment, "SecretKey")}` : `Payaza ${publicKey}`;
  const headers = { Authorization: proof, "Content-Type": "application/json" };
  const place = credential(provider, environment, "BaseUrl") + path;
  const told = await fetch(place, { headers, ...request }).then((one) => one.json()).catch(() => null);
  return isObject(told?.data) ? told.data : {};
}

/** The status that a report yields, if any; a refusal where its money is another. */
function judged(payment, told) {
  const isA = payment.provider.slug === "provider_a";
  const status = WORDS["merchant_transaction_reference" in told ? told.transaction_status : told.status];
  const received = Math.round(told.amount_received * 100);
  const fee = Math.round((told.transaction_fee ?? 0) * 100);
  const amounts = isA ? [told.requested_amount ?? told.amount] : [received, received - fee];
  const isOther = !amounts.includes(payment.amount) || (told.currency ?? told.currency_code) !== payment.currency;
  refuse(status === "SUCCESS" && isOther, 502, "PAYMENT_AMOUNT_MISMATCH");
  return status;
}

route("GET", CHECKOUT, anybody, null, ({ payment }) =>
  answer({ ...pick(payment, "reference amount currency status environment"), shop: payment.business.name }));
route("GET", `${CHECKOUT}/gateways`, anybody, null, ({ payment: { business, environment, isTest } }) => {
  const row = (one) => ({ slug: one.slug, label: one.name, available: isReady(one, environment) });
  const rows = isTest ? [] : enabled(business).map(row);
  const simulator = { slug: "sandbox", label: "Try it", available: true };
  return answer({ gateways: [...rows, ...(environment === "SANDBOX" ? [simulator] : [])] });
});
route("POST", `${CHECKOUT}/process`, anybody, CHOICE, ({ payment, body }) => inTurn(payment, async () => {
  const isOver = payment.expiresAt <= date();
  refuse(payment.status in EVENTS && !(isOver && !payment.handOff), 409, "PAYMENT_ALREADY_PROCESSED");
  refuse(isOver, 410, "PAYMENT_EXPIRED");
  if (payment.handOff) return answer({ checkoutUrl: payment.handOff });
  const slug = body.gatewaySlug ?? payment.gateway;
  const isSimulated = slug === "sandbox" && payment.environment === "SANDBOX";
  reject(slug !== "sandbox" && ![...gateways.values()].some((one) => one.slug === slug), "gatewaySlug");
  reject(isSimulated && !Object.hasOwn(CARDS, body.cardNumber ?? ""), "cardNumber");
  const handOff = isSimulated ? `${payment.checkoutUrl}/simulator` : await charged(payment, slug);
  Object.assign(payment, { handOff, gateway: slug, outcome: CARDS[body.cardNumber] });
  move(payment, "PENDING");
  return answer({ checkoutUrl: handOff });
}));
route("GET", `${CHECKOUT}/verify`, anybody, null, async ({ payment }) => {
  const paths = {
    provider_a: "/transaction/verify/",
    provider_b: "/merchant-collection/transfer_notification_controller/merchant/transaction-query?merchant_reference=",
  };
  const isAsked = payment.handOff && payment.gateway in paths && !(payment.status in EVENTS);
  const told = isAsked && (await call(payment, paths[payment.gateway] + payment.named));
  move(payment, told ? judged(payment, told) : payment.outcome);
  return answer(pick(payment, "reference status callbackUrl"));
});

// Events of the providers

function receive({ params: { provider, environment = "live" }, path, raw, headers, address }) {
  const { proofs, digest, reference } = PROVIDERS[provider] ?? {};
  refuse(!proofs || !["live", "sandbox"].includes(environment), 404, "ROUTE_UNKNOWN");
  const times = (inbound.get(address) ?? []).filter((time) => time > Date.now() - 60_000);
  refuse(times.length >= CONFIG.rate, 429, "TOO_MANY");
  inbound.set(address, [...times, Date.now()]);
  const gateway = [...gateways.values()].find((one) => one.slug === provider);
  const { credentials = {}, replaced = [] } = gateway?.hidden ?? {};
  const secretOf = (stored) => proofs.map((name) => stored[environment + name]).find(Boolean);
  refuse(!secretOf(credentials) && path.endsWith("/provider_a"), 503, "PROVIDER_UNKNOWN");
  const recent = replaced.filter((one) => Date.now() < one.until).map((one) => one.credentials);
  const secrets = secretOf(credentials) ? [credentials, ...recent].map(secretOf).filter(Boolean) : [];
  const sign = (secret) => createHmac("sha512", secret).update(raw).digest(digest);
  const isGenuine = secrets.some((secret) => isSame(sign(secret), headers[`x-${provider}-signature`]));
  refuse(!isGenuine, 400, "INVALID_WEBHOOK_SIGNATURE");
  const event = parsed(raw);
  reject(provider === "provider_a" && !isObject(event), "body"); // provider_b's is acknowledged all the same
  const told = provider === "provider_a" ? String(event.event).startsWith("charge.") && event.data : event;
  const payment = payments.get(String(told?.[reference]).slice(0, 19));
  const isTheirs = payment?.environment.toLowerCase() === environment && payment.provider === gateway;
  try {
    if (isTheirs) move(payment, judged(payment, told));
  } catch {
    // Other money moves nothing.
  }
  return answer(null);
}

route("POST", "/webhooks/:provider", anybody, null, receive);
route("POST", "/webhooks/:provider/:environment", anybody, null, receive);

// Requests

/** `fields` are those of the body, or of a query. */
function route(method, path, guard, fields, handler) {
  const pattern = new RegExp(`^/api/v1${path.replaceAll(/:(\w+)/g, "(?<$1>[^/]+)")}$`);
  routes.push({ method, pattern, guard, fields, handler });
}

async function handle(request) {
  const raw = Buffer.concat(await request.toArray());
  const { pathname: path, searchParams } = new URL(request.url, ORIGIN);
  const found = routes.find((one) => one.method === request.method && one.pattern.test(path));
  refuse(!found, 404, "ROUTE_UNKNOWN");
  const params = found.pattern.exec(path).groups ?? {};
  const ask = { params, raw, path, headers: request.headers, address: request.socket.remoteAddress };
  found.guard(ask);
  for (const name in params) if (name in FINDERS) ask[name] = FINDERS[name](ask);
  const sent = found.method === "GET" ? Object.fromEntries(searchParams) : parsed(raw.length ? raw : "{}");
  if (found.fields) ask.body = checked(sent, found.fields);
  return found.handler(ask);
}

addGateway({ slug: "house", name: "House", status: "ACTIVE", isBuiltIn: true });
addGateway({ slug: "provider_b", name: "The second", displayOrder: 7 });
addGateway({ slug: "provider_a", name: "The first", displayOrder: 7 });
createServer(async (request, response) => {
  const told = await handle(request).catch((error) => {
    if (error instanceof Refusal) return error;
    console.error("Error", error);
    return { status: 500, body: { success: false, error: { code: "OUR_FAULT", message: "We failed." } } };
  });
  response.writeHead(told.status, told.headers ?? { "Content-Type": "application/json; charset=utf-8" });
  response.end(told.file ?? JSON.stringify(told.body));
}).listen(CONFIG.port, "127.0.0.1");
