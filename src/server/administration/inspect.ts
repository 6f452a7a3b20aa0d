// What `gatehouse doctor` reads from the store: its state, and the addresses that the tenant depends on.
import { z } from 'zod';
import { smsProviderOf } from '../../records/connections/passwordless.ts';
import { tenantMail } from '../../records/tenant/delivery.ts';
import { sinkOf } from '../../records/tenant/log-streams.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import { listAll } from '../../store/list-all.ts';
import { calledOptions } from '../../tenant/provider-addresses.ts';
import { order } from './order.ts';

/** Contains no secrets. */
export interface Inspection {
  /** `createdAt` is in epoch seconds. */
  signingKeys: { alg: string; createdAt: number }[];
  /** Date of the newest log event, ISO 8601. */
  newestEvent?: string;
  /**
   * How far this machine's clock is ahead of the clock that all processes share, in milliseconds. Not set for a store
   * of one process.
   */
  clockAhead?: number;
  /** Addresses that the server calls for the tenant, and the purpose of each. */
  addresses: { of: string; url: string }[];
  suspendedStreams: string[];
}

/** Returns the addresses that the server calls for a connection. */
function addressesIn(options: object): string[] {
  const { address: sms } = smsProviderOf(options) ?? {};
  return [...calledOptions(options).map(({ url }) => url), ...(sms === undefined ? [] : [sms])];
}

/** Reads the state of a store. @throws Error if it cannot be read and written */
export async function inspect({ store, clock }: { store: Store; clock: Clock }): Promise<Inspection> {
  await store.ready();
  const [tenant, keys, connections, streams, newest] = await Promise.all([
    store.collection('tenant').get('tenant'),
    store.collection('signingKeys').findBy('state', 'current'),
    listAll(store.collection('connections')),
    store.collection('documents').findBy('kind', 'log-stream'),
    store.collection('logs').list({ sort: { field: 'date', descending: true }, limit: 1 }),
  ]);
  const [event] = newest.records;
  const mail = tenantMail(tenant?.emailProvider)?.address;
  const enabledConnections = connections.filter(({ enabled_clients: clients }) => clients.length > 0);
  return {
    signingKeys: keys.map(({ jwk, createdAt }) => ({ alg: String(jwk.alg), createdAt })),
    ...(event && { newestEvent: event.date }),
    ...(store.sharedClock && { clockAhead: clock() - store.sharedClock() }),
    addresses: [
      ...enabledConnections.flatMap(({ name, options }) =>
        addressesIn(options).map((url) => ({ of: `the connection ${name}`, url })),
      ),
      ...(mail === undefined ? [] : [{ of: 'the e-mail provider', url: mail }]),
      ...streams.flatMap(({ body }) => {
        const url = body.status === 'active' ? sinkOf(body.type)?.address(body.sink) : undefined;
        return url === undefined ? [] : [{ of: `the log stream ${String(body.name)}`, url }];
      }),
    ],
    suspendedStreams: streams.flatMap(({ body }) => (body.status === 'suspended' ? [String(body.name)] : [])),
  };
}

export const inspectOrder = order({ body: z.strictObject({}), run: inspect });
