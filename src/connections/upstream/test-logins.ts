// Test logins at a provider, which administrators begin in the console and which log nobody in. The state is a
// ticket, as with every login there. The answer is kept under a second ticket, and shown in the administrator's own
// session only.
import { type Challenges, isTicket } from '../../protection/challenges.ts';
import type { Random } from '../../runtime/random.ts';
import { isSameSecret } from '../../runtime/secrets.ts';

/** A try that has gone to its provider. */
interface TestLogin {
  /** The administrator's user id. */
  userId: string;
  /** A hash of the session and the browser that it was begun in. */
  session: string;
  connectionId: string;
  nonce: string;
  codeVerifier: string;
}

/** What the browser brought back for one. */
export interface TestLoginAnswer extends TestLogin {
  state: string;
  parameters: Readonly<Record<string, string>>;
  /** The name of the connection whose callback it is, where the address says so. */
  connection?: string;
  /** What was kept with {@link TestLogins.keepRedirect}. */
  redirect?: unknown;
}

export interface TestLogins {
  /** Begins one; another of the same session that still waits is over. @returns its `state`. */
  begin(
    login: Pick<TestLogin, 'userId' | 'session' | 'connectionId'>,
  ): Promise<Pick<TestLogin, 'nonce' | 'codeVerifier'> & { state: string }>;
  /** Keeps where the browser was sent, JSON, to be shown with the answer. */
  keepRedirect(state: string, redirect: unknown): Promise<void>;
  /**
   * Takes the answer of a provider, which uses the state up.
   * @param connection as {@link TestLoginAnswer.connection}.
   * @returns a ticket for it; undefined for a state that is no try's.
   */
  receive(
    state: string,
    parameters: Readonly<Record<string, string>>,
    connection: string | undefined,
  ): Promise<string | undefined>;
  /**
   * The answer, once: of any number of racers exactly one gets it.
   * @returns undefined in another session, which uses up nothing.
   */
  take(ticket: string, session: string): Promise<TestLoginAnswer | undefined>;
}

const STATE = 'connection_trial';
const ANSWER = 'connection_trial_answer';
/** How long the provider's own pages may take, seconds. */
const TTL = 900;
const ANSWER_TTL = 120;

/** The tries of a tenant. */
export function testLogins({ challenges, random }: { challenges: Challenges; random: Random }): TestLogins {
  const secret = () => random(32).toString('base64url');
  return {
    begin: async (login) => {
      const { userId, session: subject } = login;
      const own = { nonce: secret(), codeVerifier: secret() };
      const data = { ...login, ...own };
      const issued = await challenges.issueTicket({ purpose: STATE, subject, ttlSeconds: TTL, data, userId });
      return { ...own, state: issued.secret };
    },
    keepRedirect: (state, redirect) => challenges.keepWithTicket(STATE, state, 'redirect', redirect),
    receive: async (state, parameters, connection) => {
      if (!isTicket(state)) return undefined;
      const kept = (await challenges.spendTicket<TestLogin>(STATE, state))?.data;
      if (kept === undefined) return undefined;
      const data = { ...kept, state, parameters, ...(connection !== undefined && { connection }) };
      const { userId, session: subject } = kept;
      const answer = { purpose: ANSWER, subject, ttlSeconds: ANSWER_TTL, data, userId };
      return (await challenges.issueTicket(answer)).secret;
    },
    take: async (ticket, session) => {
      const kept = (await challenges.peekTicket<TestLoginAnswer>(ANSWER, ticket))?.data;
      // Looked at before it is used up: somebody else's session ends no try that is not its own.
      if (kept === undefined || !isSameSecret(kept.session, session)) return undefined;
      return (await challenges.spendTicket(ANSWER, ticket)) === undefined ? undefined : kept;
    },
  };
}
