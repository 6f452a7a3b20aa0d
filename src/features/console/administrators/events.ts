// Log events about administrators: who changed whom, with the state before and after.
import type { Context } from 'koa';
import { eventTypesOf } from '../../../records/base/log-events.ts';
import { CONSOLE_CLIENT, CONSOLE_DIRECTORY } from '../../../records/users/administrators.ts';
import type { Events } from '../../../tenant/events.ts';

interface AdministratorChange {
  /** The administrator who made the change; undefined for the command line, which acts for nobody. */
  actor?: { userId: string; email: string } | undefined;
  description: string;
  /** The e-mail address of the administrator who was changed. */
  email: string;
  before?: object;
  after?: object;
}

export const administratorEvents = eventTypesOf({
  administrator_changed:
    'An administrator was added or removed, or got another role or a new password; the description says which.',
  administrator_program:
    'An administrator approved or refused a program that asked to act for them, or ended one; the description says which.',
});

/** @param ctx the request; undefined for a command. */
export function recordAdministrator(
  { events }: { events: Pick<Events, 'record'> },
  ctx: Pick<Context, 'ip'> | undefined,
  { actor, description, email, before, after }: AdministratorChange,
): void {
  events.record({
    type: administratorEvents.administrator_changed,
    client_id: CONSOLE_CLIENT,
    connection: CONSOLE_DIRECTORY,
    description: `${description}: ${email}`,
    ...(ctx && { ip: ctx.ip }),
    ...(actor && { user_id: actor.userId, user_name: actor.email }),
    details: { administrator: email, ...(before && { before }), ...(after && { after }) },
  });
}
