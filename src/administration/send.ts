// Tells the server that runs on a data directory what to do.
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { TenantFault } from '../tenant/load.ts';
import type { Order } from './orders.ts';
import { findPlace } from './place.ts';

/** Nobody listens: there is no server, or it was killed and has left its socket. */
const ABSENT = ['ENOENT', 'ECONNREFUSED'];

/**
 * Sends an order to the running server.
 * @returns what it says, or undefined when none runs. @throws TenantFault; Error with the reason.
 */
export async function sendOrder(dataDir: string, order: Order): Promise<{ result: unknown } | undefined> {
  const path = await findPlace(dataDir);
  if (path === undefined) return undefined;
  const answer = await post(path, JSON.stringify(order)).catch((thrown: NodeJS.ErrnoException) => {
    if (ABSENT.includes(thrown.code ?? '')) return undefined;
    throw new Error(`the running server could not be asked (${path}: ${thrown.message})`, { cause: thrown });
  });
  if (answer === undefined) return undefined;
  const { result, error, faults } = JSON.parse(answer) as {
    result?: unknown;
    error?: string;
    faults?: string[];
  };
  if (faults !== undefined) throw new TenantFault(faults);
  if (error !== undefined) throw new Error(error);
  return { result };
}

function post(socketPath: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, method: 'POST', path: '/', agent: false }, (response) => {
      text(response).then(resolve, reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}
