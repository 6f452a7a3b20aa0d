// Forms of a phone number: the request, and the code.
import type { Context } from 'koa';
import type { FactorDependencies } from '../../factors/factor.ts';
import { formFields } from '../../http/body-fields.ts';
import type { RouteDeclarations } from '../../http/routes.ts';
import { ACCOUNT } from './callbacks.ts';
import { recordChange, tellUser } from './notices.ts';
import { back, posted } from './page.ts';
import { askForPhone, editsPhone, provePhone } from './phone-change.ts';
import { type ProfileDependencies, showProfile } from './profile.ts';
import type { AtAccount } from './session.ts';

interface PhonePageDependencies extends ProfileDependencies, FactorDependencies {}

/** The routes of a phone number. Both require a fresh login, so that nobody at an open browser can add a number. */
export const phoneRoutes: RouteDeclarations<PhonePageDependencies> = {
  [`POST ${ACCOUNT}/profile/phone`]: posted('', { isSensitive: true }, ask),
  [`POST ${ACCOUNT}/profile/phone/code`]: posted('', { isSensitive: true }, prove),
};

async function ask(deps: PhonePageDependencies, ctx: Context, here: AtAccount): Promise<void> {
  if (!(await editsPhone(deps, here.user.id))) return back(ctx, '');
  const { phone } = formFields(ctx, 'phone');
  const asked = await askForPhone(deps, here, phone);
  if (asked !== undefined) return showProfile(deps, ctx, here, { phoneAsked: asked });
  const faults = { phone: 'own.phone.none' };
  await showProfile(deps, ctx, here, { values: { phone }, faults, alert: 'own.profile.failed' });
}

async function prove(deps: PhonePageDependencies, ctx: Context, here: AtAccount): Promise<void> {
  if (!(await editsPhone(deps, here.user.id))) return back(ctx, '');
  const { code, phone } = formFields(ctx, 'code', 'phone');
  const outcome = await provePhone(deps, here, code);
  if (outcome !== 'set') {
    const faults = { code: outcome === 'taken' ? 'own.phone.taken' : 'own.phone.wrong' };
    return showProfile(deps, ctx, here, { phoneAsked: phone, faults, alert: 'own.profile.failed' });
  }
  recordChange(deps, ctx, here, { type: 'account_changed', description: 'phone number' });
  await tellUser(deps, ctx, here.user, 'phone');
  back(ctx, '', 'saved');
}
