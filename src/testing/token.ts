// Access tokens for tests, issued without a login: signed with the server's key, with the claims that a login's token
// has.
import { createPrivateKey, type JsonWebKey } from 'node:crypto';
import { SignJWT } from 'jose';
import { ensureSigningKeys } from '../capabilities/signing/signing-key-list.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import { keysFor } from '../tenant/tenant-snapshot.ts';
import type { TokenRequest } from './token-request.ts';

/** @throws Error when there is no such API or application. */
export async function mintAccessToken(
  { store, issuer, clock }: { store: Store; issuer: string; clock: Clock },
  { user, audience, clientId, scope, claims = {} }: TokenRequest,
): Promise<string> {
  const [api] = await store.collection('resourceServers').findBy('identifier', audience);
  if (api === undefined) throw new Error(`there is no API ${audience} in the tenant`);
  if (api.signing_alg === 'HS256')
    throw new Error(`tokens for ${audience} are signed with ${api.signing_alg}`);
  const client =
    clientId === undefined
      ? (await store.collection('clients').list({ limit: 1 })).records[0]
      : await store.collection('clients').get(clientId);
  if (client === undefined) throw new Error(`there is no application ${clientId ?? ''} in the tenant`);
  const alg = api.signing_alg;
  await ensureSigningKeys(store, clock, new URL(issuer).hostname, [alg]);
  const [key] = keysFor(await store.collection('signingKeys').findBy('state', 'current'), alg);
  if (key === undefined) throw new Error(`the store has no ${alg} key`);
  const now = epochSeconds(clock);
  const isStandard = api.token_dialect.startsWith('rfc9068');
  return new SignJWT({
    iss: issuer,
    sub: user.id,
    aud: audience,
    iat: now,
    exp: now + api.token_lifetime,
    ...(isStandard ? { client_id: client.client_id } : { azp: client.client_id }),
    ...(scope === undefined ? {} : { scope }),
    ...claims,
  })
    .setProtectedHeader({ alg, typ: isStandard ? 'at+jwt' : 'JWT', kid: key.id })
    .sign(createPrivateKey({ key: key.jwk as JsonWebKey, format: 'jwk' }));
}
