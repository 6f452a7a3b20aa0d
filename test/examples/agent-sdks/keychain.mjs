// The MCP server of the hosted service as a person sets it up: `init` with the credentials of an application, which keeps a
// token in the desktop's keychain; then the tools, by that token; then `logout`.
import { spawnSync } from 'node:child_process';

const { AUTH0_CLIENT_ID, AUTH0_CLIENT_SECRET, AUTH0_DOMAIN } = process.env;

function command(...args) {
  const env = { ...process.env, AUTH0_MCP_ANALYTICS: 'false' };
  const server = 'node_modules/@auth0/auth0-mcp-server/dist/index.js';
  const { status, stdout, stderr } = spawnSync(process.execPath, [server, ...args], {
    encoding: 'utf8',
    env,
  });
  console.log(`${args[0]} ended with ${status}: ${stdout}${stderr}`);
}

const credentials = ['--auth0-client-id', AUTH0_CLIENT_ID, '--auth0-client-secret', AUTH0_CLIENT_SECRET];
// It writes the configuration of an editor, below HOME.
command('init', '--client', 'claude', '--auth0-domain', AUTH0_DOMAIN, ...credentials);
command('session');
await import('./manage.mjs');
command('logout');
command('session');
