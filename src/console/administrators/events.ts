// Log events about administrators: who changed whom, with the state before and after.
import type { Context } from 'koa';
import { CONSOLE_CLIENT, CONSOLE_DIRECTORY } from '../../records/administrators.ts';
import type { Events } from '../../tenant/events.ts';

/** A change of an administrator. */
interface Done {
  /** The administrator who made the change; undefined for the command line, which acts for nobody. */
  by?: { userId: string; email: string } | undefined;
  description: string;
  /** The e-mail address of the administrator who was changed. */
  about: string;
  before?: object;
  after?: object;
}

export const events = {
  administrator_changed:
    'An administrator was added or removed, or got another role or a new password; the description says which.',
};

declare module '../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

/** Records a change of the administrators. @param ctx the request; undefined for a command. */
export function recordAdministrator(
  { events }: { events: Pick<Events, 'record'> },
  ctx: Pick<Context, 'ip'> | undefined,
  { by, description, about, before, after }: Done,
): void {
  events.record({
    type: 'administrator_changed',
    client_id: CONSOLE_CLIENT,
    connection: CONSOLE_DIRECTORY,
    description: `${description}: ${about}`,
    ...(ctx && { ip: ctx.ip }),
    ...(by && { user_id: by.userId, user_name: by.email }),
    details: { administrator: about, ...(before && { before }), ...(after && { after }) },
  });
}
