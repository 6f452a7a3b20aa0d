// Decides whether an authenticated user is admitted. Checked where a login ends (settle.ts) and whenever the engine
// looks a user up, so that no path can skip it.

import type { IncomingMessage } from 'node:http';
import { type Client as EngineClient, errors, type KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../../http/errors.ts';
import { isSameEmail } from '../../records/base/email.ts';
import type { Frozen } from '../../records/base/record.ts';
import { isCallbackOf } from '../../records/clients/allowed-urls.ts';
import type { ClientGrant, Organization } from '../../records/collections.ts';
import { connectionPurposes } from '../../records/connections/connections.ts';
import {
  enabledConnectionsOf,
  type InvitationRecord,
  type MembershipRecord,
  membershipId,
} from '../../records/users/organizations.ts';
import type { UserRecord } from '../../records/users/users.ts';
import { hashSecret } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { MetadataTooLarge } from '../../users/changes.ts';
import type { Login } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { userEvents } from '../../users/users-declaration.ts';
import { WRONG_PASSWORD } from '../base/failures.ts';
import { type ApplicationSettings, applicationSettings } from '../client/applications.ts';

// Logging in as a member of an organization. SDKs take `org_id` in a token for proof of membership, so it comes from a
// membership that was read when the token was made, never from what a request says.
// docs/understand/decisions/organizations.md#organization-claims-come-from-a-membership-never-from-a-request

// The `organization` of a request, at the authorization endpoint and at the token endpoint.
// docs/understand/decisions/organizations.md#organization-in-the-token-requests-of-users-is-checked-as-at-authorize

/** The hosted service's text. */
const ORGANIZATION_REQUIRED = 'parameter organization is required for this client';
const NOT_ALLOWED = 'parameter organization is not allowed for this client';
const NOT_FOUND = 'the organization was not found';

// docs/understand/decisions/organizations.md#names-of-organizations-are-accepted-where-the-tenant-or-the-page-allows-them
/** Whether requests may contain the name of an organization, and tokens do. */
function allowsOrganizationNames(config: Pick<Config, 'settings'>): boolean {
  return config.settings().tenant.allow_organization_name_in_authentication_api === true;
}

/**
 * Checks the `organization` of an authorization request and replaces a name by the id.
 * @throws errors.InvalidRequest
 */
export async function checkOrganization(
  config: Config,
  { oidc: { params } }: KoaContextWithOIDC,
  idOrName: string | undefined,
  client: object,
): Promise<void> {
  const { organizationUsage: usage, organizationPrompt: prompt } = applicationSettings(client);
  if (params === undefined) return;
  if (idOrName === undefined || idOrName === '') {
    params.organization = undefined;
    // An invitation is to an organization, whatever the user would choose.
    if (params.invitation !== undefined || (usage === 'require' && prompt === 'no_prompt'))
      throw new errors.InvalidRequest(ORGANIZATION_REQUIRED);
    return;
  }
  params.organization = await usableOrganization(config, idOrName, client);
}

async function usableOrganization(config: Config, idOrName: string, client: object): Promise<string> {
  const { organizationUsage: usage } = applicationSettings(client);
  const organization = await requestedOrganization(config, usage, idOrName);
  if ('fault' in organization) throw new errors.InvalidRequest(organization.fault);
  if (!(await isOrganizationOpenTo(config, client, organization.id)))
    throw new errors.InvalidRequest(NOT_ALLOWED);
  return organization.id;
}

/** Whether an organization lets an application log its members in: one of third parties only if the organization says so. */
export async function isOrganizationOpenTo(
  config: Pick<Config, 'organization'>,
  client: object,
  organization: string,
): Promise<boolean> {
  if (!applicationSettings(client).isStrict) return true;
  return (await config.organization(organization))?.third_party_client_access === 'allow';
}

/**
 * Returns the organization that a request names, if its application may log in for one.
 * @param usage the application's `organization_usage`.
 * @param idOrName the id, or the name where the tenant allows that.
 * @returns its id, or the description of `invalid_request`.
 */
export async function requestedOrganization(
  config: Config,
  usage: ApplicationSettings['organizationUsage'],
  idOrName: string,
): Promise<{ id: string } | { fault: string }> {
  if (usage === 'deny') return { fault: NOT_ALLOWED };
  const found = await namedOrganization(config, idOrName);
  return found === undefined ? { fault: NOT_FOUND } : { id: found.id };
}

/**
 * Returns the organization that a request names by its id, or by its name where the tenant allows that.
 * @throws errors.InvalidRequest when there is none.
 */
export async function findOrganization(config: Config, idOrName: string): Promise<Organization> {
  const found = await namedOrganization(config, idOrName);
  if (found === undefined) throw new errors.InvalidRequest(NOT_FOUND);
  return found;
}

async function namedOrganization(config: Config, idOrName: string): Promise<Organization | undefined> {
  const found = await config.organization(idOrName);
  return found?.id === idOrName || allowsOrganizationNames(config) ? found : undefined;
}

/**
 * Whether a redirect URI is one of an application's, as registered and for the organization of its request.
 * @param client the engine's.
 * @param organization the request's `organization`: an id, or a name where the tenant allows that.
 */
export function allowsRedirectUri(
  config: Pick<Config, 'knownOrganization' | 'settings'>,
  client: EngineClient,
  address: string,
  organization: unknown,
): boolean {
  const { appType, firstParty, organizationUsage } = applicationSettings(client);
  const registered = {
    callbacks: client.redirectUris ?? [],
    app_type: appType,
    is_first_party: firstParty,
    organization_usage: organizationUsage,
  };
  const idOrName = text(organization);
  const found = idOrName === undefined ? undefined : config.knownOrganization(idOrName);
  const isNamed = found?.id === idOrName || allowsOrganizationNames(config);
  return isCallbackOf(registered, address, isNamed ? found : undefined);
}

/**
 * Returns the organization of a request to the token endpoint, where no page can ask for one.
 * @param idOrName the request's `organization`.
 * @param earlier the login that this request completes: its organization cannot be changed.
 * @returns the id; undefined when none is asked for.
 * @throws errors.InvalidRequest when there is none of that name, or the application denies or requires one.
 */
export async function organizationAtToken(
  config: Config,
  client: object,
  idOrName: string | undefined,
  earlier?: { organization?: string | undefined },
): Promise<string | undefined> {
  const requested = idOrName ? await usableOrganization(config, idOrName, client) : undefined;
  if (earlier !== undefined && requested !== undefined && requested !== earlier.organization)
    throw new errors.InvalidRequest('parameter organization is not that of the login');
  const id = earlier?.organization ?? requested;
  if (id === undefined && applicationSettings(client).organizationUsage === 'require')
    throw new errors.InvalidRequest(ORGANIZATION_REQUIRED);
  return id;
}

const NO_INVITATION = 'invitation not found or already used';

/** The organization and invitation that a request asks for. */
interface OrganizationRequest {
  clientId: string;
  /** The id: names were resolved when the request was received. */
  organization?: string | undefined;
  /** An invitation's ticket. */
  invitation?: string | undefined;
}

type Invitation = Frozen<InvitationRecord>;
type LoginIdentity = Pick<Login, 'userId' | 'connection'>;

/** The decision on a login for an organization: a refusal, or how the user becomes a member. */
type MembershipDecision =
  | { refusal: AuthError }
  | { refusal?: undefined; joins?: 'by-connection' | Invitation };

export interface Organizations {
  /** Why a login does not answer a request; undefined when it does, or no organization is asked for. */
  membershipError(login: LoginIdentity, request: OrganizationRequest): Promise<AuthError | undefined>;
  /**
   * Makes the user of a login a member, where an invitation or the connection allows it. An invitation is used up,
   * and of simultaneous logins only one gets it.
   * @returns as {@link membershipError}.
   */
  ensureMembership(login: LoginIdentity, request: OrganizationRequest): Promise<AuthError | undefined>;
  /**
   * Whether a user is a member of an existing organization.
   * @param connection has to be enabled for the organization, if given; empty for a login of which it is not known.
   */
  isMember(organization: string, userId: string, connection?: string): Promise<boolean>;
  /** A member's roles within an organization; empty for anyone else, and without an organization. */
  rolesOf(organization: string | undefined, userId: string): Promise<readonly string[]>;
  claims(organization: string | undefined): Promise<{ org_id?: string; org_name?: string }>;
  /** Returns the organizations of a user that a login with a connection may be for, sorted by name. */
  choices(userId: string, connection: string): Promise<Organization[]>;
  /** @see checkOrganization */
  checkOrganization(
    ctx: KoaContextWithOIDC,
    idOrName: string | undefined,
    client: { clientId: string },
  ): Promise<void>;
  /** Checks the `invitation` of an authorization request. @throws errors.InvalidRequest */
  checkInvitation(
    ctx: KoaContextWithOIDC,
    ticket: string | undefined,
    client: { clientId: string },
  ): Promise<void>;
}

interface OrganizationsDependencies {
  config: Config;
  store: Store;
  users: Pick<Users, 'get' | 'update' | 'identitiesOf'>;
  events: Pick<Events, 'record'>;
}

export function createOrganizations(deps: OrganizationsDependencies): Organizations {
  const { config, store } = deps;
  const memberships = store.collection('memberships');
  const isMember: Organizations['isMember'] = async (id, userId, connection) => {
    const organization = await organizationById(config, id);
    if (organization === undefined) return false;
    if (
      connection !== undefined &&
      (await enabledConnection(deps, organization, { userId, connection })) === undefined
    )
      return false;
    return (await memberships.get(membershipId(id, userId))) !== undefined;
  };
  return {
    membershipError: async (login, request) => (await decideMembership(deps, login, request)).refusal,
    ensureMembership: (login, request) => ensureMembership(deps, login, request),
    isMember,
    rolesOf: async (organization, userId) =>
      organization === undefined
        ? []
        : ((await memberships.get(membershipId(organization, userId)))?.roles ?? []),
    claims: async (id) => {
      const organization = id === undefined ? undefined : await organizationById(config, id);
      if (organization === undefined) return {};
      return {
        org_id: organization.id,
        // SDKs compare it with the requested name in small letters.
        // docs/understand/decisions/organizations.md#names-of-organizations-are-compared-without-regard-to-case
        ...(allowsOrganizationNames(config) && { org_name: organization.name.toLowerCase() }),
      };
    },
    choices: async (userId, connection) => {
      const memberRecords = await memberships.findBy('user', userId);
      const found = await Promise.all(
        memberRecords.map(async ({ organization_id: id }) =>
          (await isMember(id, userId, connection)) ? [(await organizationById(config, id)) ?? []].flat() : [],
        ),
      );
      return found.flat().sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    checkOrganization: (ctx, idOrName, client) => checkOrganization(config, ctx, idOrName, client),
    checkInvitation: async ({ oidc: { params } }, ticket, { clientId }) => {
      if (ticket === undefined || params === undefined) return;
      const request = { clientId, organization: text(params.organization), invitation: ticket };
      if ((await invitationOf(store, request)) === undefined) throw new errors.InvalidRequest(NO_INVITATION);
    },
  };
}

const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

async function organizationById(config: Config, id: string): Promise<Organization | undefined> {
  const found = await config.organization(id);
  return found?.id === id ? found : undefined;
}

/**
 * Returns the entry by which an organization enables the connection of a login; undefined when it does not. Where it is not
 * known which of several that is, all must be enabled, and none makes the user a member.
 */
async function enabledConnection(
  { config, users }: Pick<OrganizationsDependencies, 'config' | 'users'>,
  organization: Organization,
  login: LoginIdentity,
): Promise<{ connection_id?: string; assign_membership_on_login?: boolean } | undefined> {
  const names = await possibleConnections(users, login);
  const connections = await Promise.all(names.map((name) => config.connection(name)));
  const entries = connections.map((one) =>
    enabledConnectionsOf(organization).find(({ connection_id }) => connection_id === one?.id),
  );
  if (entries.length === 0 || entries.includes(undefined)) return undefined;
  return entries.length === 1 ? entries[0] : {};
}

/** Returns the connection of a login, or those of all of its user's identities where it is not known. */
async function possibleConnections(
  users: Pick<Users, 'identitiesOf'>,
  { userId, connection }: { userId: string; connection: string | undefined },
): Promise<string[]> {
  if (connection) return [connection];
  return (await users.identitiesOf(userId)).map((identity) => identity.connection);
}

// docs/understand/decisions/organizations.md#an-invitation-is-accepted-by-a-login-of-its-own
/** Returns the invitation of a ticket, if it is for this organization and this application. */
async function invitationOf(store: Store, request: OrganizationRequest): Promise<Invitation | undefined> {
  if (request.invitation === undefined) return undefined;
  const [found] = await store.collection('invitations').findBy('ticket', hashSecret(request.invitation));
  const isForRequest =
    found?.organization_id === request.organization && found?.client_id === request.clientId;
  return isForRequest ? found : undefined;
}

function denial(description: string): { refusal: AuthError } {
  return { refusal: new AuthError(403, 'access_denied', description) };
}

/** The description of a refusal of a user who is no member, in the hosted service's words. */
export function notMemberDescription(organization: string): string {
  return `user is not part of the ${organization} organization`;
}

async function decideMembership(
  deps: OrganizationsDependencies,
  login: LoginIdentity,
  request: OrganizationRequest,
): Promise<MembershipDecision> {
  const { config, store } = deps;
  const { organization: id, invitation } = request;
  if (id === undefined) return {};
  const organization = await organizationById(config, id);
  const enabled = organization === undefined ? undefined : await enabledConnection(deps, organization, login);
  if (enabled === undefined) return denial(notMemberDescription(id));
  if (invitation !== undefined) return decideInvitation(deps, login, request, enabled.connection_id);
  if ((await store.collection('memberships').get(membershipId(id, login.userId))) !== undefined) return {};
  return enabled.assign_membership_on_login === true
    ? { joins: 'by-connection' }
    : denial(notMemberDescription(id));
}

async function decideInvitation(
  { store, users }: OrganizationsDependencies,
  { userId }: LoginIdentity,
  request: OrganizationRequest,
  connectionId: string | undefined,
): Promise<MembershipDecision> {
  const [invitation, user] = await Promise.all([invitationOf(store, request), users.get(userId)]);
  if (invitation === undefined) return denial(NO_INVITATION);
  if (user?.email === undefined || !isSameEmail(user.email, invitation.invitee.email))
    return denial('the invitation is for another email address');
  if ((invitation.connection_id ?? connectionId) !== connectionId)
    return denial('the invitation is for another connection');
  return { joins: invitation };
}

async function ensureMembership(
  deps: OrganizationsDependencies,
  login: LoginIdentity,
  request: OrganizationRequest,
): Promise<AuthError | undefined> {
  const { refusal, joins } = { joins: undefined, ...(await decideMembership(deps, login, request)) };
  const { organization } = request;
  if (refusal !== undefined || joins === undefined || organization === undefined) return refusal;
  if (joins === 'by-connection') {
    await addMember(deps.store, organization, login.userId, []);
    return undefined;
  }
  // Taken atomically: another login with the same link finds no invitation.
  const consumed = await deps.store.collection('invitations').take(joins.id);
  if (consumed === undefined) return denial(NO_INVITATION).refusal;
  await addMember(deps.store, organization, login.userId, consumed.roles);
  await copyInvitationMetadata(deps, login.userId, consumed);
  return undefined;
}

/** Makes a user a member. An existing member keeps their roles. */
async function addMember(
  store: Store,
  organization_id: string,
  user_id: string,
  roles: readonly string[],
): Promise<void> {
  const id = membershipId(organization_id, user_id);
  await store.collection('memberships').upsert(id, (current): MembershipRecord => {
    return { id, organization_id, user_id, roles: [...new Set([...(current?.roles ?? []), ...roles])] };
  });
}

/** Copies the metadata of an invitation to its user. Values that the user has already stay. */
async function copyInvitationMetadata(
  { users, events }: OrganizationsDependencies,
  userId: string,
  invitation: Invitation,
) {
  const { app_metadata, user_metadata } = invitation;
  if (Object.keys({ ...app_metadata, ...user_metadata }).length === 0) return;
  try {
    await users.update(userId, {}, (now) => ({
      app_metadata: { ...app_metadata, ...now.app_metadata },
      user_metadata: { ...user_metadata, ...now.user_metadata },
    }));
  } catch (thrown) {
    // The user is a member by now, and has filled their metadata themselves.
    if (!(thrown instanceof MetadataTooLarge)) throw thrown;
    const description = `The metadata of an invitation was not stored: ${thrown.message}`;
    events.record({ type: userEvents.metadata_refused, user_id: userId, description });
  }
}

/**
 * Returns the organization of a request's tokens: from its grant, or from its parameters while the grant is being
 * made.
 */
export function organizationOf(ctx: KoaContextWithOIDC | undefined): string | undefined {
  if (ctx === undefined) return undefined;
  const { route, params, entities } = ctx.oidc;
  if (route === 'authorization' || route === 'resume') return text(params?.organization);
  return (entities.Grant as { organization?: string } | undefined)?.organization;
}

/** Returns the organization that a session was last used for. */
export function organizationOfSession(session: object): string | undefined {
  return (session as { organization?: string }).organization;
}

// `organization` with client_credentials, where the client grant allows it.

/** The organizations of client_credentials requests. */
export interface MachineOrganizations {
  /** Remembers the `organization` that a request sent, because the engine would drop it. */
  remember(req: IncomingMessage, idOrName: string): void;
  /**
   * Checks whether a client grant may be used for the organization of a request.
   * @throws errors.InvalidRequest when there is no such organization, or one is required; errors.AccessDenied when
   *   the grant may not be used for it.
   */
  check(req: IncomingMessage, grant: ClientGrant, clientId: string): Promise<void>;
  /** Returns the id of the organization that a request was checked for. */
  of(req: IncomingMessage | undefined): string | undefined;
}

export function machineOrganizations(config: Config): MachineOrganizations {
  const requested = new WeakMap<IncomingMessage, string>();
  const checked = new WeakMap<IncomingMessage, string>();
  return {
    remember: (req, idOrName) => void requested.set(req, idOrName),
    check: async (req, grant, clientId) => {
      const usage = grant.organization_usage ?? 'deny';
      // A grant that allows no organizations is for none, whatever the application's default organization is.
      // docs/understand/decisions/organizations.md#an-applications-default_organization-is-used-for-client_credentials-only
      const client = usage === 'deny' ? undefined : await config.client(clientId);
      const idOrName = requested.get(req) ?? client?.default_organization?.organization_id;
      if (idOrName === undefined) {
        if (usage === 'require') throw new errors.InvalidRequest(ORGANIZATION_REQUIRED);
        return;
      }
      const found = await findOrganization(config, idOrName);
      if (usage === 'deny' || !mayUse(found, grant)) {
        throw new errors.AccessDenied(
          `Client is not authorized to access "${grant.audience}" for the ${found.id} organization`,
        );
      }
      checked.set(req, found.id);
    },
    of: (req) => (req === undefined ? undefined : checked.get(req)),
  };
}

// docs/understand/decisions/organizations.md#an-applications-own-token-for-an-organization-needs-a-client-grant-that-allows-it
/** Whether a client grant may be used for an organization: for any, or because the organization has it. */
function mayUse({ client_grants }: Organization, grant: ClientGrant): boolean {
  if (grant.allow_any_organization === true) return true;
  return Array.isArray(client_grants) && client_grants.includes(grant.id);
}

/**
 * Decides whether a user is admitted.
 * @returns the error to answer when not; undefined when the user is admitted.
 */
export function admissionError(user: Frozen<UserRecord>): AuthError | undefined {
  // SDKs compare "user is blocked".
  if (user.blocked === true) return new AuthError(403, 'unauthorized', 'user is blocked');
  return undefined;
}

/** The members of a login that a change of the user can make invalid. */
type LoginCredential = Pick<Login, 'userId' | 'credentialVersion'>;

/** The user of a login, and the reason when it may not go on. */
export type Admission = { user: User; refusal: undefined } | { user: User | undefined; refusal: AuthError };

/**
 * Decides whether a session or tokens may be made from a login. Refused when the user is not admitted, is deleted,
 * or has a new password since the login. A change of the password ends what is stored at that moment but cannot see
 * a login under way, so this is checked before something is stored and again afterwards, when it can still be
 * removed.
 * @returns `refusal`: `invalid_grant`, in the words of a wrong password, for a login that no longer holds;
 *   `unauthorized` for a user who is not admitted; undefined when the login holds.
 */
export async function admissionOf(users: Users, login: LoginCredential): Promise<Admission> {
  const [user, holds] = await Promise.all([users.get(login.userId), isCredentialCurrent(users, login)]);
  if (user === undefined || !holds)
    return { user, refusal: new AuthError(403, 'invalid_grant', WRONG_PASSWORD) };
  const refusal = admissionError(user);
  return refusal === undefined ? { user, refusal } : { user, refusal };
}

/** Whether the user's credential is still the one that the login was verified with. */
export async function isCredentialCurrent(
  users: Users,
  { userId, credentialVersion }: LoginCredential,
): Promise<boolean> {
  return (await users.credentialVersion(userId)) === credentialVersion;
}

// docs/understand/decisions/sessions-logout.md#a-session-answers-only-applications-that-its-connection-is-enabled-for
/**
 * Whether a login may be one for an application, by its connection: it may have been made for another application, or the
 * connection been closed since. Where it is not known which of the user's connections it was made with, each must be enabled;
 * where somebody acts for the user, who has not logged in, one that the user could log in with.
 * @param login `connection` is undefined or empty where it is not known.
 */
export async function isOpenTo(
  { config, users }: { config: Pick<Config, 'connectionsOf'>; users: Pick<Users, 'identitiesOf'> },
  clientId: string,
  login: Pick<Login, 'userId' | 'transfer'> & { connection: string | undefined },
): Promise<boolean> {
  const connections = await config.connectionsOf(clientId);
  const isEnabled = (name: string) =>
    connections.some((one) => one.name === name && connectionPurposes(one).logsIn);
  const possible = await possibleConnections(users, login);
  return login.transfer?.act === undefined ? possible.every(isEnabled) : possible.some(isEnabled);
}

/** The description of `access_denied` and `invalid_grant` for a login whose connection or organization is not open. */
export const CLOSED = 'The connection or organization of the login is not open to this application.';

/**
 * Whether a login or session of a connection may answer a request.
 * @param requested the connection that the request names, if it names one.
 */
export function matchesConnection(requested: unknown, connection: string | undefined): boolean {
  return typeof requested !== 'string' || requested === connection;
}
