// How much metadata a user may have. Every login reads it, and scripts, messages and tokens are given it, so it is bounded as
// it is stored: what is merged call by call counts together.
import { AuthError } from '../http/errors.ts';
import type { Frozen } from '../records/record.ts';
import type { UserRecord } from '../records/users.ts';

type Metadata = Frozen<Pick<UserRecord, 'user_metadata' | 'app_metadata'>>;

/**
 * The most characters of each as JSON. Users can fill the first one themselves; it has a bound of its own, so that they
 * cannot take the place of what the tenant's code writes.
 */
export const MAX_METADATA_LENGTH = { user_metadata: 262_144, app_metadata: 1_000_000 } as const;

/** Metadata that is larger than it may be. It is refused as a whole. */
export class MetadataTooLarge extends AuthError {
  readonly member: keyof Metadata;

  constructor(member: keyof Metadata) {
    const most = MAX_METADATA_LENGTH[member];
    super(400, 'invalid_request', `${member} would have more than ${most} characters as JSON.`);
    this.member = member;
  }
}

/**
 * Returns the error for a user's metadata that is too large; undefined when it may be stored.
 * @param before what is stored: metadata of older releases may be larger, and may be made smaller.
 */
export function metadataFault(after: Metadata, before?: Metadata): MetadataTooLarge | undefined {
  for (const member of ['user_metadata', 'app_metadata'] as const) {
    if (after[member] === before?.[member]) continue;
    const length = lengthOf(after[member]);
    if (length > MAX_METADATA_LENGTH[member] && length > lengthOf(before?.[member]))
      return new MetadataTooLarge(member);
  }
  return undefined;
}

const lengthOf = (metadata: object = {}): number => JSON.stringify(metadata).length;
