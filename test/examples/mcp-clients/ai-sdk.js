// The client of the AI SDK.
import { auth, createMCPClient, UnauthorizedError } from '@ai-sdk/mcp';
import { codeOfLogin, providerOf } from './provider.js';

const url = process.env.MCP_URL;
const authProvider = providerOf('AI SDK');
const connect = () => createMCPClient({ transport: { type: 'http', url, authProvider } });
const client = await connect().catch(async (error) => {
  if (!(error instanceof UnauthorizedError)) throw error;
  await auth(authProvider, { serverUrl: url, authorizationCode: await codeOfLogin() });
  return connect();
});
const { list_notes } = await client.tools();
const { content } = await list_notes.execute({}, { toolCallId: '1', messages: [] });
console.log(`list_notes: ${content[0].text}`);
await client.close();
