// What `gatehouse doctor` reads from the store: its state, and the addresses that the tenant depends on.
import { z } from 'zod';
import { smsProviderOf } from '../../records/connections/passwordless.ts';
import { signsSince } from '../../records/state/engine.ts';
import { tenantMail } from '../../records/tenant/delivery.ts';
import { sinkOf } from '../../records/tenant/log-streams.ts';
import { ADMINISTRATORS } from '../../records/users/administrators.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import { listAll } from '../../store/list-all.ts';
import { endingWarnings } from '../../tenant/endings.ts';
import { calledOptions } from '../../tenant/provider-addresses.ts';
import { order } from './order.ts';

/** Contains no secrets. */
export interface Inspection {
  /** `signsSince` is in epoch seconds. */
  signingKeys: { alg: string; signsSince: number }[];
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
  /** The addresses of administrators who can log in without a second factor. */
  administratorsWithoutFactor: string[];
  /** The user that the server runs as; not set where the system has none (Windows). */
  uid?: number;
  /** What of an old tenant is about to end, a sentence each. */
  endings: string[];
  /** What opens the process of the server to others, see {@link openingsOf}. */
  openings: string[];
}

/** Options of Node.js that let others into the process, or weaken what it speaks. */
const OPENINGS: readonly (readonly [RegExp, string])[] = [
  [/^--(?:inspect|debug)/, 'opens a debugger'],
  [/^--tls-keylog/, 'writes down the keys of TLS'],
  [/^--tls-min-v1\.[01]$/, 'accepts a TLS that is too old'],
  [/^--insecure-http-parser$/, 'accepts requests that proxies read differently'],
];

/** Returns what opens a process to others, or stops it from checking certificates. No value of an option is in it. */
export function openingsOf(
  env: Readonly<Record<string, string | undefined>>,
  args: readonly string[] = [],
): string[] {
  const { NODE_OPTIONS = '', NODE_TLS_REJECT_UNAUTHORIZED } = env;
  const found = [...args, ...NODE_OPTIONS.split(/[\s"]+/)].flatMap((option) => {
    const [, what] = OPENINGS.find(([name]) => name.test(option)) ?? [];
    return what === undefined ? [] : [`${option.split('=')[0]} ${what}`];
  });
  const trusts = NODE_TLS_REJECT_UNAUTHORIZED === '0';
  return [...found, ...(trusts ? ['NODE_TLS_REJECT_UNAUTHORIZED=0 accepts any certificate'] : [])];
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
    signingKeys: keys.map((key) => ({ alg: String(key.jwk.alg), signsSince: signsSince(key) })),
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
    administratorsWithoutFactor: await administratorsWithoutFactor(store),
    ...(process.getuid && { uid: process.getuid() }),
    endings: await endingWarnings(store, clock()),
    openings: openingsOf(process.env, process.execArgv),
    suspendedStreams: streams.flatMap(({ body }) => (body.status === 'suspended' ? [String(body.name)] : [])),
  };
}

async function administratorsWithoutFactor(store: Store): Promise<string[]> {
  const { members = [] } = (await store.collection('administrators').get(ADMINISTRATORS)) ?? {};
  const found: string[] = [];
  for (const { user_id: id } of members) {
    const user = await store.collection('administratorUsers').get(id);
    if (user === undefined || user.blocked === true) continue;
    const authenticators = await store.collection('authenticators').findBy('user', id);
    if (!authenticators.some(({ active }) => active)) found.push(user.email ?? id);
  }
  return found;
}

export const inspectOrder = order({ body: z.strictObject({}), run: inspect });
