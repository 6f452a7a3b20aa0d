// The first line of the official SDK, which most clients still have: a login, a refresh when the access token has expired, a
// second login for more scopes, and another try when the user has ended the access.
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { codeOfLogin, providerOf } from './provider.js';

const authProvider = {
  ...providerOf('SDK 1'),
  // It asks for the scopes that the MCP server names, which are no `offline_access`: the program adds it where it opens the
  // browser. With a refresh token, the SDK refreshes by itself.
  redirectToAuthorization: (url) => {
    url.searchParams.set('scope', `${url.searchParams.get('scope')} offline_access`);
    console.log(`Open ${url.href}`);
  },
};
const client = new Client({ name: 'sdk-1', version: '1.0.0' });
let transport;

async function withLogin(action) {
  try {
    return await action();
  } catch (error) {
    if (error instanceof StreamableHTTPError && error.code === 403) {
      // Where a tool needs more scopes, it refreshes if it can, and does not ask the user: it gets no refresh token for once.
      // It asks only after an answer that was none of these.
      const { refresh_token: _, ...tokens } = authProvider.tokens();
      authProvider.saveTokens(tokens);
      await client.ping();
      return withLogin(action);
    }
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(await codeOfLogin());
    return action();
  }
}

async function call(name, args = {}) {
  const { content } = await withLogin(() => client.callTool({ name, arguments: args }));
  console.log(`${name}: ${content[0].text}`);
  console.log(`tokens: ${JSON.stringify(authProvider.tokens())}`);
}

const expired = () => wait(authProvider.tokens().expires_in * 1000);

await withLogin(() => {
  transport = new StreamableHTTPClientTransport(new URL(process.env.MCP_URL), { authProvider });
  return client.connect(transport);
});
await call('list_notes');
await expired();
await call('list_notes');
await call('add_note', { text: 'A note' });
await once(process.stdin, 'data');
await expired();
await call('list_notes').catch((error) => console.log(`refused: ${error.message}`));
process.stdin.destroy();
await client.close();
