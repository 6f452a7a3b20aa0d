// A user as the attributes of an assertion, and as its NameID.

import type { Frozen } from '../records/record.ts';
import type { UserRecord } from '../records/users.ts';
import { standardClaims } from '../users/profile.ts';
import { isTellable, mayName, withoutUnproved } from './attribute-release.ts';
import { CLAIMS, NAME_ID } from './names.ts';
import type { ServiceProvider } from './service-provider.ts';

export type AttributeValue = string | number | boolean;

export interface Attribute {
  name: string;
  values: AttributeValue[];
  /** The first of them that may be a NameID; none where all are what the user chose freely. */
  naming?: AttributeValue | undefined;
}

type User = Frozen<UserRecord>;

/** What assertions may say of a user without being asked; metadata only where a mapping names it. */
function profileOf(user: User, clientId: string, provider: ServiceProvider): Record<string, unknown> {
  // What is derived from an address (name, nickname, upn) is derived from one that may be told.
  const told = provider.allowUnverifiedIdentifiers ? user : withoutUnproved(user);
  const {
    nickname,
    updated_at: _seconds,
    ...claims
  } = standardClaims(told, ['profile', 'email', 'phone'], { updatedAt: 'iso8601' });
  const [identity] = user.identities;
  return {
    user_id: user.id,
    ...claims,
    // Said of an address that is not told, too: the user can do something about it.
    email_verified: user.email === undefined ? undefined : user.email_verified,
    nickname,
    username: user.username,
    created_at: user.created_at,
    updated_at: user.updated_at,
    clientID: clientId,
    ...(provider.createUpnClaim ? { upn: upnOf(user, told) } : {}),
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

/** The address, or the username of who has none: an unverified one is not swapped for another name. */
function upnOf(user: User, told: User): string | undefined {
  return user.email === undefined ? user.username : told.email;
}

/**
 * The attributes of a user for a service provider; what nobody proved is left out, unless its addon says that it
 * trusts that.
 * @param vendorHost names the fields that no mapping names.
 */
export function attributesOf(user: User, provider: ServiceProvider, vendorHost: string): Attribute[] {
  const profile = profileOf(user, provider.clientId, provider);
  const trusts = provider.allowUnverifiedIdentifiers;
  const attribute = (name: string, field: string, value: unknown): Attribute => {
    const values = valuesOf(value).filter((one) => trusts || isTellable(user, field, one));
    return { name, values, naming: values.find((one) => trusts || mayName(user, field, one)) };
  };
  const mapped = Object.entries(provider.mappings).flatMap(([field, names]) =>
    names.map((name) => attribute(name, field, lookUp(field, profile, user))),
  );
  // A name that a mapping gives is not for other fields, also when there is no value for it.
  const taken = new Set(mapped.map(({ name }) => name));
  const unmapped = Object.entries(profile)
    .filter(([field]) => provider.passthroughClaimsWithNoMapping && !Object.hasOwn(provider.mappings, field))
    .map(([field, value]) =>
      attribute(
        provider.mapUnknownClaimsAsIs ? field : `http://schemas.${vendorHost}/${field}`,
        field,
        value,
      ),
    )
    .filter(({ name }) => !taken.has(name));
  return merged([...mapped, ...unmapped]);
}

/** Attributes of one name as one; those without a value are left out. */
function merged(attributes: readonly Attribute[]): Attribute[] {
  const byName = new Map<string, Attribute>();
  for (const { name, values, naming } of attributes) {
    const before = byName.get(name);
    const all = [...(before?.values ?? []), ...values];
    if (all.length > 0) byName.set(name, { name, values: all, naming: before?.naming ?? naming });
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
 * The name of a user for a service provider: of what was proved alone, so that no request can choose another.
 * @param asked the format of the request's NameIDPolicy, which is kept or refused (Core §3.4.1.1).
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
  const isAsked = asked !== undefined && asked !== NAME_ID.unspecified;
  const format = isAsked ? asked : provider.nameIdentifierFormat;
  const isKnown = Object.values<string>(NAME_ID).includes(format) || format === provider.nameIdentifierFormat;
  if (!isKnown) return undefined;
  if (format === NAME_ID.transient) return { value: transient, format };
  const probes = provider.nameIdentifierProbes ?? (format === NAME_ID.email ? [] : PROBES);
  const probed = probes
    .map((probe) => attributes.find(({ name }) => name === probe)?.naming)
    .find((value) => value !== undefined);
  if (probed !== undefined) return named(String(probed), format);
  if (format !== NAME_ID.email) return named(user.id, format);
  const { email } = provider.allowUnverifiedIdentifiers ? user : withoutUnproved(user);
  if (email !== undefined) return named(email, format);
  // The addon's format is a preference: its users can log in, as who they are.
  return isAsked ? undefined : named(user.id, NAME_ID.unspecified);
}

function named(value: string, format: string): NameId | undefined {
  return value.length > LONGEST_NAME_ID ? undefined : { value, format };
}
