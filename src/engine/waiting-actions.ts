// The state of the actions of a request that waits for its user. It is stored with the request, where no client can write.
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { FactorsAsked } from '../actions/factors-asked.ts';
import type { Progress } from '../actions/progress.ts';
import type { Login } from '../users/login.ts';

/** What a user returned with from the address that an action sent them to. */
export interface Return {
  method: string;
  query: Readonly<Record<string, string>>;
  body: Readonly<Record<string, string>>;
}

/** What comes back to where somebody was sent from: what they brought, or the type of the second factor that they gave. */
export type Brought = Return | { factor: string };

/** A login as the user whom its identity was linked to. */
export interface PrimaryLogin {
  login: Login;
  /** The ids of the identities that were logged in with: they are to be that user's. */
  identities: string[];
}

/** Kept with a waiting request. */
export interface WaitingActions {
  /** Whose login they were run for, and in which session: they begin anew for another. None yet of a login that another takes the place of. */
  userId: string;
  sid: string | undefined;
  progress: Progress | undefined;
  /** Where the user is sent. */
  redirect?: string | undefined;
  /** Which second factor they wait for, and whether one has been given since. */
  factors?: FactorsAsked | undefined;
  isGiven?: boolean | undefined;
  /** The login that goes on in place of the one that was: of the user whom its identity was linked to. */
  primary?: PrimaryLogin | undefined;
  /** With what they came back from there. */
  returned?: Return | undefined;
}

interface Asked {
  actions?: WaitingActions;
}

/** Of a request whose user was asked for something, as the engine has it. */
export function waitingActionsOf(prompt: { details: object }): WaitingActions | undefined {
  return (prompt.details as Asked).actions;
}

/** Of a request that goes on: as far as they were run for this very login. */
export function answeredActions({ oidc }: KoaContextWithOIDC): WaitingActions | undefined {
  const { actions } = (oidc.result ?? {}) as Asked;
  const { session } = oidc;
  if (actions === undefined || actions.userId !== session?.accountId) return undefined;
  if (actions.sid === undefined) return oidc.result?.login === undefined ? undefined : actions;
  return actions.sid === session.uid ? actions : undefined;
}
