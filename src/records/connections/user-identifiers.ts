// What the users of a connection are identified by at its provider, and whether that may be given to another person later.
// Whoever is given the identifier of an earlier user enters that user's account.

/** What a connection's users are identified by. */
export interface UserIdentifier {
  /** In English. */
  is: string;
  /**
   * `never`: no other person ever gets it. `possible`: the provider, or its administrator, may give it to another person.
   * `unknown`: it depends on what a script or the provider sends. `proof`: it is what a login proves to have, such as a
   * phone number, so that its next owner is meant to be the user.
   */
  isReassigned: 'never' | 'possible' | 'unknown' | 'proof';
  /** If it is possible: how to choose an identifier that is never reassigned, in English. */
  instead?: string;
}

/** Returns what the operator is told of an identifier that may be given to another person; one sentence. */
export function reassignedText({ name, is, instead }: { name: string; is: string; instead: string }): string {
  return `the users of ${name} are identified by ${is}, and whoever is given that of an earlier user gets the account: ${instead}`;
}

/** Returns the declaration of an identifier that is never reassigned. */
export function permanent(is: string): () => UserIdentifier {
  return () => ({ is, isReassigned: 'never' });
}

/** Names of attributes and claims with a name or address, which people get and lose. */
const NAMES =
  /(?:^|[^a-z])(?:e-?mail|emailaddress|mail|upn|userprincipalname|user_?name|login|uid|screen_?name|nickname|preferred_username|samaccountname|edupersonprincipalname|name|0\.9\.2342\.19200300\.100\.1\.[13]|1\.3\.6\.1\.4\.1\.5923\.1\.1\.1\.6)$/i;

/** The longest name of an attribute that is judged, in characters. */
const MAX_NAME_LENGTH = 1024;

/** Returns what is known of an identifier that is read from an attribute or claim which the operator chose. */
function chosen(names: string | readonly string[], instead: string): UserIdentifier {
  const all = [names].flat();
  const isName = all.some((name) => name.length <= MAX_NAME_LENGTH && NAMES.test(name));
  return { is: all.join(', '), isReassigned: isName ? 'possible' : 'unknown', ...(isName && { instead }) };
}

/** Returns a text of the options, or a list of texts; undefined for anything else, and for an empty text. */
function nameIn(value: unknown): string | readonly string[] | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : undefined;
}

/** Returns the attribute or member that the mapping of a connection takes the user's id from. */
function mappedId({ fieldsMap }: Readonly<Record<string, unknown>>): string | readonly string[] | undefined {
  return typeof fieldsMap === 'object' && fieldsMap !== null && 'user_id' in fieldsMap
    ? nameIn(fieldsMap.user_id)
    : undefined;
}

type Identify = (options: Readonly<Record<string, unknown>>) => UserIdentifier;

/** Of a database: its own ids, or those of the external database. */
export const ofDatabase: Identify = ({ enabledDatabaseCustomization: isCustom }) =>
  isCustom === true
    ? { is: 'the user_id that the scripts return', isReassigned: 'unknown' }
    : { is: 'a random id', isReassigned: 'never' };

/** Of an `oauth2` connection. */
export const ofScript: Identify = (options) => {
  const mapped = mappedId(options);
  return mapped === undefined
    ? { is: 'the user_id that the script fetchUserProfile returns', isReassigned: 'unknown' }
    : chosen(mapped, 'map user_id to the account id of the provider');
};

/** Of AD FS. */
export const ofAdfs: Identify = ({ user_id_attribute }) => {
  const name = nameIn(user_id_attribute);
  return name === undefined
    ? { is: 'sub, which AD FS computes from a claim that its administrator chooses', isReassigned: 'unknown' }
    : chosen(name, 'set user_id_attribute to a claim with the objectGUID or SID');
};

/** Of a directory. Which of them it has is found out when the server starts. */
export const ofEntry: Identify = () => ({
  is: 'objectGUID or entryUUID; uid in a directory that has neither',
  isReassigned: 'unknown',
});

/** Of SAML. A persistent NameID is made for one account; other formats are names (SAML Core §8.3). */
export const ofAssertion: Identify = (options) => {
  const name = nameIn(options.user_id_attribute) ?? mappedId(options);
  return name === undefined
    ? { is: 'the NameID, or a name in its place', isReassigned: 'unknown' }
    : chosen(
        name,
        'set user_id_attribute to an attribute with a permanent id, or have a persistent NameID sent',
      );
};
