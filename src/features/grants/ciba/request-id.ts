// `auth_req_id`. Expired requests are not stored any more, but an application with a compliance level still gets
// `expired_token` (CIBA Core §11), because its ids contain the expiry.

import { profileOf } from '../../../records/clients/compliance-levels.ts';
import type { Client } from '../../../records/collections.ts';

/** @param expiresAt epoch seconds. */
export function requestId(client: Client, ticket: string, expiresAt: number): string {
  return profileOf(client) === undefined ? ticket : `${ticket}.${expiresAt}`;
}

/**
 * @returns the ticket, and its expiry in epoch seconds, which is not verified; infinite when the id does not contain
 *   it.
 */
export function readRequestId(client: Client, id: string): { ticket: string; expiresAt: number } {
  const [, ticket, expiresAt] = (profileOf(client) !== undefined && /^(.+)\.(\d{1,12})$/.exec(id)) || [];
  if (ticket === undefined) return { ticket: id, expiresAt: Number.POSITIVE_INFINITY };
  return { ticket, expiresAt: Number(expiresAt) };
}
