// `auth_req_id`. Nothing is kept of a request that has expired; an application that is held to a standard is told so all the
// same (CIBA Core §11), by the id, which says when.
import type { Client } from '../../records/collections.ts';
import { profileOf } from '../../records/compliance-levels.ts';

/** What an application is given for a ticket. @param expiresAt epoch seconds. */
export function requestId(client: Client, ticket: string, expiresAt: number): string {
  return profileOf(client) === undefined ? ticket : `${ticket}.${expiresAt}`;
}

/**
 * What an id that an application sends says.
 * @returns the ticket; and when it ends, epoch seconds, where the id says so, which nobody proves.
 */
export function readRequestId(client: Client, id: string): { ticket: string; expiresAt: number } {
  const [, ticket, expiresAt] = (profileOf(client) !== undefined && /^(.+)\.(\d{1,12})$/.exec(id)) || [];
  if (ticket === undefined) return { ticket: id, expiresAt: Number.POSITIVE_INFINITY };
  return { ticket, expiresAt: Number(expiresAt) };
}
