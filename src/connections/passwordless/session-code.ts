// A code by e-mail or SMS in place of the password of a database connection: it is good with the `auth_session` that who asked
// for it holds, once, and dead after three wrong tries.
import { askerOf } from '../../engine/action-event.ts';
import type { GrantRequest } from '../../engine/tokens.ts';
import { type RequestPage, stepPath } from '../../flow/request-page.ts';
import { requiredField } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import type { Connection } from '../../records/collections.ts';
import { DATABASE } from '../../records/connections.ts';
import { type CodeKind, codeKinds } from '../../records/database-options.ts';
import { identityOfNew } from '../../records/new-identity.ts';
import type { Config } from '../../tenant/config.ts';
import type { Asker } from '../../users/asker.ts';
import { NOBODY } from '../../users/identities.ts';
import { FIRST_VERSION, type Login } from '../../users/login.ts';
import { signUpRefusal } from '../../users/signup.ts';
import type { User } from '../../users/user.ts';
import { databaseFor } from '../database/connection.ts';
import type { LoginChoice } from '../request-connections.ts';
import { type Proof, type ProofDependencies, strategy } from '../strategy.ts';
import { email } from './email.ts';
import { sms } from './sms.ts';
import type { PasswordlessStrategy } from './strategy.ts';

/** The challenge of such a login. */
export const SESSION_PURPOSE = 'database_code';

/** What is kept beside an `auth_session`. */
export interface KeptSession {
  clientId: string;
  /** The connection's name. */
  connection: string;
  /** What the code was sent to; `email` where nothing is said. */
  kind?: CodeKind;
  /** In the form that it is kept in. */
  address: string;
  /** Whether it was asked for somebody new, too. */
  mayCreate: boolean;
}

/** By what a code comes, what it proves, and what is answered to a wrong one. */
const BY_KIND = {
  email: { by: email, verified: 'email_verified' },
  phone_number: { by: sms, verified: 'phone_verified' },
} as const;

/** The member of a user that says that an address of a kind is theirs. */
export const verifiedBy = (kind: CodeKind) => BY_KIND[kind].verified;

/** How codes are sent to addresses of a kind. */
export const strategyFor = (kind: CodeKind): PasswordlessStrategy => BY_KIND[kind].by;

/**
 * Whose address it is, as far as anybody knows: of one that nobody has verified the account may be a stranger's, who would
 * keep their password beside the owner's code.
 */
export function isProvedOwner(user: User, kind: CodeKind, address: string): boolean {
  return user[kind] === address && user[BY_KIND[kind].verified] === true;
}

/** Whether a code may make a user, who then has no password and this one address alone. */
export function mayMakeUsers(connection: Connection, kind: CodeKind, address: string): boolean {
  return signUpRefusal(connection, { [kind]: address }) === undefined;
}

const NOT_ENABLED: Record<CodeKind, string> = {
  email: 'Codes by e-mail are not enabled for the connection.',
  phone_number: 'Codes by phone are not enabled for the connection.',
};

/**
 * The connection that is named, or the application's own.
 * @throws AuthError 400 `invalid_request` where it has no such codes.
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

/** What is given: the ticket, and the code that was sent. */
interface Given {
  session: string;
  code: string;
  mayCreate: boolean;
}

/** How such a code is judged: wrong ones count for the account and the address, as wrong passwords do. */
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
      what: 'code',
      isGuessable: () => true,
      find: ({ users }, { connection, identifier: address }: Proof<Given>) =>
        users.idByAddress({ connection: connection.name, kind, address }),
      read: async ({ users }, _proof, userId) => {
        // The version is read first: a new password raises it in the write that may take the number from the user, so that a
        // login that still sees the number has the version from before.
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
        // The rules may have changed since it was asked for.
        if (!credentials.mayCreate || !mayMakeUsers(connection, kind, address)) return undefined;
        return makeUser(deps, kind, proof);
      },
      failure: () => ({ type: 'fp' }),
      wrong: strategyFor(kind).wrong,
    },
  );

const CODES = { email: sessionCode('email'), phone_number: sessionCode('phone_number') };

async function makeUser(
  { users, events }: ProofDependencies,
  kind: CodeKind,
  { identifier: address, connection, clientId, caller, asker }: Proof<Given>,
) {
  const made = await users.create({
    identity: identityOfNew(connection, { [kind]: address }),
    profile: { [BY_KIND[kind].verified]: true },
    asker,
  });
  if (!('user' in made)) return undefined;
  const at = { client_id: clientId, connection: connection.name, user_name: address, ip: caller.ip };
  events.record({ ...at, type: 'ss', user_id: made.user.id });
  return { userId: made.user.id, credentialVersion: FIRST_VERSION };
}

/** A code that is given, with the ticket that it is good with. */
interface GivenCode extends Pick<Proof<Given>, 'clientId' | 'caller'> {
  session: string;
  code: string;
  /** @param typed whose the code is. */
  askedBy(typed: Partial<Record<CodeKind, string>>): Asker;
}

/**
 * Logs in who gives the code of an `auth_session`; of any number of racers one.
 * @throws AuthError 403 `invalid_grant`, the same whatever was wrong; 429 after too many wrong codes.
 */
export async function proveSession(
  deps: ProofDependencies & { config: Config },
  { clientId, session, code, caller, askedBy }: GivenCode,
): Promise<Login> {
  const found = await deps.challenges.find(SESSION_PURPOSE, session);
  const kept = found?.data as KeptSession | undefined;
  const kind = kept?.kind ?? 'email';
  if (kept === undefined || kept.clientId !== clientId) throw strategyFor(kind).wrong();
  // It may have been switched off since.
  const connection = await codeConnection(deps.config, clientId, { realm: kept.connection, kind });
  const { address: identifier, mayCreate } = kept;
  return CODES[kind].prove(deps, {
    clientId,
    connection,
    identifier,
    credentials: { session, code, mayCreate },
    caller,
    asker: askedBy({ [kind]: identifier }),
  });
}

/** Logs in at the token endpoint. @throws AuthError as {@link proveSession} does; 400 for a missing member. */
export async function redeemSession(
  deps: ProofDependencies & { config: Config },
  { clientId, params, ip, browser, ctx }: GrantRequest,
): Promise<Login> {
  return proveSession(deps, {
    clientId,
    session: requiredField(params, 'auth_session'),
    code: requiredField(params, 'otp'),
    caller: { ip, browser },
    askedBy: (typed) => askerOf(ctx, clientId, typed),
  });
}

/** Where the pages of such codes are in a browser login. */
export function codeStep(connection: { name: string }, kind: CodeKind): string {
  return `code/${connection.name}/${strategyFor(kind).name}`;
}

/** The ways to log in with a code, as the pages of a database connection offer them. */
export function codeChoices({ pending }: RequestPage, connection: Connection): LoginChoice[] {
  return codeKinds(connection).map((kind) => {
    const { text, icon } = strategyFor(kind);
    return { url: stepPath(pending, codeStep(connection, kind)), text, icon };
  });
}
