// Data of the page that lists the administrators.
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { type AdministratorRole, isAdministratorId } from '../../../records/users/administrators.ts';
import type { ConsolePageDependencies } from '../console-page.ts';
import type { ConsoleSession } from '../console-session.ts';
import { readRegister } from './console-administrator-members.ts';
import { type LinkDependencies, openLinks } from './links.ts';

export interface AdministratorsModel {
  members: {
    id: string;
    name: string;
    email: string;
    role: AdministratorRole;
    isSelf: boolean;
    hasFactor: boolean;
    added: FormattedTime;
    lastLogin?: FormattedTime;
  }[];
  /** The links that were sent and not yet used; one without a role is for a new password. */
  links: { id: string; email: string; role: AdministratorRole | undefined; expires: FormattedTime }[];
}

export async function administratorsModel(
  deps: ConsolePageDependencies & LinkDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<AdministratorsModel> {
  const register = await readRegister(deps);
  const time = timesOf(deps, ctx);
  const members = await Promise.all(
    register.members.map(async ({ user_id, role, added_at }) => {
      const [user, factors] = await Promise.all([
        deps.administrators.get(user_id),
        deps.authenticators.of(user_id),
      ]);
      return {
        id: isAdministratorId(user_id) ? user_id.slice(user_id.indexOf('|') + 1) : '',
        name: user?.name ?? '',
        email: user?.email ?? '',
        role,
        isSelf: user_id === session.administrator.userId,
        hasFactor: factors.some(({ active }) => active),
        added: time(added_at),
        ...(user?.last_login !== undefined && { lastLogin: time(user.last_login) }),
      };
    }),
  );
  const links = openLinks(register, deps.wallClock).map(({ id, email, role, expires_at }) => ({
    id,
    email,
    role,
    expires: time(expires_at),
  }));
  return { members: members.sort((a, b) => a.email.localeCompare(b.email)), links };
}
