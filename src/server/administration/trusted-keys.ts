// The order of `gatehouse keys trust`: the public keys of an old tenant.
import { z } from 'zod';
import { createOutbound, outboundRules } from '../../http/outbound/outbound.ts';
import { OutboundError } from '../../http/outbound/outbound-error.ts';
import type { Frozen } from '../../records/base/record.ts';
import {
  isTrusted,
  type TrustedJwk,
  type TrustedKeyRecord,
  trustedKeySetSchema,
} from '../../records/tenant/trusted-keys.ts';
import { jsonOf } from '../../runtime/json.ts';
import { outboundAllow, type Settings } from '../../settings/index.ts';
import type { Store, Write } from '../../store/contract.ts';
import { listAll } from '../../store/list-all.ts';
import { endOf } from './move.ts';
import { type OrderDependencies, order, recordOrder } from './order.ts';

/** Bytes of a key set, and how long its answer may take, milliseconds. */
const MAX_BYTES = 256 * 1024;
const TIMEOUT = 10_000;

/** A trusted key, as it is listed. */
export type TrustedKey = Omit<TrustedKeyRecord, 'jwk' | 'expiresAt'> & {
  alg: string;
  is_trusted: boolean;
};

/** Trusts the keys of a set, and returns all that are trusted. */
export const trustKeys = order({
  body: z.strictObject({
    /** An address, or the name of the file that `text` was read from. */
    source: z.string().min(1).max(2048),
    text: z.string().max(MAX_BYTES).optional(),
    issuers: z.array(z.string().min(1).max(512)).max(5).optional(),
    until: z.string().min(1).max(64),
  }),
  run: async (deps, { source, text, issuers: given, until: date }) => {
    const { store, clock } = deps;
    const now = clock();
    const until = new Date(endOf(date, now)).toISOString();
    const issuers = (given ?? (text === undefined ? [`${new URL(source).origin}/`] : [])).map(issuerOf);
    const keys = keysIn(text ?? (await fetched(deps.settings, source)), source);
    await refuseOwn(store, keys);
    const added_at = new Date(now).toISOString();
    const records = keys.map((jwk) => ({ id: jwk.kid, jwk, issuers, source, added_at, until }));
    await store.batch(records.map((put): Write => ({ collection: 'trustedKeys', put })));
    const after = { source, until, issuers, kids: keys.map(({ kid }) => kid) };
    recordOrder(deps.events, 'keys trust', 'Trust the public keys of another tenant', { after });
    deps.log.info(after, 'public keys of another tenant are trusted by a command');
    return list(deps);
  },
});

/** Ends the trust in all keys of others, or in one. Returns those that are left. */
export const distrustKeys = order({
  body: z.strictObject({ kid: z.string().min(1).max(255).optional() }),
  run: async (deps, { kid }) => {
    const trusted = await listAll(deps.store.collection('trustedKeys'));
    const ending = trusted.filter(({ id }) => kid === undefined || id === kid);
    if (ending.length === 0)
      throw new Error(kid === undefined ? 'no keys of others are trusted' : `the key ${kid} is not trusted`);
    await deps.store.batch(ending.map(({ id }): Write => ({ collection: 'trustedKeys', delete: id })));
    const before = { kids: ending.map(({ id }) => id) };
    recordOrder(deps.events, 'keys trust --end', 'End the trust in keys of another tenant', { before });
    deps.log.info(before, 'the trust in public keys of another tenant was ended by a command');
    return list(deps);
  },
});

export const trustedKeys = order({ body: z.strictObject({}), run: list });

async function list({ store, clock }: Pick<OrderDependencies, 'store' | 'clock'>): Promise<TrustedKey[]> {
  const keys = await listAll(store.collection('trustedKeys'));
  return keys.map((key) => shown(key, clock()));
}

function shown(
  { id, jwk, issuers, source, added_at, until }: Frozen<TrustedKeyRecord>,
  now: number,
): TrustedKey {
  const is_trusted = isTrusted({ until }, now);
  return { id, alg: jwk.alg, issuers: [...issuers], source, added_at, until, is_trusted };
}

/** @throws Error if it cannot be read. */
async function fetched(settings: Settings, source: string): Promise<string> {
  const { fetch } = createOutbound({ rules: outboundRules(outboundAllow(settings)) });
  try {
    const response = await fetch(source, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      maxBytes: MAX_BYTES,
      timeout: TIMEOUT,
    });
    if (response.status !== 200) throw new Error(`${source} answered ${response.status}`);
    return await response.text();
  } catch (thrown) {
    if (thrown instanceof OutboundError) throw new Error(`${source}: ${thrown.message}`);
    throw thrown;
  }
}

/** @throws Error naming the first fault of the set. */
function keysIn(text: string, source: string): TrustedJwk[] {
  const result = trustedKeySetSchema.safeParse(jsonOf(text));
  if (result.success) return result.data.keys;
  const [issue] = result.error.issues;
  const place = issue?.path.join('.') ?? '';
  throw new Error(`${source}: ${place === '' ? 'it' : place} ${issue?.message ?? 'is no key set'}`);
}

/** @throws Error for an issuer that is no URL of https. */
function issuerOf(text: string): string {
  if (URL.parse(text)?.protocol !== 'https:')
    throw new Error(`${text} is no issuer, such as https://acme.eu.auth0.com/`);
  return text;
}

/** A key of another with the id of one of ours would take its place at whoever verifies our tokens. */
async function refuseOwn(store: Store, keys: readonly TrustedJwk[]): Promise<void> {
  for (const { kid } of keys)
    if ((await store.collection('signingKeys').get(kid)) !== undefined)
      throw new Error(`the key ${kid} has the id of one of ours`);
}
