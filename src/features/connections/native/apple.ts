// Native login with an authorization code of Apple's SDK. The code is exchanged with the app's own client id at Apple, which is
// its bundle identifier.
import { appleName, appleSecret } from '../oidc/apple.ts';
import { claimsOf, openConnection } from '../oidc/connection.ts';
import { identityOf } from '../oidc/core.ts';
import { providerFault } from '../oidc/faults.ts';
import { apple } from '../oidc/strategies.ts';
import { type UpstreamDependencies, type UpstreamIdentity, upstreamFault } from '../redirect.ts';
import type { NativeToken } from './token.ts';

/** Returns the user of an authorization code. @throws AuthError by `upstreamFault` for a code that Apple rejects. */
export async function appleIdentity(
  deps: UpstreamDependencies,
  { connection: record, client, token, userProfile }: NativeToken,
): Promise<UpstreamIdentity> {
  const clientId = client.mobile?.ios?.app_bundle_identifier;
  if (!clientId) throw upstreamFault('invalid_request', 'The application has no app_bundle_identifier.');
  const configured = await openConnection(deps, apple, record);
  const connection = { ...configured, clientId };
  const secret = await appleSecret(deps, connection.options, connection.metadata, clientId);
  const { exchangeNativeCode } = await import('../oidc/client.ts');
  const tokens = await exchangeNativeCode(deps.fetch, {
    metadata: connection.metadata,
    clientId,
    credential: { method: 'client_secret_post', secret },
    code: token,
    now: deps.wallClock(),
  }).catch(providerFault('token endpoint'));
  if (tokens.id_token === undefined) throw upstreamFault('invalid_request', 'Apple gave no ID token.');
  const claims = await claimsOf(deps, connection, tokens.id_token, {
    nonce: undefined,
    accessToken: tokens.access_token,
  });
  const identity = identityOf(deps, connection, { claims, userInfo: {}, parameters: {} });
  // The tokens are not kept: they were issued to the app's client id, so the connection could not renew them.
  return { ...identity, profile: { ...identity.profile, ...appleName(userProfile) } };
}
