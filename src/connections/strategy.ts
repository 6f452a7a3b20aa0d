// What a strategy is: how the users of its connections prove who they are, and all else in which they differ.
import type { AuthError } from '../http/errors.ts';
import type { Attempt } from '../protection/attempt.ts';
import { type Attempts, tryProof } from '../protection/attempts.ts';
import type { Caller, KnownCallers } from '../protection/callers.ts';
import type { Challenges } from '../protection/challenges.ts';
import type { Connection, Organization } from '../records/collections.ts';
import { STRATEGIES, type StrategyName, type StrategyRecord } from '../records/connections.ts';
import type { EventType } from '../records/log-events.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Events } from '../tenant/events.ts';
import type { Asker } from '../users/asker.ts';
import type { Login } from '../users/login.ts';
import type { Users } from '../users/users.ts';
import type { CustomDatabases, Explained } from './database/custom.ts';
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
  /** What logins are dated by. */
  wallClock: Clock;
}

/** The credentials of somebody who says that they are a user of a connection. */
export interface Proof<Credentials> {
  clientId: string;
  connection: Connection;
  /** The address or username of the user that they say they are. */
  identifier: string;
  credentials: Credentials;
  /** Who sends it. */
  caller: Caller;
  /** Who asks, for the tenant's own code that runs where the proof creates a user. */
  asker?: Asker;
  /** The organization whose login page was used. */
  organization?: Organization | undefined;
}

/** In what strategies differ, beside how a proof is judged. */
interface StrategyTraits {
  /** As connections name it. */
  name: StrategyName;
  /** The authentication methods of a login (RFC 8176 §2). */
  amr: readonly string[];
}

/** Its users type a password into the login form. */
interface FormTraits extends StrategyTraits {
  page: 'form';
  /** Whether they sign up there, too, and set a new password by a link that is mailed to them. */
  managesPasswords: boolean;
  /** The description of a connection for the vendor's login widget. */
  describe(connection: Connection): object;
}

/** Its users log in at pages of its own. */
interface StepTraits extends StrategyTraits {
  page: 'step';
  /** The path of these pages below the waiting request. */
  step(connection: { name: string }): string;
  /** The message key of the link to these pages, and its icon. */
  text: string;
  icon: string;
}

/** What every strategy can do with credentials; {@link strategy} alone makes it. */
export interface Provable<Credentials> {
  /** What is known of the strategy where the tenant file and the store are read. */
  record: StrategyRecord;
  /**
   * Whether credentials are right, without using them up; wrong ones count.
   * @throws AuthError 403 `invalid_grant`, the same whatever was wrong; 429 `too_many_attempts` when there were too
   *   many wrong ones.
   */
  check(deps: ProofDependencies, proof: Proof<Credentials>): Promise<void>;
  /** Uses the credentials up. @returns the login. @throws AuthError as `check`. */
  prove(deps: ProofDependencies, proof: Proof<Credentials>): Promise<Login>;
}

export type FormStrategy = FormTraits & Provable<string>;
export type StepStrategy<Credentials = never> = StepTraits & Provable<Credentials>;
/** Its users prove who they are here. */
type ProvingStrategy = FormStrategy | StepStrategy;
export type Strategy = ProvingStrategy | RedirectStrategy;

/** A proof, and what is known while it is judged. */
interface Verification<Credentials, Read> {
  proof: Proof<Credentials>;
  read: Read;
  /**
   * The key under which tries of a caller are counted who has proved this account before; undefined for a stranger.
   */
  room: string | undefined;
  /** Whether the credentials are used up. */
  use: boolean;
  /** Sets the log event for wrong credentials, in place of that of `failure`. */
  explain(why: Explained): void;
}

/** Who gave the right credentials, and the version of the credential that the login goes by. */
export type Proved = Pick<Login, 'userId' | 'credentialVersion'>;

/** How a strategy judges a proof. */
interface Verifier<Credentials, Read, Right> {
  /** What is guessed, where it can be. */
  what: Attempt['what'];
  /** Whether the credentials could be guessed. Wrong tries with a long random ticket lock nobody out. */
  isGuessable(credentials: Credentials): boolean;
  /** The id of the user whom the identifier names. */
  find(deps: ProofDependencies, proof: Proof<Credentials>): Promise<string | undefined>;
  /** Reads what the verifier needs. It runs while the try is counted, before the credentials are looked at. */
  read(deps: ProofDependencies, proof: Proof<Credentials>, userId: string | undefined): Promise<Read>;
  /** Looks at the credentials. @returns undefined for wrong ones. */
  verify(deps: ProofDependencies, judged: Verification<Credentials, Read>): Promise<Right | undefined>;
  /** Who gave the right ones; undefined for no user. */
  userOf(
    deps: ProofDependencies,
    proof: Proof<Credentials>,
    read: Read,
    right: Right,
  ): Promise<Proved | undefined>;
  /** What is recorded of wrong ones. */
  failure(read: Read): { type: EventType; user_id?: string };
  /** What is answered. */
  wrong(): AuthError;
}

/** The login of a user who has just proved who they are by a strategy, or has just signed up with it. */
export function loginBy(
  { wallClock }: Pick<ProofDependencies, 'wallClock'>,
  { amr }: StrategyTraits,
  proved: Pick<Login, 'userId' | 'connection' | 'ip' | 'credentialVersion'>,
): Login {
  return { ...proved, amr, authTime: epochSeconds(wallClock) };
}

/**
 * Makes a strategy. Its verifier can be reached only through the functions made here, which count wrong tries and
 * respect locks. So no login can skip the counting, and a locked account is locked for every endpoint.
 */
export function strategy<Traits extends FormTraits | StepTraits, Credentials, Read, Right>(
  traits: Traits,
  verifier: Verifier<Credentials, Read, Right>,
): Traits & Provable<Credentials> {
  return {
    ...traits,
    record: STRATEGIES[traits.name],
    check: async (deps, proof) => {
      await attempt(verifier, deps, proof, false);
    },
    prove: async (deps, proof) => {
      const user = await attempt(verifier, deps, proof, true);
      if (user === undefined) throw verifier.wrong();
      return loginBy(deps, traits, { ...user, connection: proof.connection.name, ip: proof.caller.ip });
    },
  };
}

/** @returns who has thereby logged in, where right credentials are used up. @throws AuthError for wrong ones. */
async function attempt<Credentials, Read, Right>(
  { what, isGuessable, find, read, verify, userOf, failure, wrong }: Verifier<Credentials, Read, Right>,
  deps: ProofDependencies,
  proof: Proof<Credentials>,
  use: boolean,
): Promise<Proved | undefined> {
  const { clientId, connection, identifier, credentials, caller } = proof;
  const userId = await find(deps, proof);
  const reading = read(deps, proof, userId);
  // A failure is handled where the promise is awaited; this only keeps it from being reported as unhandled.
  reading.catch(() => undefined);
  const isLocked = connection.options.brute_force_protection !== false;
  const { attributes, requires_username: isNamed } = connection.options;
  const hasSeveralNames = attributes != null || isNamed === true;
  const about = { connection: connection.name, identifier, what, locks: isLocked, hasSeveralNames };
  const tried: Attempt = { ...caller, ...about, userId };
  let user: Proved | undefined;
  let why: Explained | undefined;
  const explain = (told: Explained) => {
    why = told;
  };
  const look = async (room: string | undefined): Promise<Right | undefined> => {
    const right = await verify(deps, { proof, read: await reading, room, use, explain });
    if (right !== undefined && use) {
      user = await userOf(deps, proof, await reading, right);
      tried.userId = user?.userId;
    }
    return right;
  };
  const right = await (isGuessable(credentials) ? tryProof(deps.attempts, tried, look) : look(undefined));
  if (right === undefined) {
    const seen = { client_id: clientId, connection: connection.name, user_name: identifier, ip: caller.ip };
    deps.events.record({ ...seen, ...failure(await reading), ...why });
    throw wrong();
  }
  // A counted try makes its caller known to the account; one that was not counted does so here.
  if (user !== undefined && !isGuessable(credentials)) await deps.callers.remember(user.userId, caller);
  return user;
}
