// The state of the actions of a request that waits for its user. It is stored with the request, where no client can write.
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { RequiredFactors } from '../../capabilities/actions/factor-methods.ts';
import type { Progress } from '../../capabilities/actions/progress.ts';
import type { Login } from '../../users/login.ts';

/** The request with which a user returns from the URL that an action sent them to. */
export interface ReturnRequest {
  method: string;
  query: Readonly<Record<string, string>>;
  body: Readonly<Record<string, string>>;
}

/** What a user returns with: a request, or the type of the second factor that they gave. */
export type ReturnResult = ReturnRequest | { factor: string };

/** A login as the user whom its identity was linked to. */
export interface PrimaryLogin {
  login: Login;
  /** The ids of the identities that were logged in with, which have to be that user's. */
  identities: string[];
}

/** The state of the actions, stored with a waiting request. */
export interface WaitingActions {
  /**
   * The user and session of the login that the actions ran for; for another login they start again. `sid` is
   * undefined while a login as another user replaces this one and has no session yet.
   */
  userId: string;
  sid: string | undefined;
  progress: Progress | undefined;
  /** The URL that the user is sent to. */
  redirect?: string | undefined;
  /** The second factors that an action asks for, and whether one has been given since. */
  factors?: RequiredFactors | undefined;
  isGiven?: boolean | undefined;
  /** The login that replaces the present one: of the user whom its identity was linked to. */
  primary?: PrimaryLogin | undefined;
  /** The request with which the user returned from `redirect`. */
  returned?: ReturnRequest | undefined;
}

interface ActionState {
  actions?: WaitingActions;
}

/** Returns the state of the actions in the prompt of a waiting request. */
export function waitingActionsOf(prompt: { details: object }): WaitingActions | undefined {
  return (prompt.details as ActionState).actions;
}

/** Returns the state of the actions of a resumed request, if they ran for this login. */
export function resumedActions({ oidc }: KoaContextWithOIDC): WaitingActions | undefined {
  const { actions } = (oidc.result ?? {}) as ActionState;
  const { session } = oidc;
  if (actions === undefined || actions.userId !== session?.accountId) return undefined;
  if (actions.sid === undefined) return oidc.result?.login === undefined ? undefined : actions;
  return actions.sid === session.uid ? actions : undefined;
}
