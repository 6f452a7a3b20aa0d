// /account/data: a copy of the user's data, and the deletion of the account.
import type { Context } from 'koa';
import { formFields } from '../../http/body-fields.ts';
import type { RouteDeclarations } from '../../http/routes.ts';
import { isSameSecret } from '../../runtime/secrets.ts';
import { ACCOUNT } from './callbacks.ts';
import { type CopyDependencies, copyOfData } from './copy.ts';
import { type NoticeDependencies, recordChange, tellUser } from './notices.ts';
import { type AccountPageDependencies, allowsDeletion, back, posted, renderAccount, shown } from './page.ts';
import { type AtAccount, leaveAccount } from './session.ts';

export interface DataDependencies extends AccountPageDependencies, NoticeDependencies, CopyDependencies {
  /** Deletes a user and everything that belongs to them. */
  removeUser(userId: string): Promise<void>;
}

const SECTION = '/data';

export const dataRoutes: RouteDeclarations<DataDependencies> = {
  [`GET ${ACCOUNT}${SECTION}`]: shown(SECTION, (deps, ctx, here) => showData(deps, ctx, here)),
  [`POST ${ACCOUNT}${SECTION}/copy`]: posted(SECTION, { isSensitive: true }, async (deps, ctx, here) => {
    const copy = await copyOfData(deps, here.user.id);
    recordChange(deps, ctx, here, { type: 'account_changed', description: 'copy of the data' });
    ctx.set('Cache-Control', 'no-store');
    ctx.set('Content-Disposition', 'attachment; filename="account.json"');
    ctx.type = 'application/json';
    ctx.body = `${JSON.stringify(copy, null, 2)}\n`;
  }),
  [`POST ${ACCOUNT}${SECTION}/delete`]: posted(SECTION, { isSensitive: true }, deleteAccount),
};

function showData(deps: DataDependencies, ctx: Context, here: AtAccount, alert?: string): Promise<void> {
  const model = { confirm: identifierOf(here) };
  const page = { template: 'data', section: SECTION, model } as const;
  return renderAccount(deps, ctx, here, page, alert === undefined ? {} : { status: 400, alert });
}

/** Returns what a user has to type to confirm the deletion. */
function identifierOf({ user }: AtAccount): string {
  return user.email ?? user.username ?? user.phone_number ?? user.id;
}

async function deleteAccount(deps: DataDependencies, ctx: Context, here: AtAccount): Promise<void> {
  if (!allowsDeletion(deps, here)) return back(ctx, SECTION);
  const { confirm } = formFields(ctx, 'confirm');
  const isMeant = isSameSecret(confirm.trim().toLowerCase(), identifierOf(here).toLowerCase());
  if (!isMeant) return showData(deps, ctx, here, 'own.delete.differs');
  await deps.removeUser(here.user.id);
  recordChange(deps, ctx, here, { type: 'sdu', description: 'deleted by its user' });
  await tellUser(deps, ctx, here.user, 'deleted');
  await leaveAccount(deps, ctx);
  await deps.views.page(ctx, 'account/done', { done: 'own.deleted' });
}
