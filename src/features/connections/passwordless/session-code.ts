// A code by e-mail or SMS in place of the password of a database connection. It is valid once, together with the
// `auth_session` that its request returned, until three wrong tries.
import { requestContextOf } from '../../../engine/login/login-event.ts';
import type { GrantRequest } from '../../../engine/token/tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { requiredField } from '../../../http/server/body.ts';
import type { Connection } from '../../../records/collections.ts';
import { DATABASE } from '../../../records/connections/connections.ts';
import { type CodeKind, codeKinds } from '../../../records/database-options.ts';
import { identityOfNew } from '../../../records/new-identity.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Asker } from '../../../users/asker.ts';
import { NOBODY } from '../../../users/changes.ts';
import { FIRST_VERSION, type Login } from '../../../users/login.ts';
import { signUpRefusal } from '../../../users/signup.ts';
import type { User } from '../../../users/user.ts';
import { userEvents } from '../../../users/users-declaration.ts';
import { type RequestPage, stepPath } from '../../flow/request-page.ts';
import type { LoginChoice } from '../resolve.ts';
import { databaseFor } from '../resolve.ts';
import { accountOfUser, type Proof, type ProofDependencies, requireMayJoin, strategy } from '../strategy.ts';
import { email } from './email.ts';
import type { PasswordlessStrategy } from './passwordless-strategy.ts';
import { sms } from './sms.ts';

export const SESSION_PURPOSE = 'database_code';

export interface StoredSession {
  clientId: string;
  /** The connection's name. */
  connection: string;
  /** The kind of address; `email` if absent. */
  kind?: CodeKind;
  /** Normalized. */
  address: string;
  /** Whether the code may create a user. */
  mayCreate: boolean;
}

/** For each kind of address: the strategy that sends codes, and the member of a user that a code verifies. */
const BY_KIND = {
  email: { strategy: email, verifiedMember: 'email_verified' },
  phone_number: { strategy: sms, verifiedMember: 'phone_verified' },
} as const;

export const verifiedMemberOf = (kind: CodeKind) => BY_KIND[kind].verifiedMember;

export const strategyFor = (kind: CodeKind): PasswordlessStrategy => BY_KIND[kind].strategy;

// docs/understand/decisions/passwordless-messages.md#codes-for-a-database-connection-are-sent-only-to-verified-addresses-of-its-users
/**
 * Returns whether a user has proved that an address is theirs. A stranger may have created an account with an unverified
 * address; if its owner could log in there by a code, the stranger could still log in by the password.
 */
export function isProvedOwner(user: User, kind: CodeKind, address: string): boolean {
  return user[kind] === address && user[BY_KIND[kind].verifiedMember] === true;
}

/** Returns whether a code may create a user, who has no password and only this address. */
export function mayCreateUser(connection: Connection, kind: CodeKind, address: string): boolean {
  return signUpRefusal(connection, { [kind]: address }) === undefined;
}

const NOT_ENABLED: Record<CodeKind, string> = {
  email: 'Codes by e-mail are not enabled for the connection.',
  phone_number: 'Codes by phone are not enabled for the connection.',
};

/**
 * Returns the connection of a realm, or the application's default.
 * @throws AuthError 400 `invalid_request` if it has no codes for this kind of address.
 */
export async function codeConnection(
  config: Config,
  clientId: string,
  { realm, kind }: { realm: string | undefined; kind: CodeKind },
): Promise<Connection> {
  const { connection } = await databaseFor(config, { clientId, realm });
  if (codeKinds(connection).includes(kind)) return connection;
  throw new AuthError(400, 'invalid_request', NOT_ENABLED[kind]);
}

interface CodeCredentials {
  session: string;
  code: string;
  mayCreate: boolean;
}

/** The strategy of such codes. Wrong codes count against the account and the caller's address, as wrong passwords do. */
const sessionCode = (kind: CodeKind) =>
  strategy(
    {
      name: DATABASE,
      amr: strategyFor(kind).amr,
      page: 'step',
      text: strategyFor(kind).text,
      icon: strategyFor(kind).icon,
      step: () => '',
    },
    {
      proofKind: 'code',
      isGuessable: () => true,
      find: async ({ users }, { connection, identifier: address }: Proof<CodeCredentials>) =>
        accountOfUser(await users.idByAddress({ connection: connection.name, kind, address })),
      read: async ({ users }, _proof, { userId }) => {
        // The version is read first. A password reset may mark the number as unverified, and raises the version in the same
        // batch; so a login that still sees the verified number has the old version, and ends.
        const version = await users.credentialVersion(userId ?? NOBODY);
        return { user: await users.get(userId ?? NOBODY), version };
      },
      verify: async ({ challenges }, { proof: { credentials } }) => {
        const outcome = await challenges.use(SESSION_PURPOSE, credentials.session, credentials.code);
        return outcome === 'accepted' ? true : undefined;
      },
      userOf: async (deps, proof, { user, version }) => {
        const { identifier: address, connection, credentials } = proof;
        if (user !== undefined)
          return isProvedOwner(user, kind, address)
            ? { userId: user.id, credentialVersion: version }
            : undefined;
        // The connection's rules may have changed since the code was requested.
        if (!credentials.mayCreate || !mayCreateUser(connection, kind, address)) return undefined;
        requireMayJoin(proof);
        return createUser(deps, kind, proof);
      },
      failure: () => ({ type: userEvents.fp }),
      wrong: strategyFor(kind).wrong,
    },
  );

const CODES = { email: sessionCode('email'), phone_number: sessionCode('phone_number') };

async function createUser(
  { users, events }: ProofDependencies,
  kind: CodeKind,
  { identifier: address, connection, clientId, caller, asker }: Proof<CodeCredentials>,
) {
  const result = await users.create({
    identity: identityOfNew(connection, { [kind]: address }),
    profile: { [BY_KIND[kind].verifiedMember]: true },
    asker,
  });
  if (!('user' in result)) return undefined;
  const details = { client_id: clientId, connection: connection.name, user_name: address, ip: caller.ip };
  events.record({ ...details, type: userEvents.ss, user_id: result.user.id });
  return { userId: result.user.id, credentialVersion: FIRST_VERSION };
}

/** A code, with the ticket that it is valid with. */
interface CodeSubmission
  extends Pick<Proof<CodeCredentials>, 'clientId' | 'caller' | 'organization' | 'invitedEmail'> {
  session: string;
  code: string;
  /** Returns the facts for the tenant's own code, if a user is created. @param typed the address that the code proves. */
  askerFor(typed: Partial<Record<CodeKind, string>>): Asker;
}

/**
 * Logs in by the code of an `auth_session`, exactly once even if it is used several times at once.
 * @throws AuthError 403 `invalid_grant`, the same whatever was wrong; 429 after too many wrong codes.
 */
export async function proveSession(
  deps: ProofDependencies & { config: Config },
  { clientId, session, code, caller, organization, invitedEmail, askerFor }: CodeSubmission,
): Promise<Login> {
  const challenge = await deps.challenges.find(SESSION_PURPOSE, session);
  const stored = challenge?.data as StoredSession | undefined;
  const kind = stored?.kind ?? 'email';
  if (stored === undefined || stored.clientId !== clientId) throw strategyFor(kind).wrong();
  // Codes may have been switched off for the connection since this one was sent.
  const connection = await codeConnection(deps.config, clientId, { realm: stored.connection, kind });
  const { address: identifier, mayCreate } = stored;
  return CODES[kind].prove(deps, {
    clientId,
    connection,
    identifier,
    credentials: { session, code, mayCreate },
    caller,
    organization,
    invitedEmail,
    asker: askerFor({ [kind]: identifier }),
  });
}

/** Logs in at the token endpoint. @throws AuthError as {@link proveSession} does; 400 for a missing member. */
export async function redeemSession(
  deps: ProofDependencies & { config: Config },
  { clientId, params, ip, browser, ctx }: GrantRequest,
): Promise<Login> {
  const { organization } = params;
  return proveSession(deps, {
    organization: organization ? await deps.config.organization(organization) : undefined,
    clientId,
    session: requiredField(params, 'auth_session'),
    code: requiredField(params, 'otp'),
    caller: { ip, browser },
    askerFor: (typed) => requestContextOf(ctx, clientId, typed),
  });
}

/** Returns the path, below the waiting request, of the pages for such codes. */
export function codeStep(connection: { name: string }, kind: CodeKind): string {
  return `code/${connection.name}/${strategyFor(kind).name}`;
}

export function codeChoices({ waiting }: RequestPage, connection: Connection): LoginChoice[] {
  return codeKinds(connection).map((kind) => {
    const { text, icon } = strategyFor(kind);
    return { url: stepPath(waiting, codeStep(connection, kind)), text, icon };
  });
}
