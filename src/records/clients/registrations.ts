// Applications of strangers: those that registered themselves (RFC 7591), and those that a document at their client_id describes
// (OAuth Client ID Metadata Document). They are kept apart from those that administrators manage: strangers write them, so that
// their number changes with every registration, and no file or list of the tenant contains them.
// docs/understand/decisions/clients-keys.md#applications-that-register-themselves-are-kept-apart-and-expire
import type { z } from 'zod';
import type { Bound } from '../base/collection-spec.ts';
import type { Stored } from '../base/record.ts';
import type { clientSchema } from './clients.ts';
import { recipientOf } from './third-parties.ts';

/** `id` is the client_id. */
export interface RegistrationRecord extends Stored {
  client: z.output<typeof clientSchema> & { id: string };
  /** What it was told that it has registered; nothing for a document. */
  metadata: Record<string, unknown>;
  /** The hash of the registration access token (RFC 7592 §3); a document has none. */
  token_hash?: string;
  /** When its document, or the keys at its `jwks_uri`, are fetched again; epoch seconds. */
  fresh_until?: number;
  jwks_uri?: string;
  /** ISO 8601. */
  created_at: string;
  /** When a user allowed it something, or it got tokens, to the day; ISO 8601. */
  last_used_at?: string;
  /** When an administrator blocked it, ISO 8601: until it is unblocked it is as if it were not there. */
  blocked_at?: string;
}

/** Whether a client_id is that of an application that may have registered itself. */
export const isRegistrationId = (clientId: string): boolean => /^tpc_[\w-]{32}$/.test(clientId);

/** By what administrators find one: its id, its name, and where its callbacks lead, in lower case. */
export function registrationTerms({ id, client }: Pick<RegistrationRecord, 'id' | 'client'>): string[] {
  const places = client.callbacks
    .map((uri) => recipientOf(uri))
    .map((place) => {
      if (place === undefined || 'device' in place) return [];
      return 'host' in place ? place.host : place.scheme;
    });
  return [...new Set([id, client.name, ...places.flat()].map((term) => term.toLowerCase()))];
}

/** The longest client_id, characters. */
const MAX_CLIENT_URL = 255;

/**
 * Whether a client_id may be the URL of a document: with a path, without credentials, fragment and dot segments
 * (draft-ietf-oauth-client-id-metadata-document-02 §3), and in its normal form, so that no application has two.
 */
export function isClientUrl(text: string): boolean {
  if (!/^https?:/.test(text) || text.length > MAX_CLIENT_URL) return false;
  const url = URL.parse(text);
  return (
    url !== null && url.href === text && url.pathname !== '/' && url.username + url.password + url.hash === ''
  );
}

/** Whether a client_id, if no application of the tenant has it, may be that of a stranger's. */
export const isStrangerId = (clientId: string): boolean =>
  isRegistrationId(clientId) || isClientUrl(clientId);

/** The characters of a record at most. A registration whose callbacks are many and long would have more, and is refused. */
const MAX_LENGTH = 8_000;

type Kind = 'unused' | 'unused document' | 'used';

/**
 * Returns the kind of a record, by which it is bounded; undefined for a blocked document: one that is forgotten would be read
 * again, and let in.
 */
function kindOf({ client, last_used_at: used, blocked_at: blocked }: RegistrationRecord): Kind | undefined {
  const isDescribed = client.external_metadata_type === 'cimd';
  if (isDescribed && blocked !== undefined) return undefined;
  if (used !== undefined) return 'used';
  return isDescribed ? 'unused document' : 'unused';
}

const bound = (kind: Kind, max: number): Bound<RegistrationRecord> => ({
  kind: (record) => (kindOf(record) === kind ? kind : undefined),
  max,
  maxLength: MAX_LENGTH,
  whenFull: 'evict',
});

export const REGISTRATIONS: readonly Bound<RegistrationRecord>[] = [
  bound('unused', 5_000),
  bound('unused document', 5_000),
  bound('used', 50_000),
];

/** How long an application is kept that nobody has allowed anything yet, seconds. */
export const UNUSED_SECONDS = 86_400;
