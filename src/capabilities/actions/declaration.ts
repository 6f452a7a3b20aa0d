// The log events of actions.
import type { Declaration } from '../../records/declaration.ts';

const events = {
  actions_execution_failed: 'An action failed, or requested something that it is not allowed to do.',
};

declare module '../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const actions: Declaration = { name: 'actions', events, collections: ['actionExecutions'] };
