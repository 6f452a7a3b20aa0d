// Test logins at a provider, which administrators begin in the console and which log nobody in. As with every login at a
// provider, the state is a ticket. The provider's answer is stored under a second ticket, and shown only in the session of the
// administrator who began the test.
// docs/understand/decisions/console-account.md#the-result-of-a-test-login-in-the-console-is-shown-on-the-administrators-own-page
import { type Challenges, isTicket } from '../../../capabilities/protection/challenges.ts';
import type { Random } from '../../../runtime/secrets.ts';
import { isSameSecret } from '../../../runtime/secrets.ts';

interface TestLogin {
  /** The administrator's user id. */
  userId: string;
  /** Hash of the console session and the browser that began it. */
  session: string;
  connectionId: string;
  nonce: string;
  codeVerifier: string;
}

export interface TestLoginAnswer extends TestLogin {
  state: string;
  parameters: Readonly<Record<string, string>>;
  /** Whether the browser posted them. */
  isPosted: boolean;
  /** The name of the connection in the callback URL, if that has one (SAML). */
  connection?: string;
  /** The value of {@link TestLogins.storeRedirect}. */
  redirect?: unknown;
}

export interface TestLogins {
  /** Begins a test login, in place of one of the same session that still waits. @returns its secrets and `state`. */
  begin(
    login: Pick<TestLogin, 'userId' | 'session' | 'connectionId'>,
  ): Promise<Pick<TestLogin, 'nonce' | 'codeVerifier'> & { state: string }>;
  /** Stores how the browser was sent to the provider (JSON), to be shown with the answer. */
  storeRedirect(state: string, redirect: unknown): Promise<void>;
  /**
   * Stores the answer of a provider, and uses the state up.
   * @returns a ticket for the answer; undefined if the state is not that of a test login.
   */
  receive(
    state: string,
    answer: Pick<TestLoginAnswer, 'parameters' | 'isPosted'> & { connection: string | undefined },
  ): Promise<string | undefined>;
  /**
   * Returns an answer and uses its ticket up: of several concurrent calls, exactly one gets it.
   * @returns undefined for an unknown ticket, and in another session, which uses nothing up.
   */
  take(ticket: string, session: string): Promise<TestLoginAnswer | undefined>;
}

const STATE_PURPOSE = 'connection_trial';
const ANSWER_PURPOSE = 'connection_trial_answer';
/** How long an administrator may take at the provider, seconds. */
const TTL = 900;
/** Seconds. */
const ANSWER_TTL = 120;

export function testLogins({ challenges, random }: { challenges: Challenges; random: Random }): TestLogins {
  const secret = () => random(32).toString('base64url');
  return {
    begin: async (login) => {
      const { userId, session: subject } = login;
      const secrets = { nonce: secret(), codeVerifier: secret() };
      const data = { ...login, ...secrets };
      const issued = await challenges.issueTicket({
        purpose: STATE_PURPOSE,
        subject,
        ttlSeconds: TTL,
        data,
        userId,
      });
      return { ...secrets, state: issued.secret };
    },
    storeRedirect: (state, redirect) =>
      challenges.storeWithTicket(STATE_PURPOSE, state, 'redirect', redirect),
    receive: async (state, { parameters, isPosted, connection }) => {
      if (!isTicket(state)) return undefined;
      const stored = (await challenges.spendTicket<TestLogin>(STATE_PURPOSE, state))?.data;
      if (stored === undefined) return undefined;
      const data = {
        ...stored,
        state,
        parameters,
        isPosted,
        ...(connection !== undefined && { connection }),
      };
      const { userId, session: subject } = stored;
      const answer = { purpose: ANSWER_PURPOSE, subject, ttlSeconds: ANSWER_TTL, data, userId };
      return (await challenges.issueTicket(answer)).secret;
    },
    take: async (ticket, session) => {
      const stored = (await challenges.peekTicket<TestLoginAnswer>(ANSWER_PURPOSE, ticket))?.data;
      // The session is checked before the ticket is used up, so that another session cannot end the test.
      if (stored === undefined || !isSameSecret(stored.session, session)) return undefined;
      return (await challenges.spendTicket(ANSWER_PURPOSE, ticket)) === undefined ? undefined : stored;
    },
  };
}
