// Prints what the vendor's own package finds wrong with the launch parameters on stdin, as JSON.

const { readFileSync } = require("node:fs");
const PayazaCheckout = require("payaza-web-sdk/lib/PayazaCheckout").default;
const Validator = require("payaza-web-sdk/lib/Validator").default;

const checkout = PayazaCheckout.setup(JSON.parse(readFileSync(0, "utf8")));
process.stdout.write(JSON.stringify(new Validator(checkout.fieldRules).validate(checkout.data).getErrors()));
