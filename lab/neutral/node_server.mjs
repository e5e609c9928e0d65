// An honest payment aggregator in plain Node, written from the interface alone. Its one argument is JSON: `port`, `jwtKey`,
// `ttl`, `drain`, `rate`, `businesses` (`id`, `name`, `kyc`, `status`, `members`). What the document does not show is chosen
// unlike payagg and unlike the server in Starlette, but for the names of credentials and provider_b's hand-off.
import { createHash, createHmac, randomBytes, randomInt, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const CONFIG = JSON.parse(process.argv[2]);
const ORIGIN = `http://127.0.0.1:${CONFIG.port}`;
const API = "/api/v1";
const BUILTIN = "house";
const EVENTS = { SUCCESS: "money.in", FAILED: "money.none", REVERSED: "money.back" };
const OUTCOMES = { ok: "SUCCESS", ko: "FAILED", undo: "REVERSED" };
const CARDS = { 1111111111111111: "SUCCESS", 2222222222222222: "FAILED", 3333333333333333: "REVERSED", 4444444444444444: null };
const REFERENCE = /^[A-Z]{3}-[0-9]{8}-[A-Z0-9]{6}$/;
const OVERLAP = 86_400_000; // how long a replaced signing secret proves events
const KINDS = { provider_a: ["WebhookSecret", "SecretKey"], provider_b: ["SigningSecret"] };
const HOSTS = { provider_a: "https://api.paystack.co", provider_b: "https://api.payaza.africa/live" };
const businesses = new Map(CONFIG.businesses.map((one) => [one.id, { ...one, settings: new Map() }]));
const gateways = new Map();
const keys = new Map(); // by digest
const endpoints = new Map();
const payments = new Map();
const byKey = new Map(); // payments by business, environment and idempotency key
const inbound = new Map(); // times by address

class Refusal extends Error {
  constructor(status, code, field) {
    super(code);
    Object.assign(this, { status, error: { code, message: `We cannot do that (${code}).`, ...(field && { field }) } });
  }
}

const refuse = (when, status, code, field) => {
  if (when) throw new Refusal(status, code, field);
};
const reject = (when, field) => refuse(when, 400, "VALIDATION_ERROR", field);
const date = (time) => (time === null ? null : new Date(time).toISOString());
const pick = (row, names) => Object.fromEntries(names.split(" ").map((name) => [name, row[name] ?? null]));
const answer = (data, status = 200, more = {}) => ({ status, body: { success: true, data, ...more } });
const parsed = (raw) => {
  try {
    return JSON.parse(raw.toString());
  } catch {
    return null;
  }
};
const values = (map, filter = () => true) => [...map.values()].filter(filter);

// What is sent

const text = (low = 0, high = 4000) => (value) => typeof value === "string" && [...value].length >= low && [...value].length <= high;
const oneOf = (...words) => (value) => words.includes(value);
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isFlag = (value) => typeof value === "boolean";
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isUrl = (...schemes) => (value) =>
  typeof value === "string" && URL.canParse(value) && schemes.includes(new URL(value).protocol.slice(0, -1));

/** The object of a body by its rules. `needed` and `nullable` are names; what no rule is about is refused. */
function sent(ask, rules, needed = "", nullable = "", isOpen = false) {
  const body = parsed(ask.raw.length ? ask.raw : "{}");
  reject(!isObject(body), "body");
  for (const name of needed ? needed.split(" ") : []) reject(body[name] === undefined, name);
  const found = {};
  for (const [name, value] of Object.entries(body)) {
    if (isOpen && !Object.hasOwn(rules, name)) continue;
    const mayBeNull = value === null && nullable.split(" ").includes(name);
    reject(!mayBeNull && !(Object.hasOwn(rules, name) && rules[name](value)), name);
    found[name] = value;
  }
  return found;
}

// Who asks

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

const isSame = (ours, theirs = "") =>
  Buffer.byteLength(ours) === Buffer.byteLength(theirs) && timingSafeEqual(Buffer.from(ours), Buffer.from(theirs));

function admin(ask) {
  refuse(!["ADMIN", "SUPER_ADMIN"].includes(claims(ask, "admin").role), 403, "ROLE_MISSING");
  if (ask.params.gateway === undefined) return;
  ask.gateway = gateways.get(ask.params.gateway);
  refuse(!ask.gateway, 404, "GATEWAY_UNKNOWN");
  settle(ask.gateway);
}

function manager(ask) {
  const { sub, emailVerified } = claims(ask, "merchant");
  ask.business = businesses.get(ask.params.business);
  ask.environment = "SANDBOX";
  refuse(emailVerified !== true || !["OWNER", "ADMIN"].includes(ask.business?.members[sub]), 403, "ROLE_MISSING");
}

function changer(ask) {
  manager(ask);
  refuse(ask.business.status !== "ACTIVE", 403, "BUSINESS_RESTRICTED");
}

const digestOf = (secret) => createHash("sha256").update(secret).digest("hex");

function server(ask) {
  const key = keys.get(digestOf(bearer(ask)));
  refuse(!key || key.revokedAt !== null, 401, "INVALID_API_KEY");
  refuse(ask.path.endsWith("/simulate") && key.environment === "LIVE", 403, "SANDBOX_ONLY");
  [ask.business, ask.environment] = [businesses.get(key.business), key.environment];
  refuse(ask.business.status !== "ACTIVE", 403, "BUSINESS_RESTRICTED");
  refuse(key.environment === "LIVE" && ask.business.kyc !== "APPROVED", 403, "KYC_REQUIRED");
  key.lastUsedAt = Date.now();
}

const anybody = () => {};

// Gateways

function addGateway(facts) {
  const now = Date.now();
  const gateway = {
    id: randomUUID(), description: null, displayOrder: 0, status: "DISABLED", drainStartedAt: null, credentials: {},
    replaced: [], logo: null, createdAt: now, updatedAt: now, ...facts,
  };
  gateways.set(gateway.id, gateway);
  return gateway;
}

function settle(gateway) {
  if (gateway.status === "DRAINING" && Date.now() >= gateway.drainStartedAt + CONFIG.drain * 1000)
    Object.assign(gateway, { status: "DISABLED", drainStartedAt: null });
  return gateway;
}

const isBuiltIn = (gateway) => gateway.slug === BUILTIN;
const settingOf = (business, gateway) =>
  business.settings.get(gateway.id) ?? { isEnabled: true, isDefault: false, displayName: null, order: null, at: gateway.createdAt };
const setting = (business, gateway, change) =>
  business.settings.set(gateway.id, { ...settingOf(business, gateway), ...change, at: Date.now() });
const looks = (gateway) => ({
  ...pick(gateway, "id slug name description displayOrder"), isBuiltIn: isBuiltIn(gateway),
  logoPath: gateway.logo && `${gateway.id}.${gateway.logo.type.slice(6)}`,
  logoUrl: gateway.logo && `${API}/public/gateways/${gateway.id}/logo`,
});
const summary = (gateway) => ({
  ...looks(gateway), isActive: gateway.status === "ACTIVE", status: gateway.status, hasCredentials: Object.keys(gateway.credentials).length > 0,
  businessCount: values(businesses, (one) => one.status === "ACTIVE" && settingOf(one, gateway).isEnabled).length,
  drainStartedAt: date(gateway.drainStartedAt), drainEndsAt: date(gateway.drainStartedAt && gateway.drainStartedAt + CONFIG.drain * 1000),
  createdAt: date(gateway.createdAt), updatedAt: date(gateway.updatedAt),
});
const changed = (gateway, change) => summary(Object.assign(gateway, change, { updatedAt: Date.now() }));
const GATEWAY_RULES = { name: text(2, 100), description: text(0, 1000), displayOrder: isCount };

function createGateway(ask) {
  const isSlug = (value) => text(2, 50)(value) && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(value);
  const body = sent(ask, { ...GATEWAY_RULES, slug: isSlug }, "slug name");
  refuse(["sandbox", ...values(gateways).map((one) => one.slug)].includes(body.slug), 409, "SLUG_IN_USE");
  return answer(summary(addGateway(body)), 201);
}

function readGateway({ gateway }) {
  const off = values(businesses, (one) => !settingOf(one, gateway).isEnabled);
  const rows = off.map((one) => ({ businessId: one.id, businessName: one.name, updatedAt: date(settingOf(one, gateway).at) }));
  return answer({ ...summary(gateway), overrides: rows });
}

function changeGateway(ask) {
  const body = sent(ask, GATEWAY_RULES, "", "description");
  const other = Object.keys(body).find((name) => name !== "displayOrder");
  reject(isBuiltIn(ask.gateway) && other, other);
  return answer(changed(ask.gateway, body));
}

function deleteGateway({ gateway }) {
  refuse(isBuiltIn(gateway) || gateway.status !== "DISABLED", 409, "GATEWAY_NEEDED");
  gateways.delete(gateway.id);
  return answer({ message: `${gateway.name} is deleted.` });
}

function enableGateway({ gateway }) {
  refuse(gateway.status === "ACTIVE", 409, "NOTHING_TO_DO");
  return answer(changed(gateway, { status: "ACTIVE", drainStartedAt: null }));
}

function disableGateway({ gateway }) {
  refuse(isBuiltIn(gateway) || gateway.status !== "ACTIVE", 409, "NOTHING_TO_DO");
  return answer(changed(gateway, { status: "DRAINING", drainStartedAt: Date.now() }));
}

function listMerchants({ gateway, query }) {
  const number = (name, usual, most) => {
    const asked = query.get(name) ?? usual;
    reject(!/^[0-9]{1,9}$/.test(asked) || Number(asked) < 1 || Number(asked) > most, name);
    return Number(asked);
  };
  const [page, perPage, search] = [number("page", "1", 1e9), number("perPage", "20", 100), query.get("search") ?? ""];
  reject(search.length > 100, "search");
  const found = values(businesses, (one) => one.status === "ACTIVE" && one.name.toLowerCase().includes(search.toLowerCase()));
  const rows = found.slice((page - 1) * perPage, page * perPage).map((one) => {
    const { order, at, ...shown } = settingOf(one, gateway);
    return { id: `${gateway.id}/${one.id}`, businessId: one.id, businessName: one.name, ...shown, displayOrder: order ?? 0, createdAt: date(at) };
  });
  return answer(rows, 200, { meta: { page, perPage, total: found.length } });
}

function storeCredentials(ask) {
  const isFit = (value) => isObject(value) && Object.values(value).every(text()) && Object.keys(value).length >= 1 && Object.keys(value).length <= 50;
  const { credentials } = sent(ask, { credentials: isFit }, "credentials");
  ask.gateway.replaced.push({ credentials: ask.gateway.credentials, until: Date.now() + OVERLAP });
  changed(ask.gateway, { credentials });
  return { status: 200, body: { success: true } };
}

function storeLogo(ask) {
  const border = /boundary="?([^";]+)/.exec(ask.headers["content-type"] ?? "")?.[1];
  reject(!border, "file");
  const parts = ask.raw.toString("latin1").split(`--${border}`);
  const part = parts.find((one) => /content-disposition:[^\r]*\bname="file"/i.test(one.split("\r\n\r\n")[0])) ?? "";
  const file = Buffer.from(part.slice(part.indexOf("\r\n\r\n") + 4, -2), "latin1");
  const is = (head, end) => file.indexOf(head, 0, "latin1") === 0 && file.subarray(-end.length).toString("latin1") === end;
  const type = is("\x89PNG\r\n\x1a\n", "IEND\xaeB`\x82") ? "image/png" : is("\xff\xd8\xff", "\xff\xd9") ? "image/jpeg" : null;
  reject(!type || file.length > 2 * 1024 * 1024, "file");
  ask.gateway.logo = { type, file };
  return answer({ logoUrl: looks(ask.gateway).logoUrl }, 201);
}

function readLogo({ params }) {
  const logo = gateways.get(params.id)?.logo;
  refuse(!logo, 404, "LOGO_UNKNOWN");
  const headers = { "Content-Type": logo.type, "Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff" };
  return { status: 200, headers, file: logo.file };
}

// What a business makes of them

const asSeen = (business, gateway) => {
  const { order, at, ...shown } = settingOf(business, gateway);
  return { ...looks(gateway), ...shown, businessDisplayOrder: order };
};
const offered = (business) => {
  const place = (one) => (isBuiltIn(one) ? -1 : (settingOf(business, one).order ?? one.displayOrder));
  return values(gateways, (one) => settle(one).status === "ACTIVE").sort((one, other) => place(one) - place(other));
};
const enabled = (business) => offered(business).filter((one) => settingOf(business, one).isEnabled);
const listSettings = ({ business }) => answer(offered(business).map((one) => asSeen(business, one)));

function changeSetting(ask) {
  const { business, params } = ask;
  const gateway = offered(business).find((one) => one.id === params.id);
  refuse(!gateway, 404, "GATEWAY_UNKNOWN");
  const rules = { isEnabled: isFlag, isDefault: isFlag, displayName: text(0, 50), displayOrder: isCount };
  const { displayOrder: order, ...change } = sent(ask, rules, "", "displayName");
  reject(isBuiltIn(gateway) && change.isEnabled === false, "isEnabled");
  reject(isBuiltIn(gateway) && order !== undefined, "displayOrder");
  const isOn = change.isEnabled ?? settingOf(business, gateway).isEnabled;
  reject(change.isDefault && !isOn, "isDefault");
  for (const one of change.isDefault ? business.settings.values() : []) one.isDefault = false;
  setting(business, gateway, { ...change, ...(order !== undefined && { order }), ...(!isOn && { isDefault: false }) });
  return answer(asSeen(business, gateway));
}

function reorder(ask) {
  const active = new Map(offered(ask.business).map((one) => [one.id, one]));
  const isFit = (value) => Array.isArray(value) && value.length >= 1 && value.length <= 100
    && value.every((one) => isObject(one) && active.has(one.gatewayId) && isCount(one.displayOrder));
  for (const { gatewayId, displayOrder } of sent(ask, { order: isFit }, "order").order)
    if (!isBuiltIn(active.get(gatewayId))) setting(ask.business, active.get(gatewayId), { order: displayOrder });
  return listSettings(ask);
}

// Keys and endpoints

const keysOf = (business, environment, isActive) =>
  values(keys, (one) => one.business === business.id && one.environment === environment && (one.revokedAt === null) === isActive);
const keyRecord = (key) => ({
  ...pick(key, "id name publicKey secretKeyDisplay"), status: key.revokedAt === null ? "ACTIVE" : "REVOKED",
  lastUsedAt: date(key.lastUsedAt), createdAt: date(key.createdAt), revokedAt: date(key.revokedAt),
});

function listKeys({ business }) {
  const group = (environment) => {
    const gone = keysOf(business, environment, false).sort((one, other) => other.revokedAt - one.revokedAt || other.number - one.number);
    return [...keysOf(business, environment, true), ...gone.slice(0, 20)].map(keyRecord);
  };
  return answer({ sandbox: group("SANDBOX"), live: group("LIVE") });
}

function createKey(ask) {
  const { environment, name } = sent(ask, { environment: oneOf("SANDBOX", "LIVE"), name: text(2, 100) }, "environment name");
  refuse(environment === "LIVE" && ask.business.kyc !== "APPROVED", 403, "KYC_REQUIRED");
  refuse(keysOf(ask.business, environment, true).length >= 5, 409, "KEY_LIMIT_REACHED");
  const word = environment === "LIVE" ? "live" : "sand";
  const secretKey = `ssk_${word}_${randomBytes(32).toString("hex")}`;
  const key = {
    id: randomUUID(), business: ask.business.id, name, environment, publicKey: `spk_${word}_${randomBytes(32).toString("hex")}`,
    secretKeyDisplay: `ssk_${word}_...${secretKey.slice(-4)}`, createdAt: Date.now(), lastUsedAt: null, revokedAt: null,
  };
  keys.set(digestOf(secretKey), key);
  const shown = { ...pick(key, "id name publicKey environment"), secretKey, createdAt: date(key.createdAt) };
  return answer({ ...shown, secretKeyNote: "Keep it: nobody can show it again." }, 201);
}

function revokeKey({ business, params }) {
  const key = values(keys, (one) => one.id === params.id && one.business === business.id)[0];
  refuse(!key, 404, "KEY_UNKNOWN");
  refuse(key.revokedAt !== null, 409, "NOTHING_TO_DO");
  Object.assign(key, { revokedAt: Date.now(), number: keys.revoked = (keys.revoked ?? 0) + 1 });
  return answer({ message: `${key.name} is revoked.` });
}

const areEvents = (value) => Array.isArray(value) && value.every((one) => Object.values(EVENTS).includes(one));
const ENDPOINT_RULES = { url: isUrl("https", "http"), description: text(0, 200), events: areEvents };
const endpointRecord = ({ secret, log, business, ...shown }) => ({
  ...shown, secretLast4: secret.slice(-4),
  deliverySummary: { successful: log.filter((one) => one.isTaken).length, failed: log.filter((one) => !one.isTaken).length },
});

function createEndpoint(ask) {
  const rules = { ...ENDPOINT_RULES, environment: oneOf("SANDBOX", "LIVE") };
  const body = sent(ask, rules, "url environment");
  reject(body.environment === "LIVE" && !isUrl("https")(body.url), "url");
  const active = values(endpoints, (one) => one.business === ask.business.id && one.isActive);
  refuse(active.length >= 5, 409, "FIVE_ENDPOINTS");
  const secret = randomBytes(30).toString("base64");
  const endpoint = {
    id: randomUUID(), description: null, events: [], ...body, isActive: true, createdAt: date(Date.now()), secret, log: [], business: ask.business.id,
  };
  endpoints.set(endpoint.id, endpoint);
  return answer({ endpoint: endpointRecord(endpoint), ...endpointRecord(endpoint), key: secret }, 201);
}

function endpointOf({ business, params }) {
  const found = endpoints.get(params.id);
  refuse(found?.business !== business.id, 404, "ENDPOINT_UNKNOWN");
  return found;
}

const changeEndpoint = (ask) => answer(endpointRecord(Object.assign(endpointOf(ask), sent(ask, ENDPOINT_RULES, "", "description"))));
const deleteEndpoint = (ask) => answer(endpointRecord(Object.assign(endpointOf(ask), { isActive: false })));
const testEndpoint = async (ask) => answer({ took: await deliver(endpointOf(ask), { kind: "test" }, [0]) });
const listDeliveries = (ask) =>
  answer(endpointOf(ask).log.slice(-20), 200, { meta: { page: 1, perPage: 20, total: endpointOf(ask).log.length } });

async function deliver(endpoint, event, pauses) {
  const body = JSON.stringify(event);
  const headers = { "Content-Type": "application/json", "X-Service-Signature": `v0 ${createHmac("sha512", endpoint.secret).update(body).digest("base64")}` };
  let isTaken = false;
  for (const pause of pauses) {
    await new Promise((done) => setTimeout(done, pause * 1000).unref());
    isTaken = await fetch(endpoint.url, { method: "POST", body, headers }).then((one) => one.ok, () => false);
    if (isTaken) break;
  }
  endpoint.log.push({ kind: event.kind, isTaken, at: date(Date.now()) });
  return isTaken;
}

// Payments

const detail = (payment) => ({ ...pick(payment, "reference amount currency status gateway environment customerEmail"), ends: date(payment.expires) });
const initiated = (payment) => ({
  ...pick(payment, "reference amount currency environment status"), checkoutUrl: `${ORIGIN}/c/${payment.reference}`, expiresAt: date(payment.expires),
});

/** To a later status. What is final stays, and what an hour without a payer left is FAILED. */
function move(payment, status) {
  if (!status || payment.status === status || payment.status in EVENTS) return payment;
  payment.status = status;
  const wants = (one) => one.isActive && one.business === payment.business.id && one.environment === payment.environment;
  const kind = EVENTS[status];
  for (const one of kind ? values(endpoints, wants) : [])
    if (!one.events.length || one.events.includes(kind)) deliver(one, { kind, about: detail(payment) }, [0, 2, 4]);
  return payment;
}

const current = (payment) => move(payment, payment.status === "INITIATED" && Date.now() >= payment.expires ? "FAILED" : null);

function isReady(gateway, environment) {
  const word = environment.toLowerCase();
  const name = { provider_a: "SecretKey", provider_b: "PublicKey" }[gateway.slug];
  return Boolean(name && gateway.credentials[word + name]) && gateway.credentials[`${word}Enabled`] !== "false";
}

function begin({ business, environment }, body) {
  const key = body.idempotencyKey && JSON.stringify([business.id, environment, body.idempotencyKey]);
  if (byKey.has(key)) {
    const payment = current(byKey.get(key));
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
  const reference = `NOD-${new Date().toISOString().slice(0, 10).replaceAll("-", "")}-${letters}`;
  const payment = {
    currency: "NGN", ...body, reference, business, environment, status: "INITIATED", expires: Date.now() + CONFIG.ttl * 1000, tries: 0,
    handOff: null, provider: null, turn: Promise.resolve(),
  };
  payments.set(reference, payment);
  if (key) byKey.set(key, payment);
  return answer(initiated(payment), 201);
}

const isAmount = (value) => Number.isSafeInteger(value) && value >= 100;
const isMetadata = (value) => isObject(value) && Object.keys(value).length <= 50;
const TEST_RULES = {
  amount: isAmount, currency: oneOf("NGN"), customerEmail: (value) => text()(value) && /^\S+@\S+\.\S+$/.test(value), customerName: text(),
  customerPhone: text(), callbackUrl: isUrl("https", "http"), metadata: isMetadata, idempotencyKey: text(1, 200),
};
const PAYMENT_RULES = { ...TEST_RULES, gateway: text(), webhookUrl: isUrl("https") };
const context = ({ business, environment }) =>
  answer({ businessId: business.id, businessName: business.name, environment, kycStatus: business.kyc });
const initiate = (ask) => begin(ask, sent(ask, PAYMENT_RULES, "amount"));

function makeTest(ask) {
  const body = sent(ask, TEST_RULES, "amount");
  refuse(!keysOf(ask.business, "SANDBOX", true).length, 400, "NO_SANDBOX_KEY");
  return begin(ask, { ...body, gateway: "sandbox", isTest: true });
}

/** Of whoever asks; a payer may see each. */
function paymentOf({ params, business, environment }) {
  refuse(!REFERENCE.test(params.reference), 400, "INVALID_REFERENCE", "reference");
  const found = payments.get(params.reference);
  refuse(!found || (business && (found.business !== business || found.environment !== environment)), 404, "PAYMENT_NOT_FOUND");
  return current(found);
}

const readPayment = (ask) => answer(detail(paymentOf(ask)));

/** One at a time for each payment. */
function inTurn(payment, work) {
  const mine = payment.turn.then(work);
  payment.turn = mine.catch(() => {});
  return mine;
}

function simulate(ask) {
  refuse(!REFERENCE.test(ask.params.reference), 400, "INVALID_REFERENCE", "reference");
  const { outcome } = sent(ask, { outcome: oneOf(...Object.keys(OUTCOMES)) }, "outcome", "", true);
  const payment = paymentOf(ask);
  return inTurn(payment, () => {
    refuse(payment.status in EVENTS, 409, "PAYMENT_ALREADY_FINAL");
    return answer(detail(move(payment, OUTCOMES[outcome])));
  });
}

// The hosted checkout

function readPublic(ask) {
  const payment = paymentOf(ask);
  return answer({ ...pick(payment, "reference amount currency status"), shop: payment.business.name, isTest: payment.environment === "SANDBOX" });
}

function listOptions(ask) {
  const { business, environment, isTest } = paymentOf(ask);
  const rows = isTest ? [] : enabled(business).map((one) => ({ slug: one.slug, label: one.name, available: isReady(one, environment) }));
  return answer({ gateways: environment === "SANDBOX" ? [...rows, { slug: "sandbox", label: "Try it", available: true }] : rows });
}

const credentialsOf = ({ environment }, gateway) => (name) => {
  const word = environment.toLowerCase();
  return gateway.credentials[word + name] ?? (name === "BaseUrl" ? HOSTS[gateway.slug] : "");
};

/** The redirect URL or launch parameters of a provider. A try after the first has a reference of its own there. */
async function handOff(payment, gateway) {
  const of = credentialsOf(payment, gateway);
  payment.ordered = payment.tries ? `${payment.reference}=${payment.tries}` : payment.reference;
  payment.tries += 1;
  const email = payment.customerEmail ?? "nobody@example.com";
  if (gateway.slug === "provider_b") {
    const launch = {
      merchant_key: of("PublicKey"), connection_mode: payment.environment === "LIVE" ? "Live" : "Test", checkout_amount: payment.amount / 100,
      currency_code: "NGN", email_address: email, first_name: "A", last_name: "Payer", phone_number: "", transaction_reference: payment.ordered,
    };
    return `${ORIGIN}/popup#${Buffer.from(JSON.stringify(launch)).toString("base64url")}`;
  }
  const headers = { Authorization: `Bearer ${of("SecretKey")}`, "Content-Type": "application/json" };
  const body = JSON.stringify({ email, amount: String(payment.amount), currency: "NGN", reference: payment.ordered });
  const told = await fetch(`${of("BaseUrl")}/transaction/initialize`, { method: "POST", headers, body }).then((one) => one.json()).catch(() => ({}));
  refuse(!told.data?.authorization_url, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug");
  return told.data.authorization_url;
}

function processPayment(ask) {
  refuse(!REFERENCE.test(ask.params.reference), 400, "INVALID_REFERENCE", "reference");
  const body = sent(ask, { gatewaySlug: text(), cardNumber: text() });
  const payment = paymentOf(ask);
  return inTurn(payment, async () => {
    const isOver = Date.now() >= payment.expires;
    refuse(payment.status in EVENTS && !(isOver && !payment.handOff), 409, "PAYMENT_ALREADY_PROCESSED");
    refuse(isOver, 410, "PAYMENT_EXPIRED");
    if (payment.handOff) return answer({ checkoutUrl: payment.handOff, isRepeat: true });
    const slug = body.gatewaySlug ?? payment.gateway;
    const card = (body.cardNumber ?? "").replaceAll(/\s/g, "");
    reject(slug !== "sandbox" && !values(gateways).some((one) => one.slug === slug), "gatewaySlug");
    const isSimulated = slug === "sandbox" && payment.environment === "SANDBOX";
    const gateway = payment.isTest ? undefined : enabled(payment.business).find((one) => one.slug === slug);
    reject(isSimulated && !Object.hasOwn(CARDS, card), "cardNumber");
    refuse(!isSimulated && !gateway, 400, "GATEWAY_NOT_AVAILABLE", "gatewaySlug");
    refuse(gateway && !isReady(gateway, payment.environment), 400, "GATEWAY_ENVIRONMENT_NOT_CONFIGURED", "gatewaySlug");
    const url = gateway ? await handOff(payment, gateway) : `${ORIGIN}/c/${payment.reference}/simulator`;
    Object.assign(payment, { handOff: url, provider: gateway ?? null, gateway: slug, card: CARDS[card] });
    move(payment, "PENDING");
    return answer({ checkoutUrl: url, isRepeat: false });
  });
}

/** What the provider says became of a payment; null where it says nothing. */
async function askProvider(payment) {
  const { slug } = payment.provider;
  const of = credentialsOf(payment, payment.provider);
  const [path, proof] = slug === "provider_a"
    ? [`/transaction/verify/${payment.ordered}`, `Bearer ${of("SecretKey")}`]
    : [`/merchant-collection/transfer_notification_controller/merchant/transaction-query?merchant_reference=${payment.ordered}`,
        `Payaza ${Buffer.from(of("PublicKey")).toString("base64")}`];
  const told = await fetch(of("BaseUrl") + path, { headers: { Authorization: proof } }).then((one) => one.json()).catch(() => ({}));
  return told?.data ? judge(payment, slug, told.data) : null;
}

/** The status that a report yields; a refusal where its money is another. */
function judge(payment, slug, told) {
  const isA = slug === "provider_a";
  const word = isA ? told.status : (("merchant_transaction_reference" in told) ? told.transaction_status : told.status);
  const status = { success: "SUCCESS", Completed: "SUCCESS", failed: "FAILED", Failed: "FAILED", reversed: "REVERSED" }[word] ?? null;
  const paid = Math.round(told.amount_received * 100);
  const amounts = isA ? [told.requested_amount ?? told.amount] : [paid, paid - Math.round((told.transaction_fee ?? 0) * 100)];
  const currency = told.currency ?? told.currency_code;
  const isOther = !amounts.includes(payment.amount) || currency !== payment.currency;
  refuse(status === "SUCCESS" && isOther, 502, "PAYMENT_AMOUNT_MISMATCH");
  return status;
}

function verify(ask) {
  const payment = paymentOf(ask);
  return inTurn(payment, async () => {
    const isOpen = payment.handOff && !(payment.status in EVENTS);
    if (isOpen) move(payment, payment.provider ? await askProvider(payment) : payment.card);
    return answer({ reference: payment.reference, status: payment.status, callbackUrl: payment.callbackUrl ?? null });
  });
}

// Events of the providers

async function receive(ask) {
  const { slug, where } = ask.params;
  refuse(!(slug in KINDS) || !["live", "sandbox", undefined].includes(where), 404, "ROUTE_UNKNOWN");
  const word = where ?? "live";
  const times = (inbound.get(ask.address) ?? []).filter((time) => time > Date.now() - 60_000);
  inbound.set(ask.address, times);
  refuse(times.length >= CONFIG.rate, 429, "TOO_MANY");
  if (CONFIG.rate < 1000) times.push(Date.now());
  const gateway = values(gateways, (one) => one.slug === slug)[0];
  const secretOf = (credentials) => KINDS[slug].map((name) => credentials[word + name]).find(Boolean);
  const own = gateway && secretOf(gateway.credentials);
  refuse(!own && slug === "provider_a" && where === undefined, 503, "PROVIDER_UNKNOWN");
  const old = gateway?.replaced.filter((one) => Date.now() < one.until).map((one) => secretOf(one.credentials)) ?? [];
  const sign = (secret) => createHmac("sha512", secret).update(ask.raw).digest(slug === "provider_a" ? "hex" : "base64");
  const given = ask.headers[`x-${slug}-signature`];
  const isGenuine = own && [own, ...old].some((secret) => secret && isSame(sign(secret), given));
  refuse(!isGenuine, 400, "INVALID_WEBHOOK_SIGNATURE");
  const event = parsed(ask.raw);
  reject(slug === "provider_a" && !isObject(event), "body"); // provider_b's is acknowledged all the same
  const told = slug === "provider_a" ? (String(event.event).startsWith("charge.") ? event.data : null) : event;
  const payment = payments.get(String(told?.[slug === "provider_a" ? "reference" : "merchant_reference"]).slice(0, 19));
  if (payment?.provider === gateway && payment.environment.toLowerCase() === word)
    await inTurn(payment, () => move(payment, judge(payment, slug, told))).catch(() => {}); // other money moves nothing
  return answer(null);
}

const [ONE, SHOP, PUBLIC] = ["/admin/gateways/:gateway", "/merchant/businesses/:business", "/public/payments/:reference"];
const ROUTES = [
  ["GET", "/admin/gateways", admin, () => answer(values(gateways).map((one) => summary(settle(one))))],
  ["POST", "/admin/gateways", admin, createGateway], ["GET", ONE, admin, readGateway], ["PATCH", ONE, admin, changeGateway],
  ["DELETE", ONE, admin, deleteGateway], ["POST", `${ONE}/enable`, admin, enableGateway], ["POST", `${ONE}/disable`, admin, disableGateway],
  ["GET", `${ONE}/merchants`, admin, listMerchants], ["PATCH", `${ONE}/credentials`, admin, storeCredentials],
  ["POST", `${ONE}/logo`, admin, storeLogo], ["GET", "/public/gateways/:id/logo", anybody, readLogo],
  ["GET", `${SHOP}/gateways`, manager, listSettings], ["POST", `${SHOP}/gateways/reorder`, changer, reorder],
  ["PATCH", `${SHOP}/gateways/:id`, changer, changeSetting], ["GET", `${SHOP}/api-keys`, changer, listKeys],
  ["POST", `${SHOP}/api-keys`, changer, createKey], ["DELETE", `${SHOP}/api-keys/:id`, manager, revokeKey],
  ["GET", `${SHOP}/webhooks`, manager, ({ business }) => answer(values(endpoints, (one) => one.business === business.id).map(endpointRecord))],
  ["POST", `${SHOP}/webhooks`, changer, createEndpoint], ["PATCH", `${SHOP}/webhooks/:id`, changer, changeEndpoint],
  ["DELETE", `${SHOP}/webhooks/:id`, changer, deleteEndpoint], ["POST", `${SHOP}/webhooks/:id/test`, changer, testEndpoint],
  ["GET", `${SHOP}/webhooks/:id/deliveries`, manager, listDeliveries], ["GET", "/payments/context", server, context],
  ["POST", "/payments/initiate", server, initiate], ["GET", "/payments/:reference", server, readPayment],
  ["POST", "/payments/:reference/simulate", server, simulate], ["GET", PUBLIC, anybody, readPublic],
  ["GET", `${PUBLIC}/gateways`, anybody, listOptions], ["POST", `${PUBLIC}/process`, anybody, processPayment],
  ["GET", `${PUBLIC}/verify`, anybody, verify], ["POST", `${SHOP}/test-payment`, changer, makeTest],
  ["GET", `${SHOP}/test-payment/:reference`, manager, readPayment], ["POST", `${SHOP}/test-payment/:reference/simulate`, manager, simulate],
  ["POST", "/webhooks/:slug", anybody, receive], ["POST", "/webhooks/:slug/:where", anybody, receive],
].map(([method, path, guard, handler]) => [method, new RegExp(`^${API}${path.replaceAll(/:(\w+)/g, "(?<$1>[^/]+)")}$`), guard, handler]);

async function handle(request) {
  const chunks = await request.toArray();
  const url = new URL(request.url, ORIGIN);
  for (const [method, pattern, guard, handler] of ROUTES) {
    const found = method === request.method && pattern.exec(url.pathname);
    if (!found) continue;
    const params = Object.fromEntries(Object.entries(found.groups ?? {}).map(([name, value]) => [name, value && decodeURIComponent(value)]));
    const ask = { params, raw: Buffer.concat(chunks), headers: request.headers, query: url.searchParams, path: url.pathname, address: request.socket.remoteAddress };
    guard(ask);
    return handler(ask);
  }
  throw new Refusal(404, "ROUTE_UNKNOWN");
}
addGateway({ slug: BUILTIN, name: "House", status: "ACTIVE" });
addGateway({ slug: "provider_b", name: "The second", displayOrder: 7 });
addGateway({ slug: "provider_a", name: "The first", displayOrder: 7 });
createServer(async (request, response) => {
  const told = await handle(request).catch((error) => {
    if (!(error instanceof Refusal)) console.error("Error", error);
    return { status: error.status ?? 500, body: { success: false, error: error.error ?? { code: "OUR_FAULT", message: "We failed." } } };
  });
  response.writeHead(told.status, told.headers ?? { "Content-Type": "application/json; charset=utf-8" });
  response.end(told.file ?? JSON.stringify(told.body));
}).listen(CONFIG.port, "127.0.0.1");
