// A user as the attributes of an assertion, and as its NameID (wire-details 5.2).
import type { UserRecord } from '../store/collections.ts';
import type { Frozen } from '../store/contract.ts';
import { standardClaims } from '../users/profile.ts';
import { CLAIMS, NAME_ID } from './names.ts';
import type { ServiceProvider } from './settings.ts';

export type AttributeValue = string | number | boolean;

export interface Attribute {
  name: string;
  values: AttributeValue[];
}

type User = Frozen<UserRecord>;

/** What assertions may say of a user without being asked; metadata only where a mapping names it. */
function profileOf(user: User, clientId: string, provider: ServiceProvider): Record<string, unknown> {
  const {
    nickname,
    updated_at: _seconds,
    ...claims
  } = standardClaims(user, ['profile', 'email', 'phone'], { oidcConformant: true });
  const [identity] = user.identities;
  return {
    user_id: user.id,
    ...claims,
    nickname,
    username: user.username,
    created_at: user.created_at,
    updated_at: user.updated_at,
    clientID: clientId,
    ...(provider.createUpnClaim ? { upn: user.email ?? user.username } : {}),
    ...(provider.mapIdentities && identity !== undefined
      ? {
          'identities/default/provider': identity.provider,
          'identities/default/connection': identity.connection,
          'identities/default/isSocial': identity.isSocial,
          'identities/default/user_id': identity.user_id,
        }
      : {}),
  };
}

/**
 * The attributes of a user for a service provider.
 * @param vendorHost names the fields that no mapping names.
 */
export function attributesOf(user: User, provider: ServiceProvider, vendorHost: string): Attribute[] {
  const profile = profileOf(user, provider.clientId, provider);
  const mapped = Object.entries(provider.mappings).flatMap(([field, names]) => {
    const values = valuesOf(lookUp(field, profile, user));
    return names.map((name) => ({ name, values }));
  });
  const unmapped = Object.entries(profile)
    .filter(([field]) => provider.passthroughClaimsWithNoMapping && !Object.hasOwn(provider.mappings, field))
    .map(([field, value]) => ({
      name: provider.mapUnknownClaimsAsIs ? field : `http://schemas.${vendorHost}/${field}`,
      values: valuesOf(value),
    }));
  const byName = new Map<string, Attribute>();
  for (const { name, values } of [...mapped, ...unmapped]) {
    const before = byName.get(name)?.values ?? [];
    if (values.length > 0) byName.set(name, { name, values: [...before, ...values] });
  }
  return [...byName.values()];
}

/** A field of the profile; `user_metadata.department` and `app_metadata.roles` where a mapping names it so. */
function lookUp(field: string, profile: Readonly<Record<string, unknown>>, user: User): unknown {
  if (Object.hasOwn(profile, field)) return profile[field];
  const [root, ...path] = field.split('.');
  if (root !== 'user_metadata' && root !== 'app_metadata') return undefined;
  let value: unknown = user[root];
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function valuesOf(value: unknown): AttributeValue[] {
  if (value === undefined || value === null || value === '') return [];
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return [value];
  if (Array.isArray(value)) return value.flatMap(valuesOf);
  return [JSON.stringify(value)];
}

/** How an assertion names its user. */
export interface NameId {
  value: string;
  format: string;
  spNameQualifier?: string;
}

const PROBES = [`${CLAIMS}nameidentifier`, `${CLAIMS}emailaddress`, `${CLAIMS}name`];
/** The standard's own limit for persistent names (Core §8.3.7). */
const LONGEST_NAME_ID = 256;

/**
 * The name of a user for a service provider.
 * @param asked the format of the request's NameIDPolicy.
 * @param transient a name for this session alone, used where the format says so.
 * @returns undefined when there is no name of that format.
 */
export function nameIdOf(
  user: User,
  attributes: readonly Attribute[],
  provider: ServiceProvider,
  asked: string | undefined,
  transient: string,
): NameId | undefined {
  const format = asked === undefined || asked === NAME_ID.unspecified ? provider.nameIdentifierFormat : asked;
  const isKnown = Object.values<string>(NAME_ID).includes(format) || format === provider.nameIdentifierFormat;
  if (!isKnown) return undefined;
  if (format === NAME_ID.transient) return { value: transient, format };
  const probes = provider.nameIdentifierProbes ?? (format === NAME_ID.email ? [] : PROBES);
  const probed = probes
    .map((probe) => attributes.find(({ name }) => name === probe)?.values[0])
    .find((value) => value !== undefined);
  const value = probed ?? (format === NAME_ID.email ? user.email : user.id);
  if (value === undefined || String(value).length > LONGEST_NAME_ID) return undefined;
  return { value: String(value), format };
}
