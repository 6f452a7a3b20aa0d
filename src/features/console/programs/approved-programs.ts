// Programs that act for administrators at the Management API: who may be asked by whom for what, the tokens, and what is left of
// them at each use.
// docs/understand/decisions/management-api.md#an-administrator-approves-a-programs-user-code-at-the-console
import { isForOneself } from '../../../engine/admission/audience.ts';
import type { Confirmation } from '../../../engine/binding/proof-of-possession.ts';
import type { SignAdministratorToken } from '../../../engine/token/administrator-tokens.ts';
import type { AdministratorToken } from '../../../engine/token/api-tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { scopeValues } from '../../../records/clients/apis.ts';
import { isSelfRegistered } from '../../../records/clients/third-parties.ts';
import type { Client, ResourceServer } from '../../../records/collections.ts';
import {
  ADMINISTRATOR_APPROVAL,
  ADMINISTRATOR_TOKEN,
  type AdministratorRole,
  CONSOLE_DIRECTORY,
} from '../../../records/users/administrators.ts';
import type { TenantConfig } from '../../../tenant/config.ts';
import { type AdministratorApproval, DEVICE_CODE_SECONDS } from '../../grants/device/codes.ts';
import { DEVICE_GRANT } from '../../grants/device/device-callbacks.ts';
import type { AdministratorTokens } from '../../grants/device/device-feature.ts';
import type { ProgramAdministrator } from '../../management/answer.ts';
import { managementAudience, wildcardAudience } from '../../management/management-audience.ts';
import { lesserRole, scopesOf } from '../../management/roles/administrator-roles.ts';
import { CONSOLE, type ConsoleOrigins } from '../console-callbacks.ts';
import {
  type Administrator,
  administratorOfLogin,
  type ConsoleSession,
  type ConsoleSessionDependencies,
  type LoginProof,
} from '../console-session.ts';

/** Path of the page where an administrator sees what a program asks for. */
export const APPROVAL = `${CONSOLE}/device`;

/** Path of the list of programs that act for administrators. */
export const PROGRAMS = `${CONSOLE}/agents/programs`;

/** How long a token lives at most, seconds: as long as a session of the console. */
const MAX_SECONDS = 8 * 3600;
/** How many tokens an administrator may have. The next one ends the one that would end first. */
const MAX_TOKENS = 20;

interface ProgramDependencies extends ConsoleSessionDependencies, ConsoleOrigins {
  hasConsole: boolean;
  issuer: string;
  tenantConfig: TenantConfig;
  sign: SignAdministratorToken;
}

/** What is stored with a ticket, beside its administrator. */
interface StoredProgram extends LoginProof {
  clientId: string;
  scopes: readonly string[];
  /** The role that it was approved with. */
  role: AdministratorRole;
  /** ISO 8601. */
  issuedAt: string;
}

/** A program that acts for an administrator. */
export interface Program extends Pick<StoredProgram, 'clientId' | 'scopes' | 'issuedAt'> {
  id: string;
  /** Epoch seconds. */
  expiresAt: number;
}

/** What a program asks an administrator for, and what becomes of each scope. */
export interface Asked {
  client: Client;
  /** What it would get. */
  scopes: string[];
  /** What it asks for, and its client grant allows, but not the administrator's role. */
  beyondRole: string[];
  /** Seconds. */
  lifetime: number;
}

export interface ApprovedPrograms extends AdministratorTokens {
  /** @returns undefined when the application may not ask administrators any more. */
  askedBy(
    request: { clientId: string; scopes: readonly string[] },
    administrator: Pick<Administrator, 'role'>,
  ): Promise<Asked | undefined>;
  /**
   * Approves what a program asks for. Until its token is fetched the approval is a ticket of the administrator's.
   * @param decide records it with the request; false when that does not wait any more, or the session has ended.
   * @returns what `decide` does.
   */
  approve(
    session: Pick<ConsoleSession, 'administrator' | 'proof'>,
    asked: Pick<Asked, 'client' | 'scopes'>,
    decide: (approved: AdministratorApproval) => Promise<boolean>,
  ): Promise<boolean>;
  /** Judges a token at its use. @returns undefined when it has ended. */
  administratorOf(token: AdministratorToken): Promise<ProgramAdministrator | undefined>;
  /** Returns the programs of an administrator, newest first. */
  of(userId: string): Promise<Program[]>;
  /** @returns whether there was one. */
  end(userId: string, id: string): Promise<boolean>;
}

export function approvedPrograms(deps: ProgramDependencies): ApprovedPrograms {
  const { issuer, tenantConfig: config, challenges, random, baseUrl, consoleUrl } = deps;
  const audience = managementAudience(issuer);
  return {
    requestOf: async ({ client, audience: requested, scope, organization }) => {
      if (requested === undefined || organization || !deps.hasConsole) return undefined;
      const isWildcard = requested === wildcardAudience(issuer);
      if (requested !== audience && !isWildcard) return undefined;
      // An API of the tenant may have any identifier.
      if (isWildcard && (await config.resourceServer(requested)) !== undefined) return undefined;
      const granted = await grantedTo(deps, client);
      if (granted === undefined) return undefined;
      const asked = new Set(scopeValues(scope));
      const scopes = granted.scopes.filter((one) => asked.has(one));
      if (scopes.length > 0) return { scopes };
      // A user may ask for their own record.
      if (!isWildcard) return undefined;
      throw new AuthError(
        400,
        'invalid_scope',
        'The request needs a scope of the Management API that the client grant of the application has.',
      );
    },
    pageOf: (userCode) =>
      `${consoleUrl === baseUrl ? '' : consoleUrl}${APPROVAL}?${new URLSearchParams({ user_code: userCode })}`,
    askedBy: async ({ clientId, scopes }, { role }) => {
      const client = await config.client(clientId);
      const granted = client && (await grantedTo(deps, client));
      if (client === undefined || granted === undefined) return undefined;
      const ofRole = scopesOf(role, deps.scopes);
      const allowed = scopes.filter((one) => granted.scopes.includes(one));
      return {
        client,
        scopes: allowed.filter((one) => ofRole.has(one)),
        beyondRole: allowed.filter((one) => !ofRole.has(one)),
        lifetime: lifetimeOf(granted.api),
      };
    },
    approve: async ({ administrator: { userId, role }, proof }, { client, scopes }, decide) => {
      const { secret: ticket, ref } = await challenges.issueTicket({
        purpose: ADMINISTRATOR_APPROVAL,
        subject: random(16).toString('hex'),
        userId,
        ttlSeconds: DEVICE_CODE_SECONDS,
        data: { clientId: client.client_id },
      });
      const isDecided = await decide({ ...proof, scopes, role, ticket });
      if (!isDecided) await challenges.revoke(ref);
      return isDecided;
    },
    issue: async ({ clientId, ...approved }, { gty, confirmationFor }) => {
      const cnf: Confirmation = await confirmationFor(audience);
      const judged = await judge(deps, { clientId, ...approved });
      if (judged === undefined || judged.scopes.length === 0) throw refusal();
      const { scopes, api } = judged;
      const { login, factors, role } = approved;
      const { userId } = login;
      const lifetimeSeconds = lifetimeOf(api);
      const issuedAt = new Date(deps.wallClock()).toISOString();
      const { secret: ticket, ref } = await challenges.issueTicket({
        purpose: ADMINISTRATOR_TOKEN,
        // One of its own for each: a program may run on several machines.
        subject: random(16).toString('hex'),
        userId,
        ttlSeconds: lifetimeSeconds,
        data: { clientId, scopes, role, login, factors, issuedAt } satisfies StoredProgram,
      });
      // Whatever ended it meanwhile may have looked before it was stored. It has ended the approval in any case.
      const isApproved =
        (await challenges.spendTicket(ADMINISTRATOR_APPROVAL, approved.ticket))?.userId === userId;
      if (!isApproved || (await judge(deps, { clientId, ...approved })) === undefined) {
        await challenges.revoke(ref);
        throw refusal();
      }
      await endOldest(deps, userId);
      const token = { api, ticket, userId, clientId, scopes, lifetimeSeconds, gty, cnf };
      return {
        answer: {
          access_token: await deps.sign(token),
          token_type: cnf.jkt === undefined ? 'Bearer' : 'DPoP',
          expires_in: lifetimeSeconds,
          scope: scopes.join(' '),
        },
        userId,
        connection: CONSOLE_DIRECTORY,
        details: { administrator: judged.administrator.email, scopes },
      };
    },
    administratorOf: async ({ ticket, userId, clientId }) => {
      const found = await challenges.peekTicket<StoredProgram>(ADMINISTRATOR_TOKEN, ticket);
      if (found?.userId !== userId || found.data.clientId !== clientId) return undefined;
      const judged = await judge(deps, found.data);
      if (judged === undefined) return undefined;
      const { administrator, scopes } = judged;
      // A new role shows no more to a program than the one with which it was approved.
      return { ...administrator, role: lesserRole(administrator.role, found.data.role), scopes };
    },
    of: async (userId) =>
      (await challenges.ofUser<StoredProgram>(ADMINISTRATOR_TOKEN, userId))
        .map(({ id, expiresAt, data: { clientId, scopes, issuedAt } }) => ({
          id,
          expiresAt,
          clientId,
          scopes,
          issuedAt,
        }))
        .sort((a, b) => b.issuedAt.localeCompare(a.issuedAt)),
    end: (userId, id) => challenges.endOfUser(ADMINISTRATOR_TOKEN, userId, id),
  };
}

function refusal(): AuthError {
  return new AuthError(403, 'access_denied', 'What was approved is not allowed any more.');
}

interface Granted {
  api: ResourceServer;
  scopes: string[];
}

/**
 * Returns what an application may ask administrators for: nothing, unless it is the tenant's own and has a client grant of its
 * own, for users, for the Management API.
 */
async function grantedTo(
  { issuer, tenantConfig: config }: ProgramDependencies,
  client: Client,
): Promise<Granted | undefined> {
  const { client_id: clientId, is_first_party, grant_types = [], organization_usage: organizations } = client;
  if (is_first_party === false || isSelfRegistered(client)) return undefined;
  if (!grant_types.includes(DEVICE_GRANT) || organizations === 'require') return undefined;
  // Its rules are for the tokens of logins.
  if (client.compliance_level != null) return undefined;
  const api = await config.resourceServer(managementAudience(issuer));
  if (api === undefined || api.subject_type_authorization?.user?.policy === 'deny_all') return undefined;
  const grant = await config.clientGrant(clientId, api.identifier);
  if (grant?.client_id !== clientId || grant.subject_type !== 'user') return undefined;
  const all = api.scopes.map(({ value }) => value).filter((scope) => !isForOneself(scope));
  return {
    api,
    scopes: grant.allow_all_scopes === true ? all : all.filter((scope) => grant.scope.includes(scope)),
  };
}

function lifetimeOf(api: ResourceServer): number {
  return Math.min(api.token_lifetime, MAX_SECONDS);
}

/**
 * Returns what an approval is worth now; undefined for nothing, because of its administrator or application, or without the
 * console.
 */
async function judge(
  deps: ProgramDependencies,
  {
    clientId,
    scopes,
    ...proof
  }: Pick<AdministratorApproval, 'login' | 'factors' | 'scopes'> & { clientId: string },
): Promise<{ administrator: Administrator; scopes: string[]; api: ResourceServer } | undefined> {
  if (!deps.hasConsole) return undefined;
  const [client, administrator] = await Promise.all([
    deps.tenantConfig.client(clientId),
    administratorOfLogin(deps, proof),
  ]);
  const granted = client && (await grantedTo(deps, client));
  if (granted === undefined || administrator === undefined) return undefined;
  const ofRole = scopesOf(administrator.role, deps.scopes);
  return {
    administrator,
    api: granted.api,
    scopes: scopes.filter((one) => granted.scopes.includes(one) && ofRole.has(one)),
  };
}

async function endOldest({ challenges }: ProgramDependencies, userId: string): Promise<void> {
  const all = await challenges.ofUser(ADMINISTRATOR_TOKEN, userId);
  const surplus = all.sort((a, b) => b.expiresAt - a.expiresAt).slice(MAX_TOKENS);
  await Promise.all(surplus.map(({ id }) => challenges.endOfUser(ADMINISTRATOR_TOKEN, userId, id)));
}
