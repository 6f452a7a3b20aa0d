// Loaded before a server: writes where each of its connections goes to a file, one a line.
import { appendFileSync } from 'node:fs';
import net from 'node:net';

const { connect } = net.Socket.prototype;
net.Socket.prototype.connect = function record(this: net.Socket, ...given: unknown[]) {
  // Node.js calls it with the arguments as it has arranged them, others with their own.
  const [first] = Array.isArray(given[0]) ? given[0] : given;
  const { path, host = 'localhost', port } = Object(first) as { path?: string; host?: string; port?: number };
  const to = typeof first === 'object' ? (path ?? `${host}:${port}`) : first;
  appendFileSync(process.env.CONNECTIONS ?? '', `${to}\n`);
  return Reflect.apply(connect, this, given);
};
