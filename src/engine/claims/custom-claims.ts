// Claims that the tenant declares, for tokens and wherever else an application reads a user. Their values are
// always the current ones (docs/claims.md).
import type { CustomClaim } from '../../records/custom-claims.ts';
import type { Frozen } from '../../records/record.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { primaryIdentity } from '../../users/changes.ts';
import {
  type ClaimSources,
  type ClaimsContext,
  claimsFor,
  claimValue,
  withinLimit,
} from '../../users/profile.ts';
import type { Users } from '../../users/users.ts';

/** The user, application and place that claims are for. */
interface ClaimsAbout extends ClaimsContext {
  /** Undefined for a token that an application gets for itself. */
  userId?: string | undefined;
  /** The id of the organization that the login is for. */
  organization?: string | undefined;
}

/** A declared claim with its value. */
export interface DeclaredClaimValue {
  declared: Frozen<CustomClaim>;
  value: unknown;
}

export interface CustomClaims {
  /** Returns the claims that have a value, by name. */
  of(about: ClaimsAbout): Promise<Record<string, unknown>>;
  /** Returns the claims that have a value, each with its declaration. */
  list(about: ClaimsAbout): Promise<DeclaredClaimValue[]>;
}

interface CustomClaimsDependencies {
  config: Pick<Config, 'settings' | 'client' | 'organization' | 'connection'>;
  users: Pick<Users, 'get' | 'identitiesOf'>;
  events: Pick<Events, 'record'>;
}

const NONE: readonly never[] = [];

/** Makes the reader of a tenant's declared claims. It reads nothing when none is declared for the place. */
export function createCustomClaims(deps: CustomClaimsDependencies): CustomClaims {
  const declaredFor = (about: ClaimsAbout) => claimsFor(deps.config.settings().customClaims ?? NONE, about);
  const list: CustomClaims['list'] = async (about) => {
    const declaredClaims = declaredFor(about);
    if (declaredClaims.length === 0) return [];
    const sources = await sourcesOf(deps, about);
    const found = declaredClaims
      .map((declared) => ({ declared, value: claimValue(declared, sources) }))
      .filter(({ value }) => value !== undefined);
    return withinLimit(
      found,
      ({ declared, value }) => [declared.claim, value],
      (description) => {
        const { clientId: client_id, userId: user_id } = about;
        deps.events.record({
          type: 'custom_claim_left_out',
          description,
          client_id,
          ...(user_id && { user_id }),
        });
      },
    );
  };
  return {
    list,
    of: async (about) =>
      declaredFor(about).length === 0
        ? {}
        : Object.fromEntries((await list(about)).map(({ declared, value }) => [declared.claim, value])),
  };
}

async function sourcesOf(
  { config, users }: CustomClaimsDependencies,
  { userId, clientId, organization }: ClaimsAbout,
): Promise<ClaimSources> {
  const user = userId === undefined ? undefined : await users.get(userId);
  const connectionName =
    user === undefined ? undefined : primaryIdentity(await users.identitiesOf(user.id))?.connection;
  return {
    user: user && { ...user, user_id: user.id },
    client: await config.client(clientId),
    organization: organization === undefined ? undefined : await config.organization(organization),
    connection: connectionName === undefined ? undefined : await config.connection(connectionName),
  };
}
