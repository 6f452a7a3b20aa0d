// Logout at a SAML identity provider (SAML Profiles §4.4).

import { redirectAddress } from '../../../capabilities/saml-messages/bindings.ts';
import { logoutRequest } from '../../../capabilities/saml-messages/logout-messages.ts';
import { unspecified } from '../../../capabilities/saml-messages/name-id.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import type { UpstreamDependencies, UpstreamLogout } from '../redirect.ts';
import { providerOf } from './provider.ts';
import { entityId, signerOf } from './service-provider.ts';

/** Returns the ID of the LogoutRequest of a logout: a hash, which does not reveal the state. @param state that of the logout. */
export function logoutId(state: string): string {
  return `_${sha256(state)}`;
}

/**
 * Returns the URL of a signed LogoutRequest to the provider, by the HTTP-Redirect binding.
 * @returns undefined if the connection has no single logout, or the login had no NameID.
 */
export async function logoutRedirect(
  deps: UpstreamDependencies,
  { connection, grant, state }: UpstreamLogout,
): Promise<string | undefined> {
  const { options, signOut } = await providerOf(deps, connection);
  const { name_id: value, format = unspecified.uri, SPNameQualifier, session_index } = grant.logout ?? {};
  if (signOut === undefined || value === undefined) return undefined;
  const frame = {
    id: logoutId(state),
    issuer: entityId(deps, connection, options),
    now: epochSeconds(deps.wallClock),
    destination: signOut,
  };
  const nameId = {
    value,
    format,
    ...(SPNameQualifier !== undefined && { spNameQualifier: SPNameQualifier }),
  };
  const message = {
    kind: 'request',
    markup: logoutRequest(frame, nameId, session_index),
    relayState: state,
    location: signOut,
  } as const;
  return redirectAddress(message, await signerOf(deps, connection, options));
}
