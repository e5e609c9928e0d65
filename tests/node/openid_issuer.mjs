// A certified OpenID Connect provider on this machine: node openid_issuer.mjs CLIENT_ID CLIENT_SECRET
// Prints its issuer, reads a line with the client's origin, and goes on until its input ends. Whoever signs in has the
// name that they give, a verified address and the group `pay-admins`.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

const [client_id, client_secret] = process.argv.slice(2);
const server = createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const issuer = `http://localhost:${server.address().port}`;
const input = createInterface({ input: process.stdin });
input.once("line", (origin) => {
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id,
        client_secret,
        redirect_uris: [`${origin}/console/sign-in/back`, `${origin}/console/admin/sign-in/back`],
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
    scopes: ["openid", "email", "groups"],
    pkce: { required: () => true },
    cookies: { keys: ["a key of the tests"] },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ sub, email: `${sub}@example.com`, email_verified: true, groups: ["staff", "pay-admins"] }),
    }),
  });
  server.on("request", provider.callback());
  console.log("ready");
});
input.once("close", () => process.exit(0));
console.log(issuer);
