// The field of the login pages in which somebody types who they are: what it is called, and what a phone's keyboard has for it.
import type { Connection } from '../records/collections.ts';
import { strategyRecord } from '../records/connections.ts';
import { identifiersOf } from '../records/database-attributes.ts';
import { databaseOptions } from '../records/database-options.ts';
import { ADDRESS_KINDS, type AddressKind } from '../records/identities.ts';

export interface NameField {
  /** The message key of its label. */
  text: string;
  type: 'text' | 'tel';
  mode: 'email' | 'tel' | 'text';
  /** The message key for a wrong name or password. */
  wrong: string;
}

const EMAIL: NameField = { text: 'field.email', type: 'text', mode: 'email', wrong: 'login.wrong' };

const FIELDS: Readonly<Record<string, NameField>> = {
  email: EMAIL,
  username: { text: 'field.username', type: 'text', mode: 'text', wrong: 'login.wrongDetails' },
  phone_number: { text: 'field.phone', type: 'tel', mode: 'tel', wrong: 'login.wrongDetails' },
  'email username': {
    text: 'field.usernameOrEmail',
    type: 'text',
    mode: 'text',
    wrong: 'login.wrongWithUsername',
  },
  'email phone_number': {
    text: 'field.emailOrPhone',
    type: 'text',
    mode: 'email',
    wrong: 'login.wrongDetails',
  },
  'username phone_number': {
    text: 'field.usernameOrPhone',
    type: 'text',
    mode: 'text',
    wrong: 'login.wrongDetails',
  },
  'email username phone_number': {
    text: 'field.anyName',
    type: 'text',
    mode: 'text',
    wrong: 'login.wrongDetails',
  },
};

/** The field for names of some kinds. */
export function nameField(kinds: readonly AddressKind[]): NameField {
  const key = ADDRESS_KINDS.filter((kind) => kinds.includes(kind)).join(' ');
  return FIELDS[key] ?? EMAIL;
}

/** The kinds of names that users of a connection log in with, where they type one into our form. */
export function namesOf(connection: Connection): AddressKind[] {
  // LDAP directories identify people by account names.
  if (strategyRecord(connection.strategy)?.isDatabase !== true) return ['email', 'username'];
  return identifiersOf(databaseOptions(connection));
}
