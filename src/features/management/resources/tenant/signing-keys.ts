// `/keys/signing`: the keys that sign tokens.
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import type { Frozen } from '../../../../records/base/record.ts';
import { SIGNING_ALGS, type SigningAlg } from '../../../../records/base/signing-algs.ts';
import type { SigningKeyRecord } from '../../../../records/state/engine.ts';
import type { Store } from '../../../../store/contract.ts';
import { keysFor } from '../../../../tenant/tenant-snapshot.ts';
import { type Call, callsWith, created, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { publicView } from '../../public-keys.ts';
import { notFound } from '../../resource.ts';

export interface SigningKeysDependencies {
  store: Store;
  /** Makes the next key of an algorithm (default: of all algorithms in use) the current one. @returns the keys that sign now; the first is that of RS256 or of `alg`. */
  rotateKeys(alg: SigningAlg | undefined): Promise<readonly { kid: string }[]>;
}

type SigningKey = Frozen<SigningKeyRecord>;

const noKey = notFound('The key does not exist', 'inexistent_key');

/** Returns the public part of a key as the API shows it. */
function keyView(key: SigningKey): object {
  const { cert, ...shown } = publicView(key);
  return { cert, pkcs7: cert, ...shown, alg: key.jwk.alg, revoked: false };
}

/** Returns the certificates of the keys that sign for applications, in the form of a member of theirs. */
export async function currentCertificates(store: Store): Promise<object[]> {
  const { records } = await store.collection('signingKeys').list({ limit: 100 });
  const current = keysFor(records, 'RS256').filter(({ state }) => state === 'current');
  return current.map((key) => {
    const { cert } = publicView(key);
    return { cert, pkcs7: cert, subject: new X509Certificate(cert).subject };
  });
}

async function find({ store }: SigningKeysDependencies, kid = ''): Promise<SigningKey> {
  const found = await store.collection('signingKeys').get(kid);
  if (found === undefined) throw noKey();
  return found;
}

/** An extension of the hosted API: the algorithm whose keys are rotated. Default: all. */
const rotation = z.strictObject({ alg: z.enum(SIGNING_ALGS).optional() });

const call = callsWith<SigningKeysDependencies>();

export const signingKeyCalls: Call<SigningKeysDependencies>[] = [
  call({
    method: 'GET',
    path: '/keys/signing',
    scopes: ['read:signing_keys'],
    summary: 'Get all signing keys',
    handle: async (deps) => {
      const { records } = await deps.store.collection('signingKeys').list({ limit: 100 });
      return ok(SIGNING_ALGS.flatMap((alg) => keysFor(records, alg)).map(keyView));
    },
  }),
  call({
    method: 'GET',
    path: '/keys/signing/:kid',
    scopes: ['read:signing_keys'],
    summary: 'Get a signing key',
    handle: async (deps, { params }) => ok(keyView(await find(deps, params.kid))),
  }),
  call({
    method: 'POST',
    path: '/keys/signing/rotate',
    scopes: ['create:signing_keys', 'update:signing_keys'],
    summary: 'Rotate the signing key',
    body: rotation,
    handle: async (deps, { body }) => {
      // The answer has room for one key.
      const [{ kid = '' } = {}] = await deps.rotateKeys(body.alg);
      const { x5c } = await find(deps, kid);
      const cert = new X509Certificate(Buffer.from(x5c[0] ?? '', 'base64')).toString();
      return { ...created({ kid, cert }), after: { kid } };
    },
  }),
  call({
    method: 'PUT',
    path: '/keys/signing/:kid/revoke',
    scopes: ['update:signing_keys'],
    summary: 'Revoke a signing key',
    handle: async (deps, { params }) => {
      const key = await find(deps, params.kid);
      // The current and the next key are needed; they can be revoked after a rotation.
      if (key.state !== 'previous')
        throw apiError(
          400,
          'The current and the next signing key cannot be revoked: rotate first.',
          'invalid_body',
        );
      await deps.store.collection('signingKeys').delete(key.id);
      const cert = new X509Certificate(Buffer.from(key.x5c[0] ?? '', 'base64')).toString();
      return ok({ kid: key.id, cert }, { before: { kid: key.id } });
    },
  }),
];
