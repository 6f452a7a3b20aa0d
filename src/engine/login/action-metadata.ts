// Stores the user metadata and app metadata that actions set.
import type { ActionLogFields, Actions } from '../../capabilities/actions/actions.ts';
import type { ActionOutcome } from '../../capabilities/actions/commands.ts';
import { withMembers } from '../../capabilities/actions/current-event.ts';
import type { Trigger } from '../../records/actions.ts';
import { MAX_METADATA_LENGTH, MetadataTooLarge } from '../../users/changes.ts';
import type { Users } from '../../users/users.ts';

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
  try {
    await users.update(userId, {}, ({ user_metadata, app_metadata }) => ({
      user_metadata: withMembers(user_metadata, userMetadata),
      app_metadata: withMembers(app_metadata, appMetadata),
    }));
  } catch (thrown) {
    if (!(thrown instanceof MetadataTooLarge)) throw thrown;
    const { member } = thrown;
    actions.recordRefusal(trigger, `${member} of more than ${MAX_METADATA_LENGTH[member]} characters`, about);
  }
}
