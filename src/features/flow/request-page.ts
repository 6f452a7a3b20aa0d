// What the pages of waiting authorization requests have in common.
import type { Context } from 'koa';
import {
  type LayoutModel,
  type Page,
  type ShownClient,
  shownClient,
  type Views,
} from '../../capabilities/pages/views.ts';
import { THROTTLED_DESCRIPTION } from '../../capabilities/protection/attempts.ts';
import {
  requestExpired,
  type ShownWaitingRequest,
  type WaitingRequests,
  waitingPath,
} from '../../engine/authorize/waiting-requests.ts';
import type { AuthError } from '../../http/errors.ts';
import { type Languages, languagesOf } from '../../http/languages.ts';
import type { Csrf } from '../../http/server/csrf.ts';
import type { Client, Organization } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import type { Finish } from './finish.ts';

export interface HostedDependencies {
  config: Config;
  waitingRequests: WaitingRequests;
  finish: Finish;
  views: Views;
  csrf: Csrf;
}

export interface RequestPage {
  waiting: ShownWaitingRequest;
  client: Client;
  organization: Organization | undefined;
  csrf: string;
}

export interface PageModel {
  /** The path that the form posts to. */
  action: string;
  csrf: string;
  client: ShownClient;
  /** A message key. */
  alert?: string;
  /** A message of the tenant's own code, shown as text in place of `alert`. */
  said?: string | undefined;
}

/** @throws AuthError 400 when no such request waits in this browser. */
export async function openRequestPage(deps: HostedDependencies, ctx: Context): Promise<RequestPage> {
  const waiting = await deps.waitingRequests.shown(ctx);
  const client = await deps.config.client(waiting.clientId);
  if (client === undefined || waiting.uid !== ctx.params.uid) throw requestExpired();
  const { organization: id } = waiting.params;
  const organization = id === undefined ? undefined : await deps.config.organization(id);
  return { waiting, client, organization, csrf: deps.csrf.token(ctx) };
}

export function stepPath({ uid }: ShownWaitingRequest, step: string): string {
  return `${waitingPath(uid)}/${step}`;
}

export function pageModel({ waiting, client, csrf }: RequestPage, step: string): PageModel {
  return { action: stepPath(waiting, step), csrf, client: shownClient(client) };
}

/** Answers with a page of the request, in its language. Its form may lead to the application. */
export function renderPage<M extends LayoutModel>(
  deps: Pick<HostedDependencies, 'views'>,
  ctx: Context,
  request: RequestPage,
  page: Page<M>,
  model: NoInfer<M>,
  status = 200,
): Promise<void> {
  return deps.views.page(ctx, page, model, {
    status,
    uiLocales: request.waiting.params.ui_locales,
    formsLeave: true,
    organization: request.organization,
  });
}

/** Returns the user's languages: those of the request before those of the browser. */
export function requestLanguages(ctx: Context, { waiting }: RequestPage): Languages {
  return languagesOf(ctx, waiting.params.ui_locales);
}

/** Whether a request accepts a login with a connection: any, unless it names one. */
export function acceptsConnection({ params }: ShownWaitingRequest, { name }: { name: string }): boolean {
  return params.connection === undefined || params.connection === name;
}

/** @returns a message key; undefined for other errors. */
export function tooManyAlert({ error, error_description }: AuthError): string | undefined {
  if (error === 'too_many_requests') return 'login.locked';
  if (error !== 'too_many_attempts') return undefined;
  return error_description === THROTTLED_DESCRIPTION ? 'login.throttled' : 'login.blocked';
}
