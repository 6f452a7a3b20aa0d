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

/** What somebody gives to prove that they are a user of a connection. */
export interface Proof<Credentials> {
  clientId: string;
  connection: Connection;
  /** Whom they say to be: an address or username. */
  identifier: string;
  credentials: Credentials;
  /** Who sends it. */
  caller: Caller;
  /** For the tenant's own code, where the proof may make a user. */
  asker?: Asker;
  /** Whose login page it was typed into. */
  organization?: Organization | undefined;
}

/** In what strategies differ, beside how a proof is judged. */
interface StrategyTraits {
  /** As connections name it. */
  name: StrategyName;
  /** What a login proves it by (RFC 8176 §2). */
  amr: readonly string[];
}

/** Its users type a password into the login form. */
interface FormTraits extends StrategyTraits {
  page: 'form';
  /** Whether they sign up there, too, and set a new password by a link that is mailed to them. */
  managesPasswords: boolean;
  /** What a form outside must know of a connection, in the words of the vendor's login widget. */
  describe(connection: Connection): object;
}

/** Its users log in at pages of its own. */
interface StepTraits extends StrategyTraits {
  page: 'step';
  /** Where these are in a browser login. */
  step(connection: { name: string }): string;
  /** The message key of the way there, and the icon beside it. */
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
interface Judged<Credentials, Read> {
  proof: Proof<Credentials>;
  read: Read;
  /** The room of a caller by whom the account was proved before; undefined for a stranger. */
  room: string | undefined;
  /** Whether the credentials are used up. */
  use: boolean;
  /** Has this recorded of wrong ones, in place of what `failure` says. */
  explain(why: Explained): void;
}

/** Who gave the right credentials, and the version of the credential that the login goes by. */
export type Proved = Pick<Login, 'userId' | 'credentialVersion'>;

/** How a strategy judges a proof. */
interface Judgement<Credentials, Read, Right> {
  /** What is guessed, where it can be. */
  what: Attempt['what'];
  /** Whether the credentials could be guessed: what is too long for that locks nobody out. */
  isGuessable(credentials: Credentials): boolean;
  /** The id of the user whom the identifier names. */
  find(deps: ProofDependencies, proof: Proof<Credentials>): Promise<string | undefined>;
  /** Reads what the judgement needs, while the try is counted: so it is known before the credentials are looked at. */
  read(deps: ProofDependencies, proof: Proof<Credentials>, userId: string | undefined): Promise<Read>;
  /** Looks at the credentials. @returns undefined for wrong ones. */
  judge(deps: ProofDependencies, judged: Judged<Credentials, Read>): Promise<Right | undefined>;
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
 * Makes a strategy. How it judges is reached by what is made here alone, so that there is no proof without the count of
 * wrong ones, and no account that is locked for one way in and open for another.
 */
export function strategy<Traits extends FormTraits | StepTraits, Credentials, Read, Right>(
  traits: Traits,
  judgement: Judgement<Credentials, Read, Right>,
): Traits & Provable<Credentials> {
  return {
    ...traits,
    record: STRATEGIES[traits.name],
    check: async (deps, proof) => {
      await attempt(judgement, deps, proof, false);
    },
    prove: async (deps, proof) => {
      const user = await attempt(judgement, deps, proof, true);
      if (user === undefined) throw judgement.wrong();
      return loginBy(deps, traits, { ...user, connection: proof.connection.name, ip: proof.caller.ip });
    },
  };
}

/** @returns who has thereby logged in, where right credentials are used up. @throws AuthError for wrong ones. */
async function attempt<Credentials, Read, Right>(
  { what, isGuessable, find, read, judge, userOf, failure, wrong }: Judgement<Credentials, Read, Right>,
  deps: ProofDependencies,
  proof: Proof<Credentials>,
  use: boolean,
): Promise<Proved | undefined> {
  const { clientId, connection, identifier, credentials, caller } = proof;
  const userId = await find(deps, proof);
  const reading = read(deps, proof, userId);
  // Its failure is met where it is waited for.
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
    const right = await judge(deps, { proof, read: await reading, room, use, explain });
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
  // Where the try was counted that was done with it.
  if (user !== undefined && !isGuessable(credentials)) await deps.callers.remember(user.userId, caller);
  return user;
}
