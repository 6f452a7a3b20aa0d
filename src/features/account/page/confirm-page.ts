// /account/confirm: confirms by an e-mailed code that the user is present, after a login by a provider that does
// not say whether it asked its user for a proof. Otherwise anybody at an open browser could log in by the
// provider's session.

import type { Context } from 'koa';
import { declarePage } from '../../../capabilities/pages/views.ts';
import { formFields } from '../../../http/body.ts';
import type { RouteDeclarations } from '../../../http/router.ts';
import { ACCOUNT } from './callbacks.ts';
import { sendCode, useCode } from './code.ts';
import { type LinkPageDependencies, showSecond } from './link-page.ts';
import { CONFIRM, SECTIONS } from './login.ts';
import { back, formRoute, pageRoute } from './page.ts';
import { type PageActor, recordAuthentication } from './session.ts';

type Deps = LinkPageDependencies;

const PURPOSE = 'account_confirm';

export const confirmRoutes: RouteDeclarations<Deps> = {
  [`GET ${CONFIRM}`]: pageRoute<Deps>('', (deps, ctx, actor) => showConfirm(deps, ctx, actor)),
  [`POST ${CONFIRM}/send`]: formRoute<Deps>('', { act: 'account_page' }, async (deps, ctx, actor) => {
    const to = addressOf(actor);
    if (!actor.isUnproved || to === undefined) return showConfirm(deps, ctx, actor);
    await sendCode(deps, actor, { purpose: PURPOSE, channel: 'email', kind: 'mfa_oob_code', to });
    await showConfirm(deps, ctx, actor, { isSent: true });
  }),
  [`POST ${CONFIRM}`]: formRoute<Deps>('', { act: 'account_page' }, confirm),
};

/** Returns the address that a code is sent to: the user's, if it is verified. */
const addressOf = ({ user }: PageActor) => (user.email_verified ? user.email : undefined);

/** Returns the section that the user wanted to open, from the query or the form. */
function sectionOf(ctx: Context) {
  const { to } = ctx.method === 'GET' ? { to: String(ctx.query.to ?? '') } : formFields(ctx, 'to');
  return SECTIONS.find((one) => one === to) ?? '';
}

interface OwnConfirmModel {
  action: string;
  root: string;
  csrf: string;
  account: string;
  /** The section that is asked for. */
  to: string;
  /** Where the user logged in. */
  provider: string;
  email: string | undefined;
  /** Whether the code was sent. */
  isSent: boolean;
  alert?: string;
}

export const OWN_CONFIRM_PAGE = declarePage<OwnConfirmModel>('own/confirm');

async function showConfirm(
  deps: Deps,
  ctx: Context,
  actor: PageActor,
  { isSent = false, alert }: { isSent?: boolean; alert?: string } = {},
): Promise<void> {
  if (!actor.isUnproved) return back(ctx, sectionOf(ctx));
  const email = addressOf(actor);
  const connection = await deps.config.connection(actor.connection);
  const model = {
    action: isSent ? CONFIRM : `${CONFIRM}/send`,
    root: ACCOUNT,
    csrf: deps.csrf.token(ctx),
    account: actor.formToken,
    to: sectionOf(ctx),
    provider: connection?.display_name ?? actor.connection,
    email,
    isSent,
    ...(alert !== undefined && { alert }),
  };
  const status = alert !== undefined ? 400 : email === undefined ? 403 : 200;
  await deps.views.page(ctx, OWN_CONFIRM_PAGE, model, { status });
}

async function confirm(deps: Deps, ctx: Context, actor: PageActor): Promise<void> {
  if (!actor.isUnproved) return back(ctx, sectionOf(ctx));
  const { code } = formFields(ctx, 'code');
  const sentTo = await useCode(deps, actor, PURPOSE, code);
  // The address may have been changed since.
  const session =
    sentTo !== undefined && sentTo === addressOf(actor) ? await recordAuthentication(deps, ctx) : undefined;
  if (session === undefined)
    return showConfirm(deps, ctx, actor, { isSent: true, alert: 'own.confirm.wrong' });
  if (session.link !== undefined) return showSecond(deps, ctx, session.link, session);
  back(ctx, sectionOf(ctx));
}
