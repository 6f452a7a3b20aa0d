// mcp-remote: it makes a server with logins look like a local one, for programs that know only such.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const { MCP_URL, CALLBACK_PORT, CLIENT_METADATA_URL } = process.env;
const known = CLIENT_METADATA_URL ? ['--client-metadata-url', CLIENT_METADATA_URL] : [];
const client = new Client({ name: 'any', version: '1.0.0' });
await client.connect(
  new StdioClientTransport({
    command: process.execPath,
    args: ['node_modules/mcp-remote/dist/proxy.js', MCP_URL, CALLBACK_PORT, ...known],
    env: process.env,
  }),
  { timeout: 60_000 },
);
for (const [name, args] of [
  ['list_notes', {}],
  ['add_note', { text: 'A note' }],
]) {
  const { content } = await client.callTool({ name, arguments: args });
  console.log(`${name}: ${content[0].text}`);
}
await client.close();
