// How the applications of here authenticate at the old tenant, and where it sends browsers back. Commands load this without the
// engine.
import type { Frozen } from '../../records/base/record.ts';
import { authenticationMethod } from '../../records/clients/client-authentication.ts';
import { isStrangerId } from '../../records/clients/registrations.ts';
import type { Client } from '../../records/collections.ts';
import type { MoveRecord } from '../../records/tenant/move.ts';
import type { OldCredentials } from './old-tokens.ts';

/** Path of the redirect URI at the old tenant. */
export const SESSION_CALLBACK = '/move/callback';

/** Whether the tokens of an application are not accepted because it proves a key, which only it has. */
export function keepsKeyToItself(move: Frozen<MoveRecord>, client: Client): boolean {
  const isExcluded = move.refresh_tokens?.applications?.[client.client_id] === null;
  return !isExcluded && credentialsAt(move, client) === undefined;
}

/**
 * Returns the credentials of an application at the old tenant: its own of here, unless the command that opened the bridge has
 * named others.
 * @returns undefined for one whose tokens are not accepted, or that authenticates by a key that only it has.
 */
export function credentialsAt(
  { refresh_tokens }: Frozen<MoveRecord>,
  client: Client,
): OldCredentials | undefined {
  const other = refresh_tokens?.applications?.[client.client_id];
  if (other === null || client.require_proof_of_possession === true) return undefined;
  // Strangers make these here, with secrets and as many as they like. The old tenant knows none of them.
  if (isStrangerId(client.client_id)) return undefined;
  if (other !== undefined)
    return { ...other, method: other.client_secret === undefined ? 'none' : 'client_secret_post' };
  const { client_id, client_secret } = client;
  const method = authenticationMethod(client);
  if (method === 'none') return { client_id, method };
  if (method !== 'client_secret_post' && method !== 'client_secret_basic') return undefined;
  return client_secret === undefined ? undefined : { client_id, client_secret, method };
}
