// What the store says of itself to the doctor, and what of the outside the tenant depends on.
import type { Clock } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';
import { calledOptions } from '../tenant/provider-addresses.ts';

/** No secret is among it. */
export interface Inspection {
  /** The keys that sign. `createdAt`: epoch seconds. */
  signingKeys: { alg: string; createdAt: number }[];
  /** ISO 8601, of the newest event of the log. */
  newestEvent?: string;
  /** How far the clock here is ahead of that of all processes, where there can be several; milliseconds. */
  clockAhead?: number;
  /** Addresses that the server calls for the tenant, and for what. */
  addresses: { of: string; url: string }[];
  /** Names of log streams that are no longer sent. */
  suspendedStreams: string[];
}

/** Looks into a store. @throws Error when it cannot be read and written. */
export async function inspect({ store, clock }: { store: Store; clock: Clock }): Promise<Inspection> {
  await store.ready();
  const [keys, connections, streams, newest] = await Promise.all([
    store.collection('signingKeys').findBy('state', 'current'),
    listAll(store.collection('connections')),
    store.collection('documents').findBy('kind', 'log-stream'),
    store.collection('logs').list({ sort: { field: 'date', descending: true }, limit: 1 }),
  ]);
  const [event] = newest.records;
  const inForce = connections.filter(({ enabled_clients: clients }) => clients.length > 0);
  return {
    signingKeys: keys.map(({ jwk, createdAt }) => ({ alg: String(jwk.alg), createdAt })),
    ...(event && { newestEvent: event.date }),
    ...(store.sharedClock && { clockAhead: clock() - store.sharedClock() }),
    addresses: [
      ...inForce.flatMap(({ name, options }) =>
        calledOptions(options).map(({ url }) => ({ of: `the connection ${name}`, url })),
      ),
      ...streams.flatMap(({ body }) => {
        const { httpEndpoint: url } = (body.sink ?? {}) as { httpEndpoint?: unknown };
        return typeof url === 'string' && body.status === 'active'
          ? [{ of: `the log stream ${String(body.name)}`, url }]
          : [];
      }),
    ],
    suspendedStreams: streams.flatMap(({ body }) => (body.status === 'suspended' ? [String(body.name)] : [])),
  };
}
