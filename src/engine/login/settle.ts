// The end of every login, at the token endpoint and in the browser: admission, second factor, storing, and the log
// event. Success is logged once a session or tokens are stored.
import { executionDetails } from '../../capabilities/actions/actions.ts';
import { AuthError } from '../../http/errors.ts';
import type { EventType } from '../../records/base/log-events.ts';
import { mayLogInTo } from '../../records/users/administrators.ts';
import type { Write } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { LEFT_BEHIND_REASON } from '../../users/left-factors.ts';
import type { Login } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { Organizations } from '../admission/admission.ts';
import { type Admission, admissionOf, CLOSED, isOpenTo, matchesConnection } from '../admission/admission.ts';
import { wouldEnroll } from '../admission/exchange-context.ts';
import type { LoginRequirements, SecondFactor } from '../admission/second-factor.ts';
import { engineEvents } from '../base/engine-declaration.ts';

interface SettleDependencies {
  config: Pick<Config, 'connectionsOf'>;
  users: Users;
  events: Events;
  secondFactor: Pick<SecondFactor, 'isRequired' | 'enrolledFactors'>;
  organizations: Pick<Organizations, 'membershipError'>;
}

/** The decision on a login: refused with a reason, lacking a second factor, or complete. */
type LoginDecision =
  | { is: 'refused'; refusal: AuthError }
  | { is: 'incomplete' }
  /** The user as read when the login was judged. */
  | { is: 'complete'; user: User };

/** What a login creates (a session, or a grant with its tokens), as functions. */
interface LoginResult {
  /** Stores it. @param loginWrites record the login with the user; stored in the same commit, or beside it. */
  store(...loginWrites: Write[]): Promise<unknown>;
  /** Removes what was stored, when the login does not hold any more. */
  remove(): Promise<unknown>;
  /** The id of the run of the tenant's actions for this login, for the log. */
  execution: string | undefined;
  /** Whether the login was already counted and logged when its session was made. */
  isRecorded?: boolean | undefined;
}

/** The requirements that a login has to meet before its factors count. */
type FirstRequirements = Pick<LoginRequirements, 'clientId' | 'connection' | 'organization' | 'invitation'>;

export interface Settlement {
  /**
   * Returns why a login is refused, whatever factors it has. Asked before a second factor is verified, which may
   * confirm an authenticator.
   */
  refusal(login: Login, requirements: FirstRequirements): Promise<AuthError | undefined>;
  /** Decides on a login before anything is created. */
  decide(login: Login, requirements: LoginRequirements): Promise<LoginDecision>;
  /**
   * Stores the session or tokens of a complete login, then checks the login again. If the user's sessions are ended
   * later, that end finds what was stored; if they were ended before, this check notices it.
   * @returns why it was removed again; undefined when it stays.
   */
  settle(login: Login, clientId: string, result: LoginResult): Promise<AuthError | undefined>;
}

export function createSettlement({
  config,
  users,
  events,
  secondFactor,
  organizations,
}: SettleDependencies): Settlement {
  const recordEvent = eventRecorder(events);
  const judge = judgement({ users, organizations }, recordEvent);
  return {
    refusal: async (login, requirements) => (await judge(login, requirements)).refusal,
    decide: async (login, requirements) => {
      const { clientId } = requirements;
      const { user, refusal } = await judge(login, requirements);
      if (refusal !== undefined) return { is: 'refused', refusal };
      // Not at the token endpoint, where an API may exchange the token of a user who cannot log in to it.
      if (requirements.browser && !(await isOpenTo({ config, users }, clientId, login))) {
        recordEvent(engineEvents.f, login, clientId, { user, description: CLOSED });
        return { is: 'refused', refusal: new AuthError(403, 'invalid_grant', CLOSED) };
      }
      if (
        requirements.isComplete === true ||
        !(await secondFactor.isRequired(login, { ...requirements, user }))
      )
        return { is: 'complete', user };
      if (await wouldEnroll(secondFactor, login, user))
        return { is: 'refused', refusal: new AuthError(403, 'invalid_grant', 'The user has to log in.') };
      recordEvent(engineEvents.mfar, login, clientId, { user });
      return { is: 'incomplete' };
    },
    settle: async (login, clientId, { store, remove, execution, isRecorded = false }) => {
      const isDelegated = login.transfer?.act !== undefined;
      // A login in which somebody acts for the user does not count as a login of the user.
      await store(...(isRecorded || isDelegated ? [] : [users.loginWrite(login.userId, login.ip)]));
      const { user, refusal } = await admissionOf(users, login);
      if (refusal === undefined) {
        if (!isRecorded)
          recordEvent(isDelegated ? engineEvents.sdel : engineEvents.s, login, clientId, { user, execution });
        return undefined;
      }
      await remove();
      recordEvent(engineEvents.f, login, clientId, { user, description: refusal.error_description });
      return refusal;
    },
  };
}

type RecordEvent = (type: EventType, login: Login, clientId: string, about: EventDetails) => void;

function eventRecorder(events: Events): RecordEvent {
  return (type, login, clientId, { user, description, execution }) => {
    const name = user?.email ?? user?.username ?? user?.phone_number;
    events.record({
      type,
      client_id: clientId,
      user_id: login.userId,
      ip: login.ip,
      ...(login.connection !== '' && { connection: login.connection }),
      ...(name !== undefined && { user_name: name }),
      ...(description !== undefined && { description }),
      ...executionDetails(execution),
    });
  };
}

const FACTOR_ELSEWHERE = 'The second factor of the user is not known here.';

/** Makes the judgement of a login without its factors: user, connection, organization. */
function judgement(
  { users, organizations }: Pick<SettleDependencies, 'users' | 'organizations'>,
  recordEvent: RecordEvent,
) {
  return async (login: Login, requirements: FirstRequirements): Promise<Admission> => {
    const { clientId } = requirements;
    const admission = await admissionOf(users, login);
    const { user } = admission;
    if (admission.refusal !== undefined) {
      recordEvent(engineEvents.f, login, clientId, {
        user,
        description: admission.refusal.error_description,
      });
      return admission;
    }
    if (user !== undefined && !login.amr.includes('mfa') && (await users.lacksFactor(user))) {
      recordEvent(engineEvents.f, login, clientId, { user, description: LEFT_BEHIND_REASON });
      return { user, refusal: new AuthError(403, 'access_denied', FACTOR_ELSEWHERE) };
    }
    if (!matchesConnection(requirements.connection, login.connection) || !mayLogInTo(clientId, login))
      return { user, refusal: otherConnection() };
    const membershipError = await organizations.membershipError(login, requirements);
    if (membershipError === undefined) return admission;
    recordEvent(engineEvents.f, login, clientId, { user, description: membershipError.error_description });
    return { user, refusal: membershipError };
  };
}

interface EventDetails {
  user: User | undefined;
  description?: string;
  execution?: string | undefined;
}

function otherConnection(): AuthError {
  return new AuthError(403, 'invalid_grant', 'The request is for another connection.');
}
