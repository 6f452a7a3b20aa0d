// The log events of actions.

import { eventTypesOf } from '../../records/base/log-events.ts';
import type { Declaration } from '../../records/declaration.ts';

export const actionEvents = eventTypesOf({
  actions_execution_failed: 'An action failed, or requested something that it is not allowed to do.',
});

export const actions: Declaration = {
  name: 'actions',
  events: actionEvents,
  collections: ['actionExecutions'],
};
