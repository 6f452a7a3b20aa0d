// Where a session or a refresh token was begun and last used: what administrators are shown of it.
import type { Context } from 'koa';

/** As the hosted service names it. */
export interface Device {
  initial_ip: string;
  initial_user_agent: string;
  last_ip: string;
  last_user_agent: string;
}

/** Characters kept of what a client calls itself. */
const LONGEST = 255;

/** The device of a request: what was noted before stays the beginning. */
export function deviceOf(ctx: Pick<Context, 'ip' | 'get'>, before: unknown): Device {
  const ip = ctx.ip;
  const agent = ctx.get('user-agent').slice(0, LONGEST);
  const known = before as Device | undefined;
  return {
    initial_ip: known?.initial_ip ?? ip,
    initial_user_agent: known?.initial_user_agent ?? agent,
    last_ip: ip,
    last_user_agent: agent,
  };
}
