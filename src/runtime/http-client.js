// Avoids loading Node's own HTTP client, which is behind `fetch`: that takes 8 MB and 60 ms, and the server uses
// another client.

/**
 * Removes the members of `node:http` that load the client. When a module imports anything of `node:http`, Node.js
 * reads all its members, three of which belong to the client. `fetch` still loads it where it is called. Has to be
 * called before such a module is imported.
 */
export function leaveOutHttpClient() {
  const http = /** @type {Record<string, unknown>} */ (process.getBuiltinModule('node:http'));
  for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent']) delete http[name];
}
