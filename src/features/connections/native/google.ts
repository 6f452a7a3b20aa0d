// Native login with an ID token of Google's SDK, issued for one of the client ids that the connection allows.
import { claimsOf, openConnection } from '../oidc/connection.ts';
import { identityOf } from '../oidc/core.ts';
import { google } from '../oidc/strategies.ts';
import type { UpstreamDependencies, UpstreamIdentity } from '../redirect.ts';
import type { NativeToken } from './token.ts';

/** Returns the user of an ID token. @throws AuthError by `upstreamFault` for one that is not Google's, or is for another app. */
export async function googleIdentity(
  deps: UpstreamDependencies,
  { connection: record, token }: NativeToken,
): Promise<UpstreamIdentity> {
  const connection = await openConnection(deps, google, record);
  const { allowed_audiences: audiences } = connection.options;
  // On Android, `azp` is the app's own client id, and `aud` is the one that the token is for; so any `azp` is accepted.
  const claims = await claimsOf(deps, connection, token, {
    nonce: undefined,
    audiences,
    acceptsAnyAzp: true,
  });
  return identityOf(deps, connection, { claims, userInfo: {}, parameters: {} });
}
