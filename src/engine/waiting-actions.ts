// The actions of a request that waits for its user: how far they have come, kept with the request where only we write.
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Progress } from '../actions/progress.ts';

/** What a user brought back from where an action sent them. */
export interface Return {
  method: string;
  query: Readonly<Record<string, string>>;
  body: Readonly<Record<string, string>>;
}

/** Kept with a waiting request. */
export interface WaitingActions {
  /** Whose login they were run for, and in which session: they begin anew for another. */
  userId: string;
  sid: string;
  progress: Progress | undefined;
  /** Where the user is sent. */
  redirect?: string | undefined;
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
  return actions?.userId === session?.accountId && actions?.sid === session?.uid ? actions : undefined;
}
