// An agent: it calls a tool of an MCP server for its user. `npm start`, or `npm start -- add_note "Buy bread"`.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { answerOfLogin, provider } from './login.js';

const [tool = 'list_notes', text] = process.argv.slice(2);
const client = new Client({ name: 'example-agent', version: '1.0.0' });
let transport;

/** Does something that may need a login, or a second one for more scopes. */
async function withLogin(action) {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    // The SDK exchanges the code.
    await transport.finishAuth(await answerOfLogin());
    return action();
  }
}

try {
  await withLogin(() => {
    transport = new StreamableHTTPClientTransport(new URL(process.env.MCP_URL), { authProvider: provider });
    return client.connect(transport);
  });
  const { tools } = await client.listTools();
  console.log(`The server has ${tools.map(({ name }) => name).join(', ')}.`);
  const { content } = await withLogin(() => client.callTool({ name: tool, arguments: text ? { text } : {} }));
  console.log(content.map((part) => part.text).join('\n'));
} catch (error) {
  // That a request failed is in the message, and why in its cause: nobody answered, or with an unknown certificate.
  console.error(`It did not work: ${[error.message, error.cause?.message].filter(Boolean).join(': ')}`);
  process.exitCode = 1;
}
await client.close();
