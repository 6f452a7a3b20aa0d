// Quickstart programs for machine-to-machine applications.
import { js, type QuickstartValues, quoted, type Snippet } from './snippet.ts';

const audienceOf = ({ audience }: QuickstartValues): string => audience ?? 'https://api.example.com/';

/** With the OpenID Connect library openid-client. */
export const openIdClientMachine = (values: QuickstartValues): Snippet =>
  js(
    'openid-client',
    `import * as client from 'openid-client';

const config = await client.discovery(
  new URL(${quoted(values.issuer)}),
  ${quoted(values.clientId)},
  process.env.CLIENT_SECRET,
);
const tokens = await client.clientCredentialsGrant(config, { audience: ${quoted(audienceOf(values))} });
console.log(tokens.access_token);
`,
  );

/** With the authentication SDK. */
export const authJsMachine = (values: QuickstartValues): Snippet =>
  js(
    '@auth0/auth0-auth-js',
    `import { AuthClient } from '@auth0/auth0-auth-js';

const client = new AuthClient({
  domain: ${quoted(values.domain)},
  clientId: ${quoted(values.clientId)},
  clientSecret: process.env.CLIENT_SECRET,
});
const tokens = await client.getTokenByClientCredentials({ audience: ${quoted(audienceOf(values))} });
console.log(tokens.accessToken);
`,
  );

/** For the Management API. */
export const auth0Management = (values: QuickstartValues): Snippet =>
  js(
    'auth0',
    `import { ManagementClient } from 'auth0';

// For an application that may use the Management API, with the scope read:users.
const client = new ManagementClient({
  domain: ${quoted(values.domain)},
  clientId: ${quoted(values.clientId)},
  clientSecret: process.env.CLIENT_SECRET,
});
for await (const user of await client.users.list()) console.log(user.email);
`,
  );

/** Quotes a text for a shell. */
const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Without any package. */
export const curl = (values: QuickstartValues): Snippet => ({
  package: undefined,
  language: 'sh',
  code: `curl ${shellQuoted(`${values.issuer}oauth/token`)} \\
  -d grant_type=client_credentials \\
  -d ${shellQuoted(`client_id=${values.clientId}`)} \\
  -d "client_secret=$CLIENT_SECRET" \\
  --data-urlencode ${shellQuoted(`audience=${audienceOf(values)}`)}
`,
});
