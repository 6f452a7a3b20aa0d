// Stores the user metadata and app metadata that actions set.
import type { ActionLogFields, Actions } from '../actions/actions.ts';
import type { ActionOutcome } from '../actions/commands.ts';
import { withMembers } from '../actions/current-event.ts';
import type { Trigger } from '../records/actions.ts';
import type { Users } from '../users/users.ts';

/** The most characters of both as JSON, together: every login of the user reads them and passes them on. */
const MAX_LENGTH = 1_000_000;

interface MetadataDependencies {
  users: Pick<Users, 'update'>;
  actions: Pick<Actions, 'recordRefusal'>;
}

/**
 * Stores the metadata that actions set, all or nothing: when it would exceed the limit nothing is stored, and the
 * log says so.
 */
export async function storeMetadata(
  { users, actions }: MetadataDependencies,
  { trigger, userId, about }: { trigger: Trigger; userId: string; about: ActionLogFields },
  { userMetadata, appMetadata }: Pick<ActionOutcome, 'userMetadata' | 'appMetadata'>,
): Promise<void> {
  if (Object.keys(userMetadata).length + Object.keys(appMetadata).length === 0) return;
  let isTooLarge = false;
  await users.update(userId, {}, ({ user_metadata, app_metadata }) => {
    const before = { user_metadata, app_metadata };
    const after = {
      user_metadata: withMembers(user_metadata, userMetadata),
      app_metadata: withMembers(app_metadata, appMetadata),
    };
    const size = sizeOf(after);
    // Metadata that was set elsewhere may exceed the limit already; actions may make it smaller.
    isTooLarge = size > MAX_LENGTH && size > sizeOf(before);
    return isTooLarge ? {} : after;
  });
  if (isTooLarge)
    actions.recordRefusal(trigger, `metadata of a user of more than ${MAX_LENGTH} characters`, about);
}

const sizeOf = (metadata: object) => JSON.stringify(metadata).length;
