// The events of later actions and rules, which reflect what earlier ones asked for.
import type { ActionOutcome } from './commands.ts';

/** The event of an action. What is the same for all events of a tenant is added when the action runs. */
export type ActionEvent = Readonly<Record<string, unknown>>;

/** Returns the event of the rules, with the request in which the user came back from their redirect, if any. */
export function ruleEvent(event: ActionEvent, request: ActionEvent | undefined): ActionEvent {
  if (request === undefined) return event;
  const transaction = { ...(event.transaction as object), protocol: 'redirect-callback' };
  return { ...event, request, transaction };
}

/** Returns the event as the next action sees it. @param now an ISO date. */
export function currentEvent(
  event: ActionEvent,
  { userMetadata, appMetadata, login, targetScopes }: ActionOutcome,
  now: string,
): ActionEvent {
  const user = event.user as Record<string, object> | undefined;
  const target = targetScopes && { target_scopes: targetScopes };
  if (user === undefined)
    return target ? { ...event, transaction: { ...(event.transaction as object), ...target } } : event;
  const { transaction, authentication } = event as {
    transaction?: object;
    authentication?: { methods?: object[] };
  };
  const recorded = login.methods.map((name) => ({ name, timestamp: now }));
  return {
    ...event,
    ...(transaction && { transaction: { ...transaction, ...target, metadata: login.transaction } }),
    ...(authentication && {
      authentication: { ...authentication, methods: [...(authentication.methods ?? []), ...recorded] },
    }),
    user: {
      ...user,
      user_metadata: withMembers(user.user_metadata, userMetadata),
      app_metadata: withMembers(user.app_metadata, appMetadata),
    },
  };
}

/** Returns metadata with members set, and without those that were set to null. */
export function withMembers(
  before: object | undefined,
  changes: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const members = Object.entries({ ...before, ...changes }).filter(
    ([name]) => changes[name] !== null || !(name in changes),
  );
  return Object.fromEntries(members);
}
