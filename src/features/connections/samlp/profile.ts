// The user that an assertion names: the id, and a profile with our claim names.

import { CLAIMS, NAME_ID } from '../../../capabilities/saml-messages/names.ts';
import type { SamlpOptions } from '../../../records/samlp-connection.ts';
import { type UpstreamIdentity, upstreamFault } from '../redirect.ts';
import type { AssertionContents } from './assertion.ts';

const NAME_IDENTIFIER = `${CLAIMS}nameidentifier`;

/** The attributes that may have the user's id, in order of preference. */
const ID_ATTRIBUTES = [NAME_IDENTIFIER, `${CLAIMS}upn`, `${CLAIMS}name`];

/** The attributes that claims of the profile are read from: the names that most providers use. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  email: [`${CLAIMS}emailaddress`, 'email', 'mail', 'urn:oid:0.9.2342.19200300.100.1.3'],
  name: [`${CLAIMS}name`, 'name', 'displayName', 'urn:oid:2.16.840.1.113730.3.1.241'],
  given_name: [`${CLAIMS}givenname`, 'given_name', 'givenName', 'firstName', 'urn:oid:2.5.4.42'],
  family_name: [`${CLAIMS}surname`, 'family_name', 'surname', 'sn', 'lastName', 'urn:oid:2.5.4.4'],
};

/** The formats of a NameID that may be given to somebody else later (Core §8.3.1, §8.3.2). */
const REASSIGNED: Readonly<Record<string, string>> = {
  [NAME_ID.unspecified]: 'a NameID of the format unspecified',
  [NAME_ID.email]: 'a NameID of the format emailAddress',
};

/**
 * Returns the user that an assertion names. The id is that of the option `user_id_attribute`, of the mapping of `user_id`, or of
 * the NameID or an attribute that takes its place.
 * @throws AuthError by {@link upstreamFault} if the assertion has no such id.
 */
export function identityOf(
  { user_id_attribute, fieldsMap }: SamlpOptions,
  { attributes, nameId, sessionIndex, authenticatedAt }: AssertionContents,
): UpstreamIdentity {
  const available = new Map(attributes);
  // A transient NameID differs at each login (Core §8.3.8).
  const isLasting = nameId !== undefined && nameId.format !== NAME_ID.transient;
  if (isLasting) available.set(NAME_IDENTIFIER, [nameId.value]);
  const first = (names: readonly string[]) =>
    names.map((name) => available.get(name)).find((one) => one !== undefined);
  const { user_id: mappedId, ...mappings } = fieldsMap;
  const hasIdAttribute = user_id_attribute !== undefined && user_id_attribute !== '';
  const ids = hasIdAttribute
    ? [user_id_attribute]
    : mappedId === undefined
      ? ID_ATTRIBUTES
      : [mappedId].flat();
  const id = first(ids)?.[0];
  if (id === undefined) {
    throw upstreamFault(
      'access_denied',
      'The assertion of the identity provider names no user by a lasting id.',
    );
  }
  const fields = Object.entries({ ...FIELDS, ...mappings }).flatMap(([field, names]) => {
    const values = first([names].flat());
    return values === undefined ? [] : [[field, single(values)] as const];
  });
  const unmapped = [...available].map(([name, values]) => [name, single(values)] as const);
  const isNameId = isLasting && ids.find((name) => available.has(name)) === NAME_IDENTIFIER;
  const idIs = isNameId ? REASSIGNED[nameId.format] : undefined;
  return {
    id,
    ...(idIs !== undefined && { idIs }),
    profile: Object.fromEntries([...unmapped, ...fields]),
    ...(authenticatedAt !== undefined && { authenticatedAt }),
    ...(nameId && { grant: { logout: logoutOf(nameId, sessionIndex) } }),
  };
}

function single(values: readonly string[]): string | string[] {
  const [value = ''] = values;
  return values.length === 1 ? value : [...values];
}

/** Returns what a LogoutRequest identifies the session by (Core §3.7.1). */
function logoutOf(
  { value, format, qualifiers }: NonNullable<AssertionContents['nameId']>,
  sessionIndex: string | undefined,
): Record<string, string> {
  return {
    name_id: value,
    format,
    ...qualifiers,
    ...(sessionIndex !== undefined && { session_index: sessionIndex }),
  };
}
