// What an administrator may do with users, by their scopes. Whoever sets an address or a password, or holds a link that
// does, can log in as the user: all of that is one right, which the role of support has not.
import type { AtConsole } from '../page.ts';
import { roleRefusal } from '../roles.ts';

interface UserRights {
  create: boolean;
  /** Names, a picture, whether they are blocked, and mails to them. */
  update: boolean;
  /** Addresses, passwords, links, and taking identities apart. */
  takeOver: boolean;
  /** `app_metadata`, which applications decide by, and `user_metadata`. */
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

/** The rights of who is there. */
export function rightsOf({
  can,
  administrator: { role },
}: Pick<AtConsole, 'can' | 'administrator'>): UserRights {
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
    export: !isSupport && can('read:users'),
  };
}

/** @throws AuthError 403 without the right. */
export function requireRight(has: boolean): void {
  if (!has) throw roleRefusal();
}
