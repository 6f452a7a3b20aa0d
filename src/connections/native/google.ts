// An ID token of Google's kit for apps: for one of the client ids that the connection allows.
import { claimsOf, openConnection } from '../oidc/connection.ts';
import { identityOf } from '../oidc/core.ts';
import { google } from '../oidc/strategies.ts';
import type { UpstreamDependencies, UpstreamIdentity } from '../redirect.ts';
import type { NativeToken } from './token.ts';

/** @throws AuthError by `upstreamFault` for a token that is not Google's, or for another app. */
export async function googleIdentity(
  deps: UpstreamDependencies,
  { connection: kept, token }: NativeToken,
): Promise<UpstreamIdentity> {
  const connection = await openConnection(deps, google, kept);
  const { allowed_audiences: audiences } = connection.options;
  // The authorized party is the app, which has a client id of its own on Android; the audience is what it is for.
  const claims = await claimsOf(deps, connection, token, { nonce: undefined, audiences, anyParty: true });
  return identityOf(deps, connection, { claims, userInfo: {}, parameters: {} });
}
