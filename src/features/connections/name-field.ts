// The identifier field of the login pages (e-mail address, username, phone number): its label, and the keyboard that phones show.
import type { Connection } from '../../records/collections.ts';
import { strategyRecord } from '../../records/connections/connections.ts';
import { identifiersOf } from '../../records/connections/database-attributes.ts';
import { ADDRESS_KINDS, type AddressKind } from '../../records/connections/identities.ts';
import { databaseOptions } from '../../records/database-options.ts';

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

export function nameField(kinds: readonly AddressKind[]): NameField {
  const key = ADDRESS_KINDS.filter((kind) => kinds.includes(kind)).join(' ');
  return FIELDS[key] ?? EMAIL;
}

/** Returns the kinds of identifiers that users of a connection may type into our login form. */
export function namesOf(connection: Connection): AddressKind[] {
  // LDAP directories look users up by e-mail address or account name.
  if (strategyRecord(connection.strategy)?.isDatabase !== true) return ['email', 'username'];
  return identifiersOf(databaseOptions(connection));
}
