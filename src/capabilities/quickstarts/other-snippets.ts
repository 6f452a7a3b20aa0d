// Quickstart programs for what is neither in a browser nor on a server: devices, APIs, and applications with SAML.
import { js, portOf, type QuickstartValues, quoted, type Snippet } from './snippet.ts';

/** A device without a keyboard (RFC 8628), with the OpenID Connect library openid-client. */
export const device = (values: QuickstartValues): Snippet =>
  js(
    'openid-client',
    `import * as client from 'openid-client';

const config = await client.discovery(
  new URL(${quoted(values.issuer)}),
  ${quoted(values.clientId)},
  undefined,
  client.None(),
);
const begun = await client.initiateDeviceAuthorization(config, { scope: 'openid profile email' });
console.log(\`Open \${begun.verification_uri} on another device and type \${begun.user_code}\`);

const tokens = await client.pollDeviceAuthorizationGrant(config, begun);
console.log(tokens.claims());
`,
  );

/** An API that takes access tokens. */
export const protectedApi = (values: QuickstartValues): Snippet =>
  js(
    'jose',
    `import { createServer } from 'node:http';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const keys = createRemoteJWKSet(new URL(${quoted(`${values.issuer}.well-known/jwks.json`)}));

createServer(async (request, response) => {
  const [, token = ''] = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '') ?? [];
  try {
    const { payload } = await jwtVerify(token, keys, {
      issuer: ${quoted(values.issuer)},
      audience: ${quoted(values.audience ?? 'https://api.example.test/')},
    });
    const isAllowed = String(payload.scope).split(' ').includes('read:things');
    response.writeHead(isAllowed ? 200 : 403).end(JSON.stringify({ caller: payload.sub }));
  } catch {
    response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end();
  }
}).listen(${portOf(values.callback)});
`,
  );

/** A service provider of SAML 2.0. */
export const samlServiceProvider = (values: QuickstartValues): Snippet =>
  js(
    '@node-saml/node-saml',
    `import { SAML, ValidateInResponseTo } from '@node-saml/node-saml';

// What the metadata says does not change until the signing keys are rotated: fetch it at each start.
const metadata = await (await fetch(${quoted(`${values.issuer}samlp/metadata/${encodeURIComponent(values.clientId)}`)})).text();
const [, certificate] = /<(?:\\w+:)?X509Certificate>([^<]+)</.exec(metadata) ?? [];

const saml = new SAML({
  entryPoint: ${quoted(`${values.issuer}samlp/${encodeURIComponent(values.clientId)}`)},
  callbackUrl: ${quoted(values.callback)},
  issuer: ${quoted(`urn:${values.clientId}`)},
  audience: ${quoted(`urn:${values.clientId}`)},
  idpIssuer: ${quoted(`urn:${URL.parse(values.issuer)?.hostname ?? values.domain}`)},
  idpCert: certificate,
  wantAssertionsSigned: true,
  wantAuthnResponseSigned: false,
  // Only responses to requests of this application, each once.
  validateInResponseTo: ValidateInResponseTo.always,
  disableRequestedAuthnContext: true,
});

// Send the browser to the address.
const address = await saml.getAuthorizeUrlAsync('', undefined, {});

// At the callback, with the form that the browser posted:
const { profile } = await saml.validatePostResponseAsync({ SAMLResponse: form.SAMLResponse });
console.log(profile);
`,
  );

/** A test of an application, with a server inside of it. @param tenantFile the path of the tenant file. */
export const testProgram = (
  tenantFile: string,
): string => `import { startGatehouse } from 'gatehouse/testing';

const gatehouse = await startGatehouse({ tenant: ${quoted(tenantFile)} });
await gatehouse.users.create({ email: 'ada@example.test', password: 'A-good-Passw0rd' });
// Point the application at gatehouse.domain, and log in.
await gatehouse.stop();
`;
