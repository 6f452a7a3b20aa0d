// The MCP server of the hosted service as a person sets it up without credentials: `init` with a code that is approved in a
// browser; the tools, before and after something has happened at NEXT; then `logout`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

async function command(...args) {
  const server = 'node_modules/@auth0/auth0-mcp-server/dist/index.js';
  const child = spawn(process.execPath, [server, ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
  const [status] = await once(child, 'close');
  console.log(`${args[0]} ended with ${status}`);
}

// It writes the configuration of an editor, below HOME.
await command('init', '--client', 'claude', '--scopes', '*', '--no-interaction');
await command('session');
await import('./manage.mjs');
await fetch(process.env.NEXT);
console.log('AFTER');
await import('./manage.mjs?again');
await command('logout');
await command('session');
