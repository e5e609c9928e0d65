// Parses the script on stdin with acorn at the ECMAScript version of the first argument, as a module when told so.

const { readFileSync } = require("node:fs");
const { parse } = require("acorn");

const [version, sourceType] = process.argv.slice(2);
parse(readFileSync(0, "utf8"), { ecmaVersion: Number(version), sourceType });
