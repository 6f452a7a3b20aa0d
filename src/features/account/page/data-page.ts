// /account/data: a copy of the user's data, and the deletion of the account.

import type { Context } from 'koa';
import { formFields } from '../../../http/body-fields.ts';
import type { RouteDeclarations } from '../../../http/routes.ts';
import { lookupEmail } from '../../../records/email.ts';
import { isSameSecret } from '../../../runtime/secrets.ts';
import type { User } from '../../../users/user.ts';
import { ACCOUNT } from './callbacks.ts';
import { type CopyDependencies, copyOfData } from './copy.ts';
import { type NoticeDependencies, notifyUser, recordChange } from './notices.ts';
import {
  type AccountPageDependencies,
  allowsDeletion,
  back,
  formRoute,
  pageRoute,
  renderAccount,
} from './page.ts';
import { endAccountSession, type PageActor } from './session.ts';

export interface DataDependencies extends AccountPageDependencies, NoticeDependencies, CopyDependencies {
  /** Deletes a user and everything that belongs to them. */
  removeUser(userId: string, by: User): Promise<void>;
}

const SECTION = '/data';

export const dataRoutes: RouteDeclarations<DataDependencies> = {
  [`GET ${ACCOUNT}${SECTION}`]: pageRoute(SECTION, (deps, ctx, actor) => showData(deps, ctx, actor)),
  [`POST ${ACCOUNT}${SECTION}/copy`]: formRoute(SECTION, { act: 'copy' }, async (deps, ctx, actor) => {
    const copy = await copyOfData(deps, actor.user.id);
    recordChange(deps, ctx, actor, { type: 'account_changed', description: 'copy of the data' });
    ctx.set('Cache-Control', 'no-store');
    ctx.set('Content-Disposition', 'attachment; filename="account.json"');
    ctx.type = 'application/json';
    ctx.body = `${JSON.stringify(copy, null, 2)}\n`;
  }),
  [`POST ${ACCOUNT}${SECTION}/delete`]: formRoute(SECTION, { act: 'deletion' }, deleteAccount),
};

function showData(deps: DataDependencies, ctx: Context, actor: PageActor, alert?: string): Promise<void> {
  const model = { confirm: identifierOf(actor) };
  const page = { template: 'data', section: SECTION, model } as const;
  return renderAccount(deps, ctx, actor, page, alert === undefined ? {} : { status: 400, alert });
}

/** Returns what a user has to type to confirm the deletion. */
function identifierOf({ user }: PageActor): string {
  return user.email ?? user.username ?? user.phone_number ?? user.id;
}

/** Browsers change the spelling of an address that is copied from the page to a field. */
const plainName = (text: string) => lookupEmail(text) ?? text.trim().toLowerCase();

async function deleteAccount(deps: DataDependencies, ctx: Context, actor: PageActor): Promise<void> {
  if (!allowsDeletion(deps, actor)) return back(ctx, SECTION);
  const { confirm } = formFields(ctx, 'confirm');
  const isMeant = isSameSecret(plainName(confirm), plainName(identifierOf(actor)));
  if (!isMeant) return showData(deps, ctx, actor, 'own.delete.differs');
  await deps.removeUser(actor.user.id, actor.user);
  recordChange(deps, ctx, actor, { type: 'sdu', description: 'deleted by its user' });
  await notifyUser(deps, ctx, actor.user, 'deleted');
  await endAccountSession(deps, ctx);
  await deps.views.page(ctx, 'account/done', { done: 'own.deleted' });
}
