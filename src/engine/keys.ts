// The tenant's signing keys in the store: made at first start, and rotated.
import { createPrivateKey, type JsonWebKey, randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from 'jose';
import type { SigningKeyRecord } from '../records/engine.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import type { SigningKey } from '../tenant/config.ts';

/** Ten years: relying parties check the key set, not this certificate, but some parse it. */
const CERTIFICATE_DAYS = 3650;

/** The id of the value that says that the store has had signing keys. */
const CHECK = 'signing';

/**
 * Makes the tenant's signing keys when there have never been any, and looks at those there are.
 * @throws Error when the store has lost them, or one is damaged: new ones would end every token without a word.
 */
export async function ensureSigningKeys(store: Store, clock: Clock, commonName: string): Promise<void> {
  const known = await store.collection('keyChecks').get(CHECK);
  if (known !== undefined && (await store.collection('signingKeys').count()) === 0) {
    throw new Error(
      'signingKeys.json in the store is missing: put it back from the backup; `gatehouse keys rotate` makes new keys, and what was issued until now is good no more',
    );
  }
  const keys = await completeKeys(store, clock, commonName);
  for (const key of keys) refuseDamaged(key);
  if (known === undefined) await store.collection('keyChecks').put({ id: CHECK, value: keys[0]?.id ?? '' });
}

function refuseDamaged({ id, jwk }: SigningKey): void {
  try {
    createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' });
  } catch (cause) {
    throw new Error(
      `signingKeys.json in the store: the key ${id} is damaged: put the file back from the backup`,
      {
        cause,
      },
    );
  }
}

/** The signing keys there are, with what is missing of the current and the next. */
async function completeKeys(store: Store, clock: Clock, commonName: string): Promise<SigningKey[]> {
  const keys = store.collection('signingKeys');
  await Promise.all(
    (['current', 'next'] as const).map(async (state) => {
      const found = await keys.findBy('state', state);
      if (found.length === 0) await keys.insert(await makeKey(state, clock, commonName));
    }),
  );
  const byState = await Promise.all(
    (['current', 'next', 'previous'] as const).map((s) => keys.findBy('state', s)),
  );
  return byState.flat();
}

/**
 * Makes the next key the current one and a new key the next. Tokens of the key that was current still
 * verify: it stays published until the rotation after.
 * @returns the `kid` that signs from now on.
 */
export async function rotateSigningKeys(
  store: Store,
  clock: Clock,
  commonName = 'gatehouse',
): Promise<string> {
  const [current, next, ...previous] = await completeKeys(store, clock, commonName);
  if (current === undefined || next === undefined) throw new Error('the store has no signing keys');
  const added = await makeKey('next', clock, commonName);
  // As one: a server that signs meanwhile has the keys of before or those of after, and never none.
  await store.batch([
    ...previous.map(({ id }) => ({ collection: 'signingKeys', delete: id }) as const),
    { collection: 'signingKeys', put: { ...current, state: 'previous' } },
    { collection: 'signingKeys', put: { ...next, state: 'current' } },
    { collection: 'signingKeys', insert: added },
  ]);
  return next.id;
}

async function makeKey(
  state: SigningKeyRecord['state'],
  clock: Clock,
  commonName: string,
): Promise<SigningKeyRecord> {
  return { ...(await makeSigningKey(clock, commonName)), state };
}

/**
 * An RSA key of 2048 bits with a self-signed certificate of ten years.
 * @param alg what its JWK says that it is used with.
 */
export async function makeSigningKey(
  clock: Clock,
  commonName: string,
  alg = 'RS256',
): Promise<Omit<SigningKeyRecord, 'state'>> {
  const { privateKey, publicKey } = await generateKeyPair('RS256', {
    modulusLength: 2048,
    extractable: true,
  });
  const jwk = await exportJWK(privateKey);
  const kid = await calculateJwkThumbprint(jwk as JWK);
  // Loaded only here, at a first start: it is large, and wants its polyfill first.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: randomUUID().replaceAll('-', ''),
    name: `CN=${commonName}`,
    notBefore: new Date(clock()),
    notAfter: new Date(clock() + CERTIFICATE_DAYS * 86_400_000),
    keys: { privateKey, publicKey },
    signingAlgorithm: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  });
  return {
    id: kid,
    jwk: { ...jwk, kid, use: 'sig', alg },
    x5c: [Buffer.from(certificate.rawData).toString('base64')],
    createdAt: epochSeconds(clock),
  };
}
