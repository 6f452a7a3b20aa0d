// Account linking during a login: a user who logs in with a new identity may link it to the account they have already.

import type { Context } from 'koa';
import { declarePage } from '../../../capabilities/pages/views.ts';
import { requestExpired } from '../../../engine/authorize/waiting-requests.ts';
import { feature } from '../../../engine/provider/feature.ts';
import { formFields } from '../../../http/server/body.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import { eventTypesOf } from '../../../records/base/log-events.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Users } from '../../../users/users.ts';
import { ACCOUNT_LINK_STEP, waitsForLogin } from '../../flow/finish.ts';
import {
  type HostedDependencies,
  openRequestPage,
  type PageModel,
  pageModel,
  type RequestPage,
  renderPage,
} from '../../flow/request-page.ts';

// The page that offers to link the account of a new identity to an existing account.

interface LinkingRouteDependencies extends HostedDependencies {
  users: Users;
  events: Events;
}

const PATH = `/u/:uid/${ACCOUNT_LINK_STEP}` as const;

const linkingRoutes: RouteDeclarations<LinkingRouteDependencies> = {
  [`GET ${PATH}` as const]: {
    ...PAGE,
    handle: async (deps, ctx) => {
      const page = await openRequestPage(deps, ctx);
      if (!isOffered(page)) return ctx.redirect(`/u/${page.waiting.uid}`);
      await showOffer(deps, ctx, page);
    },
  },
  [`POST ${PATH}` as const]: {
    ...PAGE,
    handle: async (deps, ctx) => {
      const page = await openRequestPage(deps, ctx);
      deps.csrf.verify(ctx);
      if (!isOffered(page)) return ctx.redirect(`/u/${page.waiting.uid}`);
      const { decision } = formFields(ctx, 'decision');
      if (decision === 'link') return accept(deps, ctx, page);
      if (decision === 'decline') return decline(deps, ctx, page);
      await showOffer(deps, ctx, page);
    },
  },
};

function isOffered({ waiting }: RequestPage): boolean {
  return waiting.link !== undefined && waitsForLogin(waiting);
}

interface LoginLinkModel extends PageModel {
  email: string;
  connection: string;
}

export const LOGIN_LINK_PAGE = declarePage<LoginLinkModel>('login/link');

async function showOffer(deps: LinkingRouteDependencies, ctx: Context, page: RequestPage): Promise<void> {
  const { link } = page.waiting;
  if (link === undefined) throw requestExpired();
  const connection = await deps.config.connection(link.connection);
  await renderPage(deps, ctx, page, LOGIN_LINK_PAGE, {
    ...pageModel(page, ACCOUNT_LINK_STEP),
    email: link.email,
    connection: connection?.display_name ?? link.connection,
    ...(link.isOther === true && { alert: 'link.other' }),
  });
}

/** Accepts the offer: the request now waits for a login to the existing account. */
async function accept({ waitingRequests }: LinkingRouteDependencies, ctx: Context, page: RequestPage) {
  const { link, uid } = page.waiting;
  if (link === undefined) throw requestExpired();
  await waitingRequests.storeLink(ctx, { ...link, isAccepted: true, isOther: false });
  ctx.redirect(`/u/${uid}`);
}

/** Declines the offer: the login ends with the new account, and this account is not offered again. */
async function decline(deps: LinkingRouteDependencies, ctx: Context, page: RequestPage): Promise<void> {
  const { link, clientId } = page.waiting;
  if (link === undefined) throw requestExpired();
  const { login } = link;
  await deps.users.declineLink(login, link.userId);
  const details = { client_id: clientId, connection: login.connection, user_id: login.userId, ip: ctx.ip };
  deps.events.record({ ...details, type: logEvents.account_link_declined });
  // Without the link, the request no longer waits for the connection of the other account.
  await deps.waitingRequests.storeLink(ctx, undefined);
  await deps.finish.resume(ctx, await deps.waitingRequests.shown(ctx), login);
}

const logEvents = eventTypesOf({
  account_link_declined: 'A user declined to link a new account to an existing one.',
});

export const linking = feature<LinkingRouteDependencies>({
  name: 'linking',
  events: logEvents,
  routes: linkingRoutes,
});
