// The attributes of an assertion, and its NameID.

import { type NameId, nameIdFormatOf, unspecified } from '../../capabilities/saml-messages/name-id.ts';
import type { DeclaredClaimValue } from '../../engine/claims/claims.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { UserRecord } from '../../records/users/users.ts';
import type { Identity } from '../../users/changes.ts';
import { standardClaims } from '../../users/profile.ts';
import { isReleasable, mayBeNameId, withoutUnproved } from './attribute-release.ts';
import type { ServiceProvider } from './service-provider.ts';

export type AttributeValue = string | number | boolean;

export interface Attribute {
  name: string;
  values: AttributeValue[];
  /** The first value that may be a NameID; undefined when the user chose all of them freely. */
  nameIdValue?: AttributeValue | undefined;
}

type User = Frozen<UserRecord>;

// docs/understand/decisions/saml.md#an-assertion-contains-no-unverified-address
/** Returns the profile members that assertions may contain. Metadata is only included by a mapping. */
function profileOf(user: User, identity: Identity | undefined, sp: ServiceProvider): Record<string, unknown> {
  // name, nickname and upn may be derived from the address, so an unverified one is removed first.
  const released = sp.allowUnverifiedIdentifiers ? user : withoutUnproved(user);
  const {
    nickname,
    updated_at: _seconds,
    ...claims
  } = standardClaims(released, ['profile', 'email', 'phone'], { updatedAt: 'iso8601' });
  return {
    user_id: user.id,
    ...claims,
    // Also set when the address itself is withheld, so that the application can ask the user to verify it.
    email_verified: user.email === undefined ? undefined : user.email_verified,
    nickname,
    username: user.username,
    created_at: user.created_at,
    updated_at: user.updated_at,
    clientID: sp.clientId,
    ...(sp.createUpnClaim ? { upn: upnOf(user, released) } : {}),
    ...(sp.mapIdentities && identity !== undefined
      ? {
          'identities/default/provider': identity.provider,
          'identities/default/connection': identity.connection,
          'identities/default/isSocial': identity.isSocial,
          'identities/default/user_id': identity.upstream_id,
        }
      : {}),
  };
}

/**
 * Returns the e-mail address, or the username of a user without one. The username does not replace an unverified
 * address.
 */
function upnOf(user: User, released: User): string | undefined {
  return user.email === undefined ? user.username : released.email;
}

/**
 * Unverified values are left out unless its addon allows them.
 * @param identity the identity that the user was created with.
 * @param vendorHost host of the namespace for members without a mapping.
 * @param declared the tenant's custom claims for assertions; self-asserted values are restricted as elsewhere.
 */
export function attributesOf(
  user: User,
  identity: Identity | undefined,
  sp: ServiceProvider,
  { vendorHost, declared }: { vendorHost: string; declared: DeclaredClaimValue[] },
): Attribute[] {
  const profile = profileOf(user, identity, sp);
  const allowsUnverified = sp.allowUnverifiedIdentifiers;
  const attribute = (name: string, field: string, value: unknown): Attribute => {
    const values = valuesOf(value).filter((one) => allowsUnverified || isReleasable(user, field, one));
    return {
      name,
      values,
      nameIdValue: values.find((one) => allowsUnverified || mayBeNameId(user, field, one)),
    };
  };
  const mapped = Object.entries(sp.mappings).flatMap(([field, names]) =>
    names.map((name) => attribute(name, field, lookUp(field, profile, user))),
  );
  // A mapped attribute name is reserved even when its field has no value.
  const mappedNames = new Set(mapped.map(({ name }) => name));
  const unmapped = Object.entries(profile)
    .filter(([field]) => sp.passthroughClaimsWithNoMapping && !Object.hasOwn(sp.mappings, field))
    .map(([field, value]) =>
      // docs/understand/decisions/saml.md#fields-without-a-mapping-are-named-httpschemasvendor_host
      attribute(sp.mapUnknownClaimsAsIs ? field : `http://schemas.${vendorHost}/${field}`, field, value),
    )
    .filter(({ name }) => !mappedNames.has(name));
  const verifiedUser = allowsUnverified ? user : withoutUnproved(user);
  const isUnproved = (path: string) =>
    (path === 'user.email' && verifiedUser.email === undefined) ||
    (path === 'user.phone_number' && verifiedUser.phone_number === undefined);
  const custom = declared
    .filter((one) => !isUnproved(one.declared.value))
    .map(({ declared: { claim, value: path }, value }) =>
      attribute(claim, path.replace(/^user\./, ''), value),
    );
  return mergeAttributes([...mapped, ...unmapped, ...custom]);
}

/** Merges attributes of the same name, and drops those without a value. */
function mergeAttributes(attributes: readonly Attribute[]): Attribute[] {
  const byName = new Map<string, Attribute>();
  for (const { name, values, nameIdValue } of attributes) {
    const existing = byName.get(name);
    const all = [...(existing?.values ?? []), ...values];
    if (all.length > 0)
      byName.set(name, { name, values: all, nameIdValue: existing?.nameIdValue ?? nameIdValue });
  }
  return [...byName.values()];
}

/** Returns a profile member, or metadata by a path such as `user_metadata.department`. */
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

/** The limit for persistent identifiers (Core §8.3.7). */
const MAX_NAME_ID_LENGTH = 256;

// docs/understand/decisions/saml.md#nameidpolicy-takes-precedence-over-nameidentifierformat
/**
 * Returns the NameID of a user for a service provider. It is made from verified values only, so that nobody can log
 * in under a self-chosen name.
 * @param requestedFormat the format of the request's NameIDPolicy, which must be met exactly (Core §3.4.1.1).
 * @param transientId the identifier for the transient format, valid in this session.
 * @returns undefined when the user has no identifier of that format.
 */
export function nameIdOf(
  user: User,
  attributes: readonly Attribute[],
  sp: ServiceProvider,
  requestedFormat: string | undefined,
  transientId: string,
): NameId | undefined {
  const isRequested = requestedFormat !== undefined && requestedFormat !== unspecified.uri;
  const uri = isRequested ? requestedFormat : sp.nameIdentifierFormat;
  // A format that is not built in is stated if the administrator names it.
  const format = nameIdFormatOf(uri) ?? (uri === sp.nameIdentifierFormat ? unspecified : undefined);
  if (format === undefined) return undefined;
  const value = format.valueOf({
    userId: user.id,
    transientId,
    email: (sp.allowUnverifiedIdentifiers ? user : withoutUnproved(user)).email,
    attribute: (usual) =>
      (sp.nameIdentifierProbes ?? usual)
        .map((probe) => attributes.find(({ name }) => name === probe)?.nameIdValue)
        .find((one) => one !== undefined)
        ?.toString(),
  });
  if (value !== undefined) return boundedNameId(value, uri);
  // The addon's format is only a preference: a user who has none of it is named by the user id, so that the login works.
  return isRequested ? undefined : boundedNameId(user.id, unspecified.uri);
}

function boundedNameId(value: string, format: string): NameId | undefined {
  return value.length > MAX_NAME_ID_LENGTH ? undefined : { value, format };
}
