// Has the MCP server of the hosted service manage a tenant, as an assistant would.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const client = new Client({ name: 'test', version: '1.0.0' });
await client.connect(
  new StdioClientTransport({
    command: process.execPath,
    args: ['node_modules/@auth0/auth0-mcp-server/dist/index.js', 'run', '--tools', '*'],
    env: { ...process.env, AUTH0_MCP_ANALYTICS: 'false' },
    stderr: 'inherit',
  }),
);
const { tools } = await client.listTools();
console.log(`tools: ${tools.length}`);
const call = async (name, args = {}) => {
  const { content, isError } = await client.callTool({ name, arguments: args });
  const text = content.map((one) => one.text).join('\n');
  console.log(`${name}: ${isError ? 'ERROR ' : ''}${text}`);
  return text;
};
const idIn = (text, member) => new RegExp(`"${member}": "([^"]+)"`).exec(text)?.[1];
const application = await call('auth0_create_application', { name: 'By an assistant', app_type: 'spa' });
const client_id = idIn(application, 'client_id');
await call('auth0_update_application', { client_id, callbacks: ['https://app.test/cb'] });
await call('auth0_get_application', { client_id });
await call('auth0_list_applications');
const api = await call('auth0_create_resource_server', {
  name: 'Orders',
  identifier: 'https://made.test/',
  scopes: [{ value: 'orders:read' }],
});
await call('auth0_update_resource_server', { id: idIn(api, 'id'), token_lifetime: 600 });
await call('auth0_get_resource_server', { id: idIn(api, 'id') });
await call('auth0_list_resource_servers');
await call('auth0_create_application_grant', {
  client_id,
  audience: 'https://made.test/',
  scope: ['orders:read'],
});
const action = await call('auth0_create_action', {
  name: 'by-an-assistant',
  supported_triggers: [{ id: 'post-login', version: 'v3' }],
  code: 'exports.onExecutePostLogin = async () => {};',
});
await call('auth0_deploy_action', { id: idIn(action, 'id') });
await call('auth0_update_action', {
  id: idIn(action, 'id'),
  code: 'exports.onExecutePostLogin = async () => { };',
});
await call('auth0_list_actions');
await call('auth0_list_logs');
await call('auth0_list_forms');
await client.close();
