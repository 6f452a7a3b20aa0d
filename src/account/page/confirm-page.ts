// /account/confirm: confirms by an e-mailed code that the user is present, after a login by a provider that does
// not say whether it asked its user for a proof. Otherwise anybody at an open browser could log in by the
// provider's session.
import type { Context } from 'koa';
import { formFields } from '../../http/body-fields.ts';
import type { RouteDeclarations } from '../../http/routes.ts';
import { ACCOUNT } from './callbacks.ts';
import { sendCode, useCode } from './code.ts';
import { type LinkPageDependencies, showSecond } from './link-page.ts';
import { CONFIRM, SECTIONS } from './login.ts';
import { back, posted, shown } from './page.ts';
import { type AtAccount, provedNow } from './session.ts';

type Deps = LinkPageDependencies;

const PURPOSE = 'account_confirm';

export const confirmRoutes: RouteDeclarations<Deps> = {
  [`GET ${CONFIRM}`]: shown<Deps>('', (deps, ctx, here) => showConfirm(deps, ctx, here)),
  [`POST ${CONFIRM}/send`]: posted<Deps>('', { isSensitive: false }, async (deps, ctx, here) => {
    const to = addressOf(here);
    if (!here.isUnproved || to === undefined) return showConfirm(deps, ctx, here);
    await sendCode(deps, here, { purpose: PURPOSE, channel: 'email', kind: 'mfa_oob_code', to });
    await showConfirm(deps, ctx, here, { isSent: true });
  }),
  [`POST ${CONFIRM}`]: posted<Deps>('', { isSensitive: false }, prove),
};

/** Returns the address that a code is sent to: the user's, if it is verified. */
const addressOf = ({ user }: AtAccount) => (user.email_verified ? user.email : undefined);

/** Returns the section that the user wanted to open, from the query or the form. */
function wantedOf(ctx: Context) {
  const { to } = ctx.method === 'GET' ? { to: String(ctx.query.to ?? '') } : formFields(ctx, 'to');
  return SECTIONS.find((one) => one === to) ?? '';
}

async function showConfirm(
  deps: Deps,
  ctx: Context,
  here: AtAccount,
  { isSent = false, alert }: { isSent?: boolean; alert?: string } = {},
): Promise<void> {
  if (!here.isUnproved) return back(ctx, wantedOf(ctx));
  const email = addressOf(here);
  const connection = await deps.config.connection(here.connection);
  const model = {
    action: isSent ? CONFIRM : `${CONFIRM}/send`,
    root: ACCOUNT,
    csrf: deps.csrf.token(ctx),
    account: here.stamp,
    to: wantedOf(ctx),
    provider: connection?.display_name ?? here.connection,
    email,
    isSent,
    ...(alert !== undefined && { alert }),
  };
  const status = alert !== undefined ? 400 : email === undefined ? 403 : 200;
  await deps.views.page(ctx, 'own/confirm', model, { status });
}

async function prove(deps: Deps, ctx: Context, here: AtAccount): Promise<void> {
  if (!here.isUnproved) return back(ctx, wantedOf(ctx));
  const { code } = formFields(ctx, 'code');
  const sentTo = await useCode(deps, here, PURPOSE, code);
  // The address may have been changed since.
  const kept = sentTo !== undefined && sentTo === addressOf(here) ? await provedNow(deps, ctx) : undefined;
  if (kept === undefined) return showConfirm(deps, ctx, here, { isSent: true, alert: 'own.confirm.wrong' });
  if (kept.link !== undefined) return showSecond(deps, ctx, kept.link, kept);
  back(ctx, wantedOf(ctx));
}
