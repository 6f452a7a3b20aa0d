// The interface of a strategy: how the users of its connections authenticate, and everything else that differs by strategy.

import type { Attempt } from '../../capabilities/protection/attempt.ts';
import { type Attempts, tryProof } from '../../capabilities/protection/attempts.ts';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import type { Caller, KnownCallers } from '../../capabilities/protection/rate-limit.ts';
import { notMemberDescription } from '../../engine/admission/admission.ts';
import { AuthError } from '../../http/errors.ts';
import type { EventType } from '../../records/base/log-events.ts';
import type { Connection, Organization } from '../../records/collections.ts';
import { STRATEGIES, type StrategyName, type StrategyRecord } from '../../records/connections/connections.ts';
import { enabledConnectionsOf } from '../../records/users/organizations.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Events } from '../../tenant/events.ts';
import type { Asker } from '../../users/asker.ts';
import type { Login } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import type { CustomDatabases, FailureEvent } from './database/custom/database-custom.ts';
import type { Directories } from './ldap/directories.ts';
import type { RedirectStrategy } from './redirect.ts';

export interface ProofDependencies {
  users: Users;
  challenges: Challenges;
  attempts: Attempts;
  callers: KnownCallers;
  events: Events;
  directories: Directories;
  customDatabases: CustomDatabases;
  /** The time of day, for the time of a login. */
  wallClock: Clock;
}

export interface Proof<Credentials> {
  clientId: string;
  connection: Connection;
  /** The address or username of the user whom the credentials are presented for. */
  identifier: string;
  credentials: Credentials;
  /** The device that sends the credentials. */
  caller: Caller;
  /** The application and request, for the tenant's own code that runs if the login creates a user. */
  asker?: Asker;
  organization?: Organization | undefined;
  /** The address that the request's invitation to the organization was sent to. */
  invitedEmail?: string | undefined;
}

/**
 * Asked before a proof creates a user: at an organization only members log in, so nobody is created who would not become one.
 * @throws AuthError 403 `access_denied`, as the end of such a login does.
 */
export function requireMayJoin({
  organization,
  connection,
  identifier,
  invitedEmail,
}: Pick<Proof<unknown>, 'organization' | 'connection' | 'identifier' | 'invitedEmail'>): void {
  if (organization === undefined) return;
  const enabled = enabledConnectionsOf(organization).find((one) => one.connection_id === connection.id);
  const joins =
    invitedEmail === undefined ? enabled?.assign_membership_on_login === true : invitedEmail === identifier;
  if (enabled === undefined || !joins)
    throw new AuthError(403, 'access_denied', notMemberDescription(organization.id));
}

/** What all strategies have in common, apart from how credentials are verified. */
interface StrategyTraits {
  name: StrategyName;
  /** The authentication methods of a login (RFC 8176 §2). */
  amr: readonly string[];
}

/** A strategy whose users type a password into the login form. */
interface FormTraits extends StrategyTraits {
  page: 'form';
  /** Whether users sign up and reset their passwords at this server. */
  managesPasswords: boolean;
  /** Returns the description of a connection for the vendor's login widget. */
  describe(connection: Connection): object;
}

/** A strategy that has login pages of its own. */
interface StepTraits extends StrategyTraits {
  page: 'step';
  /** Returns the path of these pages, relative to that of the waiting request. */
  step(connection: { name: string }): string;
  /** The message key of the link to these pages. */
  text: string;
  icon: string;
}

/** How credentials of a strategy are verified. {@link strategy} is the only function that creates one. */
export interface Provable<Credentials> {
  /** What the tenant file and the store know about the strategy. */
  record: StrategyRecord;
  /**
   * Verifies credentials without using them up. Wrong ones are counted.
   * @throws AuthError 403 `invalid_grant` for wrong credentials, the same for every reason; 429 `too_many_attempts` after too
   *   many wrong ones.
   */
  check(deps: ProofDependencies, proof: Proof<Credentials>): Promise<void>;
  /** Verifies credentials and uses them up. @returns the login. @throws AuthError as `check`. */
  prove(deps: ProofDependencies, proof: Proof<Credentials>): Promise<Login>;
}

export type FormStrategy = FormTraits & Provable<string>;
export type StepStrategy<Credentials = never> = StepTraits & Provable<Credentials>;
/** A strategy whose users authenticate at this server. */
type ProvingStrategy = FormStrategy | StepStrategy;
export type Strategy = ProvingStrategy | RedirectStrategy;

export interface ReachedAccount {
  userId: string | undefined;
  /** As {@link Attempt.accounts}. Empty only if every account has one identifier, of which one text is accepted. */
  accounts: readonly string[];
}

/** Returns the account of a user here, who may be found by several identifiers. */
export function accountOfUser(userId: string | undefined): ReachedAccount {
  return { userId, accounts: userId === undefined ? [] : [userId] };
}

interface Verification<Credentials, Read> {
  proof: Proof<Credentials>;
  /** What {@link Verifier.read} has read. */
  read: Read;
  /**
   * The key under which the attempts of a caller who has logged in to this account before are counted; undefined for any
   * other caller.
   */
  callerKey: string | undefined;
  /** Whether the credentials are for a login, in which right ones are used up. Otherwise they are only checked. */
  isLogin: boolean;
  /** Sets the log event for wrong credentials, in place of {@link Verifier.failure}. */
  explain(event: FailureEvent): void;
  /**
   * Adds names of the account that only the verification has found out. The outcome is counted under them, too, and
   * right credentials are treated as wrong if one of them has no attempts left.
   * @returns whether all have attempts left: if not, nothing is stored for right credentials.
   */
  reached(accounts: readonly string[]): Promise<boolean>;
}

export type ProvedUser = Pick<Login, 'userId' | 'credentialVersion'>;

interface Verifier<Credentials, Found extends ReachedAccount, Read, Right> {
  /** What an attacker would guess: attempts are counted by it. */
  proofKind: Attempt['proof'];
  /** Whether the credentials could be guessed. If not (a long random ticket), wrong attempts are not counted. */
  isGuessable(credentials: Credentials): boolean;
  /** Looks up the account that the identifier reaches. */
  find(deps: ProofDependencies, proof: Proof<Credentials>): Promise<Found>;
  /** Reads what `verify` needs, while the attempt is being counted and before the credentials are looked at. */
  read(deps: ProofDependencies, proof: Proof<Credentials>, found: Found): Promise<Read>;
  /** @returns undefined for wrong ones. */
  verify(deps: ProofDependencies, verification: Verification<Credentials, Read>): Promise<Right | undefined>;
  /** Returns the user whose credentials were right; undefined if there is no such user. */
  userOf(
    deps: ProofDependencies,
    proof: Proof<Credentials>,
    read: Read,
    right: Right,
  ): Promise<ProvedUser | undefined>;
  failure(read: Read): { type: EventType; user_id?: string };
  wrong(): AuthError;
}

/** Returns the login of a user who has just authenticated, or signed up, with a strategy. */
export function loginBy(
  { wallClock }: Pick<ProofDependencies, 'wallClock'>,
  { amr }: StrategyTraits,
  proved: Pick<Login, 'userId' | 'connection' | 'ip' | 'credentialVersion'>,
): Login {
  return { ...proved, amr, presence: 'present', authTime: epochSeconds(wallClock) };
}

/**
 * Creates a strategy. Its verifier can only be reached through the functions created here, which count wrong attempts and
 * respect locks. So no login can skip the counting, and a locked account is locked for every endpoint.
 */
export function strategy<
  Traits extends FormTraits | StepTraits,
  Credentials,
  Found extends ReachedAccount,
  Read,
  Right,
>(traits: Traits, verifier: Verifier<Credentials, Found, Read, Right>): Traits & Provable<Credentials> {
  return {
    ...traits,
    record: STRATEGIES[traits.name],
    check: async (deps, proof) => {
      await verifyCredentials(verifier, deps, proof, false);
    },
    prove: async (deps, proof) => {
      const user = await verifyCredentials(verifier, deps, proof, true);
      if (user === undefined) throw verifier.wrong();
      return loginBy(deps, traits, { ...user, connection: proof.connection.name, ip: proof.caller.ip });
    },
  };
}

/**
 * @param isLogin whether they are for a login: right ones are used up. Only then is the user returned.
 * @throws AuthError for wrong ones.
 */
async function verifyCredentials<Credentials, Found extends ReachedAccount, Read, Right>(
  verifier: Verifier<Credentials, Found, Read, Right>,
  deps: ProofDependencies,
  proof: Proof<Credentials>,
  isLogin: boolean,
): Promise<ProvedUser | undefined> {
  const { isGuessable, verify, failure, wrong } = verifier;
  const { clientId, connection, identifier, credentials, caller } = proof;
  const found = await verifier.find(deps, proof);
  const reading = verifier.read(deps, proof, found);
  // A failure is handled where the promise is awaited. Without this line it could be reported as unhandled before that.
  reading.catch(() => undefined);
  const attempt: Attempt = {
    ...caller,
    connection: connection.name,
    identifier,
    proof: verifier.proofKind,
    locksAccount: connection.options.brute_force_protection !== false,
    userId: found.userId,
    accounts: found.accounts,
  };
  let user: ProvedUser | undefined;
  let failureEvent: FailureEvent | undefined;
  const explain = (event: FailureEvent) => {
    failureEvent = event;
  };
  const verifyOnce = async ({ isExhausted, ...admitted }: Parameters<Parameters<typeof tryProof>[2]>[0]) => {
    const right = await verify(deps, { proof, read: await reading, isLogin, explain, ...admitted });
    // Treated as wrong, so that it creates and changes no user either.
    if (isExhausted()) return undefined;
    if (right !== undefined && isLogin) {
      user = await verifier.userOf(deps, proof, await reading, right);
      attempt.userId = user?.userId;
    }
    return right;
  };
  const right = await (isGuessable(credentials)
    ? tryProof(deps.attempts, attempt, verifyOnce)
    : verifyOnce({ callerKey: undefined, reached: async () => true, isExhausted: () => false }));
  if (right === undefined) {
    const details = {
      client_id: clientId,
      connection: connection.name,
      user_name: identifier,
      ip: caller.ip,
    };
    deps.events.record({ ...details, ...failure(await reading), ...failureEvent });
    throw wrong();
  }
  // A counted attempt makes its caller known to the account; one that was not counted does so here.
  if (user !== undefined && !isGuessable(credentials)) await deps.callers.remember(user.userId, caller);
  return user;
}
