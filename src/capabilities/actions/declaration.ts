// The log events of actions.
import type { Declaration } from '../../records/declaration.ts';
import { eventTypesOf } from '../../records/log-events.ts';

export const actionEvents = eventTypesOf({
  actions_execution_failed: 'An action failed, or requested something that it is not allowed to do.',
});

export const actions: Declaration = {
  name: 'actions',
  events: actionEvents,
  collections: ['actionExecutions'],
};
