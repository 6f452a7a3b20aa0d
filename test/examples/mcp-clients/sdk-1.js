// The first line of the official SDK, which most clients still have.
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { codeOfLogin, providerOf } from './provider.js';

const authProvider = providerOf('SDK 1');
const client = new Client({ name: 'sdk-1', version: '1.0.0' });
let transport;

async function withLogin(action) {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(await codeOfLogin());
    return action();
  }
}

await withLogin(() => {
  transport = new StreamableHTTPClientTransport(new URL(process.env.MCP_URL), { authProvider });
  return client.connect(transport);
});
for (const [name, args] of [
  ['list_notes', {}],
  ['add_note', { text: 'A note' }],
]) {
  const { content } = await withLogin(() => client.callTool({ name, arguments: args }));
  console.log(`${name}: ${content[0].text}`);
}
await client.close();
