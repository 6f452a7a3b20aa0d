// What an administrator may do with users. Setting an address or a password, or holding a link that does so, allows
// logging in as the user. All of that is one right, `takeOver`, which the role of support does not have.
import { allowsRole } from '../../management/answer.ts';
import { roleRefusal } from '../../management/roles/administrator-roles.ts';
import { callOf } from '../api-calls.ts';
import type { ConsoleSession } from '../console-page.ts';

export interface UserRights {
  create: boolean;
  /** Names, picture and blocking, and sending mails to the user. */
  update: boolean;
  /** Addresses, passwords, links, and unlinking identities. */
  takeOver: boolean;
  /** `app_metadata`, by which applications may decide, and `user_metadata`. */
  readMetadata: boolean;
  updateMetadata: boolean;
  removeMethods: boolean;
  endSessions: boolean;
  endTokens: boolean;
  changeRoles: boolean;
  withdraw: boolean;
  removeDevices: boolean;
  delete: boolean;
  import: boolean;
  export: boolean;
}

export function rightsOf({
  can,
  administrator: { role },
}: Pick<ConsoleSession, 'can' | 'administrator'>): UserRights {
  const isSupport = role === 'support';
  const takeOver = !isSupport && can('update:users') && can('create:user_tickets');
  return {
    create: !isSupport && can('create:users'),
    update: can('update:users'),
    takeOver,
    readMetadata: !isSupport && can('read:users'),
    updateMetadata: takeOver && can('update:users_app_metadata'),
    removeMethods: can('delete:authentication_methods'),
    endSessions: can('delete:sessions'),
    endTokens: can('delete:refresh_tokens'),
    changeRoles:
      !isSupport && can('update:users') && can('create:role_members') && can('delete:role_members'),
    withdraw: can('delete:grants'),
    removeDevices: can('delete:device_credentials'),
    delete: !isSupport && can('delete:users'),
    import: !isSupport && can('create:users'),
    export: !isSupport && allowsRole(callOf('POST /jobs/users-exports'), can),
  };
}

/** @throws AuthError 403 */
export function requireRight(has: boolean): void {
  if (!has) throw roleRefusal();
}
