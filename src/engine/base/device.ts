// The devices that began a session or refresh token and used it last, as the Management API shows them.
import type { Context } from 'koa';

/** Member names are those of the hosted service's API. */
export interface Device {
  initial_ip: string;
  initial_user_agent: string;
  last_ip: string;
  last_user_agent: string;
}

/** The most characters of a user agent that are stored. */
const MAX_USER_AGENT_LENGTH = 255;

/** Returns the device of a request. @param before the device stored before, whose initial values stay. */
export function deviceOf(ctx: Pick<Context, 'ip' | 'get'>, before: unknown): Device {
  const ip = ctx.ip;
  const agent = ctx.get('user-agent').slice(0, MAX_USER_AGENT_LENGTH);
  const stored = before as Device | undefined;
  return {
    initial_ip: stored?.initial_ip ?? ip,
    initial_user_agent: stored?.initial_user_agent ?? agent,
    last_ip: ip,
    last_user_agent: agent,
  };
}
