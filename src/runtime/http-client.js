// Node's own HTTP client, behind `fetch`: loading it takes 8 MB and 60 ms, and the server calls others by a client of its own.

/**
 * Keeps it from being loaded for nothing: a module that imports `node:http`, whatever of it, has all its members read, and
 * three of them are the client's. `fetch` loads it where it is called. To be called before such a module is imported.
 */
export function leaveOutHttpClient() {
  const http = /** @type {Record<string, unknown>} */ (process.getBuiltinModule('node:http'));
  for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent']) delete http[name];
}
