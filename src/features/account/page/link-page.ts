// /account/applications/link: shows the user's account beside another one that they proved, and links the two.

import type { Context } from 'koa';
import { reportLink } from '../../../capabilities/delivery/link-notice.ts';
import { DONE_PAGE, declarePage } from '../../../capabilities/pages/views.ts';
import { languagesOf } from '../../../http/languages.ts';
import { formFields } from '../../../http/server/body.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import type { User } from '../../../users/user.ts';
import { ACCOUNT } from './account-callbacks.ts';
import { goToLogin } from './account-login.ts';
import { type AccountPageDependencies, back, formRoute, requirePage } from './account-page.ts';
import { type AccountSession, endAccountSession } from './account-session.ts';
import {
  type AccountPair,
  allowsLinking,
  type LinkingDependencies,
  linkPair,
  pairOf,
  startLinking,
  storeSecondLogin,
} from './linking.ts';
import type { NoticeDependencies } from './notices.ts';

export interface LinkPageDependencies
  extends AccountPageDependencies,
    NoticeDependencies,
    LinkingDependencies {}

const SECTION = '/applications';
const PATH = `${ACCOUNT}${SECTION}/link` as const;

export const linkRoutes: RouteDeclarations<LinkPageDependencies> = {
  [`POST ${PATH}`]: formRoute<LinkPageDependencies>(
    SECTION,
    { act: 'identity' },
    async (deps, ctx, actor) => {
      const link = allowsLinking(deps, actor) ? await startLinking(deps, ctx) : undefined;
      if (link === undefined) return back(ctx, SECTION);
      await goToLogin(deps, ctx, { to: SECTION, isFresh: true, by: actor.client, link });
    },
  ),
  // The browser is logged in to the second account by now. The ticket says who began.
  [`POST ${PATH}/confirm`]: { ...PAGE, handle: confirm },
};

/** Stores the login to the second account, and shows both accounts. */
export async function showSecond(
  deps: LinkPageDependencies,
  ctx: Context,
  ticket: string,
  goes: AccountSession,
): Promise<void> {
  await storeSecondLogin(deps, ticket, goes);
  await showPair(deps, ctx, ticket);
}

/** One of two accounts: its address, and the connection of its login. */
interface LinkedAccount {
  name: string;
  way: string | undefined;
}

interface OwnLinkModel {
  action: string;
  root: string;
  csrf: string;
}

export const OWN_LINK_PAGE = declarePage<
  OwnLinkModel & ({ alert: string } | { ticket: string; stays: LinkedAccount; goes: LinkedAccount })
>('own/link');

/** Shows both accounts, or an error when there are none to link. */
async function showPair(deps: LinkPageDependencies, ctx: Context, ticket: string): Promise<void> {
  const pair = await pairOf(deps, ctx, ticket);
  const names = pair && (await namesOf(deps, pair));
  await deps.views.page(
    ctx,
    OWN_LINK_PAGE,
    {
      action: `${PATH}/confirm`,
      root: ACCOUNT,
      csrf: deps.csrf.token(ctx),
      ...(pair === undefined
        ? { alert: 'own.link.none' }
        : {
            ticket,
            stays: { name: addressOf(pair.stays.user), way: names?.stays },
            goes: { name: addressOf(pair.goes.user), way: names?.goes },
          }),
    },
    { status: pair === undefined ? 400 : 200 },
  );
}

async function namesOf(
  { config }: LinkPageDependencies,
  { stays, goes }: AccountPair,
): Promise<Record<'stays' | 'goes', string>> {
  const nameOf = async ({ connection: name }: { connection: string }) =>
    (await config.connection(name))?.display_name ?? name;
  return { stays: await nameOf(stays), goes: await nameOf(goes) };
}

function addressOf({ id, email, username, phone_number, name }: User): string {
  return email ?? username ?? phone_number ?? name ?? id;
}

async function confirm(deps: LinkPageDependencies, ctx: Context): Promise<void> {
  requirePage(deps);
  deps.csrf.verify(ctx);
  const { ticket } = formFields(ctx, 'ticket');
  const pair = await linkPair(deps, ctx, ticket);
  if (pair === undefined) return showPair(deps, ctx, '');
  const { stays, goes } = pair;
  await reportLink(
    deps,
    { stays: stays.user, goes: goes.user },
    { clientId: stays.clientId, connection: goes.connection, ip: ctx.ip, languages: languagesOf(ctx) },
  );
  await endAccountSession(deps, ctx);
  await deps.views.page(ctx, DONE_PAGE, { done: 'own.linked' });
}
